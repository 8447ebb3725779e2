"""The Triton backend equals the reference, in Triton's interpreter: outputs and every gradient.

The interpreter is chosen when Triton is imported, so these tests need a process of their own, with
TRITON_INTERPRET=1, which ``make test-extras`` starts. The grids are those of the other backends' tests.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from gridlstm import Dim, State
from gridlstm.engines import dispatch
from gridlstm.engines.backend import kernel_reasons
from gridlstm.engines.gpu import triton_backend
from gridlstm.engines.gpu.triton_backend import DTYPES, implements
from gridlstm.engines.native import use_native
from gridlstm.engines.torch_backend import TorchBackend

from .test_engines import CASES, FLOAT64, Case, run

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="needs Triton and TRITON_INTERPRET=1: make test-extras has both",
)
SUPPORTED = {
    name: case
    for name, case in CASES.items()
    if not kernel_reasons(case.grid().block, torch.empty(1), torch.float32, DTYPES, implements)
}
assert len(SUPPORTED) >= 39, "fewer grids are compared with the reference than there were"
ALL_OPTIONS = Case(
    (
        Dim("a", "gru", hidden_size=3, reverse=True),
        Dim("b", hidden_size=5, size=2, tied=False),
        Dim("c", "tanh", hidden_size=17, priority=True),
    ),
    (2, 2, 1),
    batch=5,
    options={"dropout": 0.3},
    mask=True,
)


@pytest.fixture(autouse=True)
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each kernel was launched: at least once in each test."""
    counts: Counter[str] = Counter()
    launch = triton_backend.launch

    def counted(name, arguments):
        counts[name] += 1
        launch(name, arguments)

    monkeypatch.setattr(triton_backend, "launch", counted)
    with use_native(False):
        yield counts
    assert counts["forward"] > 0
    assert counts["backward"] > 0


def check(case: Case, recompute: bool = False, **tolerance: float) -> None:
    grid = case.grid()
    sides, call = case.sides(grid), case.call()
    grid.engine = "reference"
    expected = run(case, grid, sides, call)
    grid.engine, grid.recompute = "wavefront", recompute
    assert grid.explain().splitlines()[:2] == ["engine: wavefront", "backend: Triton"]
    found = run(case, grid, sides, call)
    for want, got in zip(expected, found, strict=True):
        torch.testing.assert_close(got, want, **(tolerance or FLOAT64))


@pytest.mark.parametrize("case", SUPPORTED.values(), ids=SUPPORTED)
def test_it_equals_the_reference(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "name", ["priority", "untied in three", "GRU, untied, priority, dropout", "mask"]
)
def test_recompute(name: str) -> None:
    check(CASES[name], recompute=True)


def test_all_options_at_odd_sizes(launches: Counter[str]) -> None:
    check(ALL_OPTIONS)
    assert launches.keys() == {"enter", "read", "forward", "backward", "finish"}


@pytest.mark.parametrize(("batch", "hidden"), [(1, 1), (3, 5), (9, 1), (2, 65)])
def test_tiles(batch: int, hidden: int) -> None:
    """Fewer and more rows and columns than a tile has."""
    check(Case((Dim("a"), Dim("b", "relu")), (2, 2), batch=batch, hidden_size=hidden))


@pytest.mark.parametrize("name", ["2-LSTM", "standard", "GRU", "tanh and relu", "dropout, priority"])
def test_float32(name: str) -> None:
    check(replace(CASES[name], dtype=torch.float32), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["one step", "GRU, untied, priority, dropout", "tanh and relu"])
def test_products_in_low_precision(name: str, dtype: torch.dtype) -> None:
    """As the compiled kernel's test: within the precision of the products of float32's results."""
    case = replace(CASES[name], dtype=torch.float32)
    grid = case.grid()
    with torch.no_grad():
        for parameter in grid.parameters():
            parameter /= 2  # Tame enough for an error to stay small over a whole grid.
    sides, call = case.sides(grid), case.call()
    grid.engine = "reference"
    expected = run(case, grid, sides, call)
    grid.engine = "wavefront"
    with torch.autocast("cpu", dtype):
        assert "backend: Triton" in grid.explain()
        found = run(case, grid, sides, call)
    for want, got in zip(expected, found, strict=True):
        assert got.dtype == torch.float32
        error = (got - want).norm() / want.norm().clamp(min=1e-3)
        assert error < 0.03, f"relative error {error:.3f}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("transform", ["lstm", "gru"])
def test_saturated_gates_in_low_precision(
    transform: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gates close to 0 and 1 are encoded as by the PyTorch backend, so that their slopes survive.

    One block, and vectors that bfloat16 can represent, because the interpreter truncates to bfloat16
    where GPUs round: a longer grid would amplify the difference.
    """
    case = Case((Dim("a", transform, size=1),), (1,), batch=9, dtype=torch.float32)
    grid = case.grid()
    with torch.no_grad():
        for parameter in grid.parameters():
            parameter *= 5
    sides, call = case.sides(grid), case.call()
    sides = {name: state.map(lambda t: t.detach().bfloat16().float()) for name, state in sides.items()}
    sides = {name: state.map(lambda t: t.requires_grad_()) for name, state in sides.items()}
    with torch.autocast("cpu", dtype):
        found = run(case, grid, sides, call)
        monkeypatch.setattr(dispatch, "BACKENDS", (TorchBackend,))
        expected = run(case, grid, sides, call)
    for want, got in zip(expected, found, strict=True):
        assert (got - want).norm() <= 0.01 * want.norm()


def test_nan_in_the_padding_goes_nowhere() -> None:
    case = Case((Dim("time"), Dim("depth", "gru")), (3, 2), batch=2, lengths={"time": (3, 1)})
    grid = case.grid()
    sides, call = case.sides(grid), case.call()
    padded = sides["depth"].hidden.detach().clone()
    padded[1, 1:] = float("nan")
    padded.requires_grad_()
    results = []
    for hidden in (sides["depth"].hidden, padded):
        out = grid({**sides, "depth": State(hidden)}, **call)
        loss = out["time"].hidden.square().sum() + out["depth"].hidden[1, :1].square().sum()
        results.append([out["time"].hidden, *torch.autograd.grad(loss, list(grid.parameters()))])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want)
