"""Hooks for saved tensors get all that a grid keeps for its backward pass."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import checkpoint

from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.native import use_native

Forward = Callable[[Tensor], Tensor]


@pytest.fixture(params=["kernel", "PyTorch", "recompute", "masked", "bfloat16", "dropout", "own cell"])
def forward(request) -> tuple[GridLSTM, Forward]:
    torch.manual_seed(0)
    depth = Dim("depth", torch.tanh, size=3) if request.param == "own cell" else Dim("depth", size=3)
    grid = GridLSTM(
        ["time", depth],
        16,
        recompute=request.param == "recompute",
        dropout=0.5 if request.param == "dropout" else 0.0,
    )
    lengths = {"time": torch.tensor([5, 2])} if request.param == "masked" else None

    def run(x: Tensor) -> Tensor:
        torch.manual_seed(1)
        with (
            use_native(request.param != "PyTorch"),
            torch.autocast("cpu", torch.bfloat16, enabled=request.param == "bfloat16"),
        ):
            side = State(x, x if depth.has_memory else None)
            return grid({"depth": side}, lengths=lengths)["depth"].hidden

    return grid, run


def gradients(grid: GridLSTM, out: Tensor, x: Tensor, **options: bool) -> list[Tensor]:
    return list(torch.autograd.grad(out.square().sum(), [x, *grid.parameters()], **options))


def entering() -> Tensor:
    return torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(2)).requires_grad_()


def test_checkpoint(forward: tuple[GridLSTM, Forward]) -> None:
    grid, run = forward
    x = entering()
    out = checkpoint(run, x, use_reentrant=False)
    for got, expected in zip(gradients(grid, out, x), gradients(grid, run(x), x), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("hooks", ["save_on_cpu", "that change nothing"])
def test_hooks_and_a_second_backward(forward: tuple[GridLSTM, Forward], hooks: str) -> None:
    grid, run = forward
    x = entering()
    with save_on_cpu() if hooks == "save_on_cpu" else saved_tensors_hooks(lambda t: t, lambda t: t):
        out = run(x)
    first, second = (gradients(grid, out, x, retain_graph=keep) for keep in (True, False))
    for got, again, expected in zip(first, second, gradients(grid, run(x), x), strict=True):
        assert torch.equal(got, expected)
        torch.testing.assert_close(again, expected)


def test_nothing_else_is_held(forward: tuple[GridLSTM, Forward]) -> None:
    """What the hooks have stored elsewhere is freed: no reference of the grid is left."""
    grid, run = forward
    stored: list[tuple[Tensor, StorageWeakRef]] = []
    own = {t.untyped_storage().data_ptr() for t in grid.parameters()}

    def pack(t: Tensor) -> int:
        stored.append((t.detach().clone(), StorageWeakRef(t.untyped_storage())))
        return len(stored) - 1

    x = entering()
    with saved_tensors_hooks(pack, lambda place: stored[place][0]):
        out = run(x)
    states = 2 * 5 * 3 * 2 * 16  # Of one kind, for all blocks.
    rows = [(t, held) for t, held in stored if t.numel() >= states and t.data_ptr() not in own]
    assert len(rows) >= (1 if grid.recompute else 2)
    kept = [t for t, held in rows if not held.expired()]
    assert not [t for t in kept if t.dim() == 3 and t.shape[0] == 15]
    for got, expected in zip(gradients(grid, out, x), gradients(grid, run(x), x), strict=True):
        assert torch.equal(got, expected)
