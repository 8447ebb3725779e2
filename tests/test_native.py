"""The compiled kernel: its arithmetic, and what happens where it cannot be compiled."""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from gridlstm import Dim, GridLSTM, State
from gridlstm.bench.accuracy import call_kernel, kernel_errors
from gridlstm.engines.native import build, pointwise
from gridlstm.engines.native.build import library

compiled = library()
needs_compiler = pytest.mark.skipif(compiled is None, reason="no C compiler on this machine")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """As in a process that has not compiled anything yet, with an empty cache."""
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    library.cache_clear()
    yield tmp_path / "cache"
    library.cache_clear()


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
    forward = pointwise.NativePointwise.forward
    monkeypatch.setattr(
        pointwise.NativePointwise,
        "forward",
        lambda self, s, p, **kw: (used.append(s), forward(self, s, p, **kw)),
    )
    run()
    assert used == [0, 1, 2, 3]


def run() -> torch.Tensor:
    torch.manual_seed(0)
    grid = GridLSTM(["time", Dim("depth", size=2)], 4)
    out: torch.Tensor = grid({"depth": State(torch.randn(2, 3, 4))})["depth"].hidden
    return out


@needs_compiler
def test_it_is_compiled_once_and_found_again(fresh: Path) -> None:
    assert library() is not None
    (built,) = fresh.iterdir()
    made = built.stat().st_mtime_ns
    library.cache_clear()
    assert library() is not None
    assert [path.stat().st_mtime_ns for path in fresh.iterdir()] == [made]


@needs_compiler
def test_a_damaged_file_is_built_anew(fresh: Path) -> None:
    name = Path(library()._name).name
    library.cache_clear()
    (fresh / name).unlink()
    (fresh / name).write_bytes(b"not a library")
    assert library() is not None


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [("", "no C compiler found"), ("false", "false failed"), ("/nowhere/cc", "No such file")],
)
def test_without_a_compiler_it_works_and_says_so_once(
    fresh: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    compiler: str,
    reason: str,
) -> None:
    expected = run()
    library.cache_clear()
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("GRIDLSTM_CACHE", str(fresh / "other"))
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    with caplog.at_level(logging.WARNING, "gridlstm"):
        for _ in range(3):
            torch.testing.assert_close(run(), expected)
    (record,) = caplog.records
    assert "the slower PyTorch path is used" in record.getMessage()
    assert reason in record.getMessage()


def test_it_can_be_switched_off(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GRIDLSTM_NATIVE", "0")
    assert library() is None
    assert not caplog.records
