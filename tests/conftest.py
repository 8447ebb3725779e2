"""Shape checking, NaN-filled buffers and one thread, for every test."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jaxtyping
from jaxtyping import install_import_hook

# Before the package is imported: annotations of internal modules are checked at every call. Public
# modules check their arguments themselves, and tests of bad arguments must reach those checks.
# Triton reads the source of its kernels, so those are not checked.
engines = (Path(__file__).parent.parent / "src" / "gridlstm" / "engines").iterdir()
checked = [f"gridlstm.engines.{path.stem}" for path in engines if path.name != "gpu"]
install_import_hook(
    ["gridlstm.cells", "gridlstm.block", "gridlstm.geometry", *checked], "beartype.beartype"
)

import pytest
import torch

from gridlstm.cli import main
from gridlstm.engines.workspace import Workspace

torch.set_num_threads(1)

collect_ignore = ["crash_points.py", "forked.py", "random_grids.py"]  # Programs that tests start.


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _uninitialised_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a buffer before it is written gives NaN."""
    take = Workspace.take

    def filled(self, shape, like, dtype=None):
        tensor = take(self, shape, like, dtype)
        return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor

    monkeypatch.setattr(Workspace, "take", filled)


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """For code that is compiled: the checks cannot be, and they know no symbolic sizes."""
    jaxtyping.config.update("jaxtyping_disable", True)
    torch.compiler.reset()
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def gridlstm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command in this process: exit code, output, errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gridlstm", *map(str, arguments)])
        code, handler = 0, signal.getsignal(signal.SIGINT)
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
        finally:  # The program leaves it to the system.
            signal.signal(signal.SIGINT, handler)
        return code, *capsys.readouterr()

    return run
