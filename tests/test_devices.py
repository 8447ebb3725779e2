"""Devices that this machine does not have: on ``meta`` tensors, calls do what every device can do."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.training.processes import Processes, check_device
from gridlstm.training.weights import make_on_meta

from .test_engines import CASES, tensors


class Portable(TorchDispatchMode):
    """Refuses float64 on the device, which MPS does not have, and what waits for the device."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        given = tensor_leaves((args, kwargs))
        results = tensor_leaves(result := operation(*args, **(kwargs or {})))
        for tensor in (*given, *results):
            assert not tensor.is_meta or tensor.dtype != torch.float64, operation
        if any(tensor.is_meta for tensor in given):
            assert all(tensor.is_meta for tensor in results), operation
        assert "_local_scalar_dense" not in str(operation)
        return result


def tensor_leaves(tree: object) -> Sequence[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


@pytest.mark.parametrize(
    "name",
    [
        *("2-LSTM", "untied in three", "GRU, untied, priority, dropout", "callable over the vector"),
        *("peepholes, untied, priority, standard", "tanh and relu", "4-LSTM"),
    ],
)
def test_the_engine_is_portable(name: str) -> None:
    """The PyTorch backend, which runs on any device: outputs, gradients and the trace."""
    case = replace(CASES[name], dtype=torch.float32, lengths={})
    grid = case.grid().to("meta")
    sides = {
        name: state.map(lambda t: t.detach().to("meta").requires_grad_())
        for name, state in case.sides(grid).items()
    }
    assert "backend: PyTorch" in grid.explain()
    mask = case.call()["mask"]
    for grid.recompute in (False, True):
        with Portable():
            out, blocks = grid(sides, mask=None if mask is None else mask.to("meta"), trace=True)
            loss = sum(t.sum() for t in (*tensors(out), *tensors(blocks)))
            torch.autograd.grad(loss, [*grid.parameters(), *tensors(sides)])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_losses_are_portable(name: str) -> None:
    experiment = EXPERIMENTS[name]
    problem = experiment.make_problem(experiment.presets["smoke"])
    network = make_on_meta(problem.network)
    with Portable():
        problem.loss(network, 0, 4).backward()
    assert all(p.grad is not None and p.grad.is_meta for p in network.parameters())


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_missing_device(device, gridlstm, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    run = ("train", "parity", "--preset", "smoke", "--out", tmp_path / "run", "--device", device)
    code, output, errors = gridlstm(*run)
    assert (code, output) == (2, "")
    assert errors == (
        f"gridlstm train: device: expected cpu, got {device}, which this machine does not have\n"
    )
    assert not (tmp_path / "run").exists()


def test_one_process_per_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    check_device("mps")
    assert Processes.join("mps").device == torch.device("mps")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        ValueError, match="device: expected cpu or cuda with several processes, got mps"
    ):
        check_device("mps")
