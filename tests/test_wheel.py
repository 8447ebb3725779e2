"""The built wheel in an environment of its own: the layer works with what it requires alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LAYER = """
import sys
import torch
from gridlstm import Dim, GridLSTM, SequenceGridLSTM, State

grid = GridLSTM(["time", Dim("depth", "gru", size=2)], 4)
out = grid({"depth": State(torch.zeros(3, 5, 4))})
out["depth"].hidden.sum().backward()
output, state = SequenceGridLSTM(3, 4, 2)(torch.zeros(5, 2, 3))
print(tuple(out["depth"].hidden.shape), tuple(output.shape))
"""
PROGRAM = ("rich", "tyro", "matplotlib", "safetensors", "PIL")
"""What only the command needs."""


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, check=False, cwd=ROOT, env=environment,
    )  # fmt: skip
    if check:
        assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what its metadata requires."""
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = run(*pip, "wheel", "--no-deps", "--wheel-dir", place, ROOT, check=False)
    if built.returncode != 0 and "No matching distribution" in built.stderr:
        pytest.skip("the build system cannot be installed here: no package index")
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = place.glob("gridlstm-*.whl")
    run(sys.executable, "-m", "venv", place / "venv")
    python = place / "venv" / "bin" / "python"
    own = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    # PyTorch first and pinned: whatever requires it would otherwise pull its newest and largest build.
    run(*own, "-c", ROOT / "constraints.txt", "torch", "numpy")
    run(*own, "-c", ROOT / "constraints.txt", wheel)
    return place / "venv" / "bin"


def test_the_layer_alone(environment: Path) -> None:
    assert run(environment / "python", "-W", "error", "-c", LAYER).stdout == "(3, 5, 4) (5, 2, 4)\n"
    absent = f"import importlib.util as u; print([n for n in {PROGRAM} if u.find_spec(n)])"
    assert run(environment / "python", "-c", absent).stdout == "[]\n"


@pytest.mark.parametrize(
    ("code", "name", "extra"),
    [
        ("import gridlstm; gridlstm.load('characters')", "gridlstm.load", "experiments"),
        ("import gridlstm.hub", "gridlstm.hub", "hub"),
    ],
)
def test_python_says_what_to_install(environment: Path, code: str, name: str, extra: str) -> None:
    done = run(environment / "python", "-W", "error", "-c", code, check=False)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: {name} needs packages that are not installed: pip install 'gridlstm[{extra}]'"
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["train", "memorization"], ["list"]])
def test_the_command_says_what_to_install(environment: Path, arguments: list[str]) -> None:
    done = run(environment / "gridlstm", *arguments, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "gridlstm: the command needs packages that are not installed: "
        "pip install 'gridlstm[experiments]'\n"
    )
