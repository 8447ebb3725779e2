"""Sweeps by other launchers: submitit's local executor, and a real Ray. Run by ``make test-extras``."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "gridlstm", "sweep"]
SMOKE = ("parity", "--preset", "smoke", "--test-samples", "50", "--workers", "2")

with_submitit = pytest.mark.skipif(
    not find_spec("submitit"), reason="needs submitit: make test-extras installs it"
)
with_ray = pytest.mark.skipif(not find_spec("ray"), reason="needs Ray: make test-extras installs it")


def start(*arguments: object, home: Path) -> "subprocess.Popen[str]":
    command, pipe = [*COMMAND, *map(str, arguments)], subprocess.PIPE
    environment = {**os.environ, "HOME": str(home)}
    for name in [name for name in environment if name.startswith("RAY_")]:
        del environment[name]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def wait_for(condition: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    for _ in range(1200):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise TimeoutError


def sessions(folder: Path) -> dict[str, int]:
    """How many sessions each cell had."""
    return {
        path.parent.name: len(json.loads(path.read_text()))
        for path in sorted((folder / "runs").glob("*/sessions.json"))
    }


def ended(process: "subprocess.Popen[str]") -> dict[str, object]:
    """Waits for the command: how the cells ended."""
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    *_, end = [json.loads(line) for line in output.splitlines()]
    del end["end"]["sweep"]
    return dict(end["end"])


@with_submitit
def test_workers_as_jobs(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    arguments = ("--samples", 60, "--over", "seed=0,1,2", "--launcher", "slurm", "--out", out)
    assert ended(start(*SMOKE, *arguments, home=tmp_path)) == {"samples": 3}
    assert sessions(out) == {"seed=0": 1, "seed=1": 1, "seed=2": 1}
    assert len(list((out / "slurm").glob("*_submitted.pkl"))) == 2
    assert (out / "sweep.png").exists()


@with_submitit
def test_jobs_stop_with_the_command(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    arguments = ("--samples", 10**8, "--over", "seed=0", "--launcher", "slurm", "--out", out)
    command = start(*SMOKE, "--rate", 1e-9, *arguments, home=tmp_path)
    wait_for(lambda: any(out.glob("runs/*/metrics.jsonl")), command)
    command.send_signal(signal.SIGINT)
    command.communicate()
    assert command.returncode == 130
    assert json.loads((out / "runs" / "seed=0" / "summary.json").read_text())["reason"] == "interrupted"
    assert list(out.glob("runs/*/checkpoints/step-*"))


@with_submitit
def test_parameters_that_jobs_do_not_have(tmp_path: Path) -> None:
    arguments = ("--over", "seed=0", "--launcher", "slurm", "--out", tmp_path / "sweep")
    command = start(*SMOKE, *arguments, "--slurm", "no_such_thing=1", home=tmp_path)
    _, errors = command.communicate()
    assert command.returncode == 2
    assert "gridlstm sweep: slurm: " in errors
    assert "no_such_thing" in errors


def ray_workers(command: int) -> list[int]:
    """The processes in which Ray runs workers of a sweep that a command started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            name, folder = (path / "cmdline").read_text(), (path / "environ").read_text()
        except OSError:
            continue
        if name.startswith("ray::run_remotely") and f"SWEEP_TEST={command}" in folder:
            found.append(int(path.name))
    return found


@with_ray
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes by /proc")
def test_workers_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two is killed in the middle of a cell."""
    monkeypatch.setenv("SWEEP_TEST", str(os.getpid()))
    out = tmp_path / "sweep"
    arguments = ("--samples", 15_000, "--rate", 1e-9, "--over", "seed=0,1,2")
    command = start(*SMOKE, *arguments, "--launcher", "ray", "--out", out, home=tmp_path)
    wait_for(lambda: len(sessions(out)) == 2 and len(ray_workers(os.getpid())) == 2, command)
    os.kill(ray_workers(os.getpid())[0], signal.SIGKILL)
    assert ended(command) == {"samples": 3}
    assert sorted(sessions(out).values()) == [1, 1, 2]
    assert not (tmp_path / ".ray").exists(), "the token is nowhere but in the environment"
