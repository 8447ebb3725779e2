"""A grid under ``DistributedDataParallel``: two processes equal one with the joint batch."""

import os
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

from gridlstm import SequenceGridLSTM

FLOAT64 = {"rtol": 1e-9, "atol": 1e-11}


def make() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    net = SequenceGridLSTM(3, 4, 2, priority=True, dtype=torch.float64)
    return net, torch.randn(5, 6, 3, dtype=torch.float64)


def train(net: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(x)[0].square().sum((0, 2)).mean().backward()
        optimizer.step()
    return {name: value.detach().clone() for name, value in net.state_dict().items()}


def worker(rank: int, folder: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = distributed.FileStore(f"{folder}/store", 2)
    distributed.init_process_group(
        "gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=120)
    )
    net, x = make()
    state = train(DistributedDataParallel(net), x[:, 3 * rank : 3 * rank + 3])
    torch.save(
        {name.removeprefix("module."): value for name, value in state.items()}, f"{folder}/{rank}.pt"
    )
    distributed.destroy_process_group()


def test_two_processes_equal_one(tmp_path: Path) -> None:
    multiprocessing.spawn(worker, (str(tmp_path),), nprocs=2)
    expected = train(*make())
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, expected, **FLOAT64)
