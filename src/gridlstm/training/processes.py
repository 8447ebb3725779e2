"""The processes of a run: one, or several started by ``torchrun``."""

import os
from dataclasses import dataclass, field
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

__all__ = ["Processes", "check_device"]


def check_device(device: str) -> None:
    """Checks that this machine has a device: ``"cpu"``, ``"cuda"`` or ``"mps"``.

    Raises:
        ValueError: if it does not, or if the device cannot be shared by the processes of ``torchrun``.
    """
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(device, True):
        raise ValueError(f"device: expected cpu, got {device}, which this machine does not have")
    if device == "mps" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("device: expected cpu or cuda with several processes, got mps")


@dataclass(frozen=True)
class Processes:
    """The processes of a run.

    Attributes:
        rank: the number of this process.
        count: the number of processes.
        device: the device of this process.
    """

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @classmethod
    def join(cls, device: str = "cpu") -> "Processes":
        """Joins the other processes, if ``torchrun`` started any: gloo on the CPU, nccl on GPUs.

        Args:
            device: ``"cpu"``, ``"cuda"`` for one GPU per process, or ``"mps"`` for one process.
        """
        count, local = (int(os.environ.get(name, "0")) for name in ("WORLD_SIZE", "LOCAL_RANK"))
        local_device = torch.device("cuda", local) if device == "cuda" else torch.device(device)
        if count <= 1:
            return cls(device=local_device)
        backend = "nccl" if device == "cuda" else "gloo"
        store, rank, _ = next(rendezvous("env://"))
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            # The store outlives a restart and still has the addresses of dead processes.
            attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
            store = distributed.PrefixStore(attempt, store)  # type: ignore[attr-defined]
        timeout = timedelta(minutes=10)
        distributed.init_process_group(
            backend, store=store, rank=rank, world_size=count, timeout=timeout
        )
        return cls(rank, count, local_device)

    def set_seed(self, seed: int) -> None:
        """Seeds the generators of random numbers that this process uses."""
        if self.device.type == "cpu":  # torch.manual_seed also notes the stack, for other devices.
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def leave(self) -> None:
        """Leaves the process group."""
        if self.count > 1:
            distributed.destroy_process_group()

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network, with gradients averaged over all processes."""
        return DistributedDataParallel(network) if self.count > 1 else network

    def maximum(self, *values: float) -> list[float]:
        """The maximum over all processes of each value."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor, distributed.ReduceOp.MAX)
        return [float(value) for value in tensor]

    def mean(self, value: float) -> float:
        """The mean over all processes."""
        if self.count == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor)
        return tensor.item() / self.count

    def gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, concatenated along the first axis."""
        if self.count == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.count)]
        distributed.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)

    def local_part(self, tensor: Tensor) -> Tensor:
        """This process's part of what :meth:`gather` returned, for any number of processes then."""
        return tensor.chunk(self.count)[self.rank]
