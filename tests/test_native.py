"""The compiled kernel: its arithmetic, and what happens where it cannot be compiled."""

import ctypes
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from gridlstm import Dim, GridLSTM, State
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


def call(name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    assert compiled is not None
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (x, y))
    getattr(compiled, name)(*pointers, ctypes.c_int64(x.size))
    return y


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@needs_compiler
@pytest.mark.parametrize(("name", "exact"), [("map_sigmoid", sigmoid), ("map_tanh", np.tanh)])
def test_within_four_units_in_the_last_place(name: str, exact: Callable) -> None:
    """Over all magnitudes: every 997th float, of both signs, where the result is a normal number."""
    bits = np.arange(0, 0x7F800000, 997, dtype=np.uint32)
    x = np.concatenate([bits, bits | 0x80000000]).view(np.float32)
    x = x[np.abs(x) < 80]
    want = exact(x.astype(np.float64))
    usable = np.abs(want) > np.finfo(np.float32).tiny
    error = np.abs(call(name, x).astype(np.float64) - want)[usable]
    unit = np.spacing(np.abs(want[usable]).astype(np.float32)).astype(np.float64)
    assert (error / unit).max() < 4


@needs_compiler
def test_extremes_and_nan() -> None:
    x = np.array([0, -0.0, 1e-40, 100, -100, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_allclose(call("map_tanh", x), np.tanh(x), rtol=1e-6)
    np.testing.assert_allclose(call("map_sigmoid", x), sigmoid(x.astype(np.float64)), atol=1e-37)


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
