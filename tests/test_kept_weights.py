"""Without gradients, weights are prepared once and kept until a parameter changes."""

import copy
import gc
import io
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gridlstm import Dim, GridLSTM, State
from gridlstm.training.muon import Muon


def make_grid() -> GridLSTM:
    torch.manual_seed(0)
    return GridLSTM(["time", Dim("depth", size=2)], 8)


def run(grid: GridLSTM) -> Tensor:
    x = torch.linspace(-1, 1, 3 * 4 * 8).view(3, 4, 8)
    with torch.no_grad():
        return grid({"depth": State(x, x)})["depth"].hidden


def run_reference(grid: GridLSTM) -> Tensor:
    twin = copy.deepcopy(grid)
    twin.engine = "reference"
    return run(twin)


def step(make: Callable[[GridLSTM], torch.optim.Optimizer]) -> Callable[[GridLSTM], None]:
    def change(grid: GridLSTM) -> None:
        x = torch.ones(2, 3, 8)
        grid({"depth": State(x, x)})["depth"].hidden.square().sum().backward()
        run(grid)  # An evaluation between the backward pass and the step.
        make(grid).step()

    return change


def fill(grid: GridLSTM) -> None:
    with torch.no_grad():
        grid.weight_time.fill_(0.1)


def fill_in_inference_mode(grid: GridLSTM) -> None:
    with torch.inference_mode():
        grid.weight_depth.mul_(2)


def replace_data(grid: GridLSTM) -> None:
    grid.weight_depth.data = grid.weight_depth.data * 2


def replace_parameter(grid: GridLSTM) -> None:
    grid.weight_depth = torch.nn.Parameter(grid.weight_depth.detach() * 2)


def change_data_and_mode(grid: GridLSTM) -> None:
    grid.weight_depth.data.mul_(2)  # PyTorch does not count this.
    grid.eval()


def load(grid: GridLSTM) -> None:
    grid.load_state_dict({name: 2 * t for name, t in grid.state_dict().items()})


CHANGES: dict[str, Callable[[GridLSTM], None]] = {
    "fill": fill,
    "in inference mode": fill_in_inference_mode,
    "new data": replace_data,
    "new parameter": replace_parameter,
    "data, then eval": change_data_and_mode,
    "load_state_dict": load,
    "initialisation": lambda grid: grid.reset_parameters(),
    "vector": lambda grid: torch.nn.utils.vector_to_parameters(torch.ones(1312), grid.parameters()),
    "bias": lambda grid: torch.nn.init.ones_(grid.bias_time),
    "sgd": step(lambda g: torch.optim.SGD(g.parameters(), 0.5, foreach=False)),
    "sgd, foreach": step(lambda g: torch.optim.SGD(g.parameters(), 0.5, foreach=True)),
    "sgd, fused": step(lambda g: torch.optim.SGD(g.parameters(), 0.5, fused=True)),
    "adam, foreach": step(lambda g: torch.optim.Adam(g.parameters(), 0.5, foreach=True)),
    "adam, fused": step(lambda g: torch.optim.Adam(g.parameters(), 0.5, fused=True)),
    "adagrad, fused": step(lambda g: torch.optim.Adagrad(g.parameters(), 0.5, fused=True)),
    "muon": step(lambda g: Muon(g, lr=0.5)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_changes_are_seen(change: str, calls: int) -> None:
    grid = make_grid()
    before = [run(grid) for _ in range(calls)][-1]
    CHANGES[change](grid)
    after = run(grid)
    assert not torch.equal(after, before)
    torch.testing.assert_close(after, run_reference(grid))
    assert torch.equal(run(grid), run(grid))
    torch.testing.assert_close(run(grid), run_reference(grid))


def test_they_are_the_same_tensors_until_then() -> None:
    grid = make_grid()
    with torch.no_grad():
        first = grid.phase_weights()[0].weight
        assert grid.phase_weights()[0].weight is first
        grid.weight_time.add_(1)
        assert grid.phase_weights()[0].weight is not first
    assert grid.phase_weights()[0].weight.requires_grad


def test_another_dtype() -> None:
    grid = make_grid()
    run(grid), run(grid)
    grid.double()
    with torch.no_grad():
        x = torch.ones(1, 2, 8, dtype=torch.float64)
        assert grid({"depth": State(x, x)})["depth"].hidden.dtype == torch.float64


def test_functional_call() -> None:
    grid = make_grid()
    run(grid), run(grid)
    x = torch.ones(1, 2, 8)
    doubled = {name: 2 * t.detach() for name, t in grid.named_parameters()}
    with torch.no_grad():
        got = torch.func.functional_call(grid, doubled, ({"depth": State(x, x)},))["depth"].hidden
        grid.load_state_dict(doubled)
        assert torch.equal(grid({"depth": State(x, x)})["depth"].hidden, got)


def test_kept_weights_are_neither_copied_nor_saved() -> None:
    grid = make_grid()
    expected = [run(grid) for _ in range(3)][-1]
    file = io.BytesIO()
    torch.save(grid, file)
    assert len(file.getvalue()) < 20_000
    assert torch.equal(run(copy.deepcopy(grid)), expected)


def test_kept_weights_are_freed() -> None:
    grid = make_grid()
    run(grid), run(grid)
    with torch.no_grad():
        kept = weakref.ref(grid.phase_weights()[0].weight)
    assert kept() is not None
    grid.train()
    gc.collect()
    assert kept() is None


def test_inference_mode_and_gradients_in_turn() -> None:
    grid = make_grid()
    x = torch.ones(1, 2, 8)
    with torch.inference_mode():
        for _ in range(2):
            expected = grid({"depth": State(x, x)})["depth"].hidden
    out = grid({"depth": State(x, x)})["depth"].hidden
    out.sum().backward()
    assert torch.equal(out, expected)
    assert torch.equal(run(grid), run(grid))
