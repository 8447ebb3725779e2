"""The compiled kernel: its arithmetic, and what happens where it cannot be compiled."""

import logging
import re
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from gridlstm import Dim, GridLSTM, State
from gridlstm.bench.accuracy import call_kernel, kernel_errors
from gridlstm.engines.native import NativeBackend, kernel_name
from gridlstm.engines.native.build import library, load_kernel
from gridlstm.engines.recording import only_watched

compiled = library()
needs_compiler = pytest.mark.skipif(compiled is None, reason="no C compiler on this machine")


@pytest.fixture
def _fresh() -> Iterator[None]:
    """As in a process that has not loaded the kernel yet."""
    load_kernel.cache_clear()
    yield
    load_kernel.cache_clear()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@needs_compiler
def test_within_four_units_in_the_last_place() -> None:
    errors = kernel_errors()
    assert errors is not None
    assert all(0.5 <= error < 4 for error in errors.values())


@needs_compiler
def test_extremes_and_nan() -> None:
    x = np.array([0, -0.0, 1e-40, 100, -100, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_allclose(call_kernel("map_tanh", x), np.tanh(x), rtol=1e-6)
    np.testing.assert_allclose(call_kernel("map_sigmoid", x), sigmoid(x.astype(np.float64)), atol=1e-37)


@needs_compiler
def test_it_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    enter = NativeBackend.enter
    monkeypatch.setattr(NativeBackend, "enter", lambda self, s: (used.append(s), enter(self, s)))
    with only_watched():
        expected = run()
    assert used == [0, 1, 2, 3]
    assert torch.equal(run(), expected)
    assert len(used) == 4  # All steps in one call of the kernel.


@needs_compiler
@pytest.mark.parametrize("priority", [False, True])
@pytest.mark.parametrize("options", [{}, {"recompute": True}, {"dropout": 0.3}])
def test_steps_at_once_equal_steps_one_by_one(priority: bool, options: dict[str, object]) -> None:
    depth = Dim("depth", size=5, priority=priority)
    grid = GridLSTM(["time", depth, Dim("one", "tanh")], 20, **options)
    x = torch.randn(3, 17, 1, 20, requires_grad=True)

    def step() -> list[torch.Tensor]:
        torch.manual_seed(0)
        out = grid({"depth": State(x, x)})
        results = [t for state in out.values() for t in state if t is not None]
        loss = sum((t * torch.arange(t.numel()).view_as(t).cos()).sum() for t in results)
        return [*results, *torch.autograd.grad(loss, [x, *grid.parameters()])]

    with only_watched():
        expected = step()
    for found, want in zip(step(), expected, strict=True):
        assert torch.equal(found, want)


def run() -> torch.Tensor:
    torch.manual_seed(0)
    grid = GridLSTM(["time", Dim("depth", size=2)], 4)
    out: torch.Tensor = grid({"depth": State(torch.randn(2, 3, 4))})["depth"].hidden
    return out


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("", "no C compiler found"),
        ("/bin/false", "false failed"),
        ("/nowhere/cc", "CC: expected a program"),
    ],
)
def test_without_a_compiler_it_works_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    compiler: str,
    reason: str,
) -> None:
    expected = run()
    load_kernel.cache_clear()
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("PATH", "")
    with caplog.at_level(logging.WARNING, "gridlstm"):
        for _ in range(3):
            torch.testing.assert_close(run(), expected)
    (record,) = caplog.records
    assert "the slower PyTorch path is used" in record.getMessage()
    assert reason in record.getMessage()
    assert re.search(f"not compiled: .*{reason}", GridLSTM(["time"], 4).explain())


@pytest.mark.usefixtures("_fresh")
def test_it_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GRIDLSTM_NATIVE", "0")
    assert library() is None
    assert kernel_name() == "pytorch"
    assert "not compiled: GRIDLSTM_NATIVE=0 is set" in GridLSTM(["time"], 4).explain()
    assert not caplog.records


def test_structures_of_another_size_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gridlstm.engines.native.build.SIZES", [1, 2, 3])
    load_kernel.cache_clear()
    try:
        assert library() is None
    finally:
        load_kernel.cache_clear()
    assert "expected structures of [1, 2, 3] bytes" in caplog.text
