"""``gridlstm watch``: follows a run that has not begun, runs, is killed, is resumed, ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gridlstm.training.lock import LOCK_FILE, locked

from .made_runs import ROWS, fill_sweep, make_run, make_sweep

Start = Callable[..., "subprocess.Popen[str]"]
LIVE = "live: reloads by itself"


@pytest.fixture
def watch() -> Iterator[Start]:
    """Starts ``gridlstm watch``, and ends it after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "gridlstm", "watch", *map(str, arguments), "--every", "0.1"]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def next_state(process: "subprocess.Popen[str]") -> tuple[str, int]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr and process.stderr.read()
    state = json.loads(line)
    return state["state"], state["samples"]


def test_from_before_the_beginning_to_the_end(watch: Start, tmp_path: Path) -> None:
    path = tmp_path / "a"
    process = watch(path)
    assert process.stderr is not None
    assert process.stderr.readline() == f"{path}: waiting for it to begin\n"
    assert not path.exists()  # Training refuses a directory with other files.
    run = make_run(path, [], reason=None, accuracy=None)
    with locked(path):
        assert next_state(process) == ("running", 0)
        page = path / "report.html"
        assert process.stderr.readline().startswith(f"{page}: open it in a browser; Ctrl-C stops")
        run.append_metrics(ROWS[0])
        assert next_state(process) == ("running", 1500)
        assert LIVE in page.read_text()
    here = (path / LOCK_FILE).read_text().split()[-1]
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    (path / LOCK_FILE).write_text(f"process {killed.pid} on {here}\n")
    assert next_state(process) == ("stopped", 1500)
    with locked(path):  # Resumed.
        assert next_state(process) == ("running", 1500)
        run.append_metrics(ROWS[1])
        assert next_state(process) == ("running", 3000)
        summary = {"reason": "samples", "samples": 3000, "seconds": 60.0, "parameters": 7}
        run.finish_session(summary, "0")
    assert next_state(process) == ("samples", 3000)
    assert (process.wait(), process.stderr.read()) == (0, "")
    assert LIVE not in page.read_text()
    assert "out of samples" in page.read_text()


def test_ctrl_c_leaves_a_page_that_does_not_reload(watch: Start, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", reason=None, accuracy=None)
    with locked(run.path):
        process = watch(run.path, "--out", tmp_path / "page.html")
        assert next_state(process) == ("running", 7500)
        assert LIVE in (tmp_path / "page.html").read_text()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert (process.returncode, output) == (0, "")
    assert "Traceback" not in errors
    assert LIVE not in (tmp_path / "page.html").read_text()


def test_ctrl_c_before_the_run_begins(watch: Start, tmp_path: Path) -> None:
    process = watch(tmp_path / "a")
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", "\n")
    assert process.returncode == 0
    assert not (tmp_path / "a").exists()


def test_damaged_files_are_waited_for(watch: Start, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", reason=None, accuracy=None)
    metrics = (run.path / "metrics.jsonl").read_text()
    (run.path / "metrics.jsonl").write_text("damaged\n")
    with locked(run.path):
        process = watch(run.path)
        assert process.stderr is not None
        assert "metrics.jsonl: Expecting value" in process.stderr.readline()
        (run.path / "metrics.jsonl").write_text(metrics)
        assert next_state(process) == ("running", 7500)


def test_a_run_whose_directory_is_removed(watch: Start, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", reason=None, accuracy=None)
    with locked(run.path):
        process = watch(run.path)
        assert next_state(process) == ("running", 7500)
    run.path.rename(tmp_path / "b")
    assert next_state(process) == ("stopped", 0)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    assert not run.path.exists()  # Training would refuse a directory with only a page in it.


def test_a_sweep(watch: Start, tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", layers=[1, 2])
    process = watch(sweep.path)
    assert [next_state(process)[0] for _ in range(2)] == ["waiting", "waiting"]
    fill_sweep(sweep)
    assert process.wait() == 0
    assert LIVE not in (sweep.path / "report.html").read_text()


def test_a_terminal_shows_a_table(
    gridlstm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    make_run(tmp_path / "a")
    code, output, _ = gridlstm("watch", tmp_path / "a")
    assert code == 0
    assert "1 run: 1 samples" in output
    assert "7,500" in output


def test_wrong_arguments(gridlstm: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        code, _, errors = gridlstm("watch", path)
        assert (code, "expected a run, a sweep or a reproduction" in errors) == (2, True)
    code, _, errors = gridlstm("watch", tmp_path, "--every", 0)
    assert (code, errors) == (2, "gridlstm: every: expected at least 0.1, got 0.0\n")
    for name in ("b", "c"):
        make_sweep(tmp_path / "two" / name, layers=[1, 2])
    code, _, errors = gridlstm("watch", tmp_path / "two")
    assert (code, "expected one run or sweep, got 2" in errors) == (2, True)
