"""Kills short training runs at every file-system event, and checks what is left and what is resumed.

``python tests/crash_points.py FOLDER RANDOM`` prints how many runs it killed, and where; the first
failure ends it with a traceback. Each run is a fork of this process, which has imported everything.
Before that, ``RANDOM`` runs get SIGKILL at random moments.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

import gridlstm.commands.train as command
import gridlstm.training.rundir as rundir
from gridlstm.commands.options import RunOptions, Train
from gridlstm.engines.native import kernel_name
from gridlstm.experiments.parity.options import ParityOptions
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.trained import stored_weights
from gridlstm.files import checksum
from gridlstm.training.problem import Measures
from gridlstm.training.rundir import RunDir
from gridlstm.training.settings import Training
from test_training import Line

SHORT = Training(batch=8, samples=8 * 2, evaluate_every=8, checkpoint_minutes=1e-9)
"""An evaluation and a checkpoint after each update, and one more at the end."""
LONG = replace(SHORT, samples=8 * 4)
ERRORS = (0.5, 0.7, 0.4, 0.6)
"""What evaluations find: the best network is never the last, and a longer run has a better one."""
KILLED, FAILED = 9, 3


class Wavering(Line):
    def evaluate(self, network: nn.Module, number: int) -> Measures:
        return {"error": ERRORS[number - 1], "also": super().evaluate(network, number)["error"]}


@dataclass(frozen=True)
class Session:
    """A command: how long it trains, and with which options."""

    training: Training
    resume: bool = False
    overwrite: bool = False

    def run(self, path: Path) -> None:
        asked = RunOptions(out=path, resume=self.resume, overwrite=self.overwrite)
        command.run(Train(ParityOptions(training=self.training), asked))


class Killer:
    """Counts file-system events of this process, and ends it before one of them.

    Args:
        at: which one; none if 0.
        torn: of a file that was to be forced to the disk, the end is missing.
    """

    def __init__(self, at: int, torn: bool) -> None:
        self.at, self.torn = at, torn
        self.events: list[str] = []
        os.fsync = self.forced  # It has no audit event.
        sys.addaudithook(self.audited)

    def audited(self, event: str, arguments: tuple) -> None:
        changes = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate")
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        if event in changes or (event == "open" and (arguments[2] or 0) & writes):
            self.happens(event)

    def forced(self, handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if self.torn and len(self.events) + 1 == self.at:
            self.at = 0
            os.truncate(path, max(0, path.stat().st_size - 10))
            os._exit(KILLED)
        self.happens("fsync folder" if path.is_dir() else "fsync")

    def happens(self, event: str) -> None:
        self.events.append(event)
        if len(self.events) == self.at:
            os._exit(KILLED)


def start(session: Session, path: Path, at: int | None = None, torn: bool = False) -> int:
    """Starts a session in a process of its own, to be killed at an event if one is given.

    If it is not, the events are written into a file beside the run.
    """
    child = os.fork()
    if child:
        return child
    try:
        killer = None if at is None else Killer(at, torn)
        session.run(path)
        if killer is not None:
            events = list(killer.events)
            path.with_name("events.json").write_text(json.dumps(events))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(FAILED)
    os._exit(0)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def result(path: Path) -> tuple:
    """What has to be the same, however often a run was killed: weights, metrics, summary."""
    run = RunDir.open(path)
    summary = run.summary()
    assert summary is not None, "it has not ended"
    assert summary["model"] == checksum(run.model), "the model is not the one that the summary names"
    rows = [{**row, "seconds": 0} for row in run.metrics()]
    told = {name: summary[name] for name in ("reason", "samples", "measures", "best")}
    weights = {name: tensor.tolist() for name, tensor in load_file(run.model).items()}
    return weights, rows, told


def check_left(path: Path, before: tuple | None) -> None:
    """What a kill may leave: a run that has not ended, or all of one that has."""
    run = RunDir(path)
    if not (path / "config.json").exists():
        assert before is None, "a run that had ended is gone"
        return
    if run.summary() is not None:
        result(path)
    if before is not None:
        found = stored_weights(run)
        if found.tensors is None:  # Otherwise its checkpoint was loaded, which has a checksum.
            load_file(found.source)
        load_file(run.model)


def check_resumed(path: Path, expected: tuple) -> None:
    assert result(path) == expected, "not bit for bit the same"
    left = [found for found in path.rglob(".*") if found.name != ".lock"]
    assert not left, f"left behind: {left}"
    assert len(list((path / "checkpoints").iterdir())) <= 3


def scenarios(folder: Path) -> dict[str, tuple[Path | None, Session, Session]]:
    """What is there before, what is killed, and what is started after that."""
    whole = folder / "whole"
    return {
        "first": (None, Session(SHORT), Session(SHORT, resume=True)),
        "longer": (whole, Session(LONG, resume=True), Session(LONG, resume=True)),
        "again": (whole, Session(SHORT, resume=True), Session(LONG, resume=True)),
        "overwrite": (whole, Session(LONG, overwrite=True), Session(LONG, overwrite=True)),
    }


def enumerate_points(folder: Path) -> Counter[str]:
    """Kills every scenario at every event, and at every fsync with a file that lacks its end, too."""
    counted: Counter[str] = Counter()
    for name, (before, session, after) in scenarios(folder).items():
        expected = result(folder / ("whole" if after.training == SHORT else "whole-long"))
        path = folder / name / "run"
        _place(before, path)
        assert ended(start(session, path, at=0)) == 0
        events = json.loads(path.with_name("events.json").read_text())
        points = [(at, False) for at in range(1, len(events) + 1)]
        points += [(at, True) for at, _ in points if events[at - 1] == "fsync"]
        for at, torn in points:
            where = f"{name}, event {at} of {len(events)} ({events[at - 1]}), torn: {torn}"
            _place(before, path)
            code = ended(start(session, path, at, torn))
            assert code == KILLED, f"{where}: ended with {code}"
            try:
                if name != "overwrite":
                    check_left(path, None if before is None else result(before))
                resumed = after if (path / "config.json").exists() else replace(after, resume=False)
                assert ended(start(resumed, path)) == 0
                check_resumed(path, expected)
            except Exception as error:
                raise AssertionError(where) from error
            counted[f"{name}: {'torn ' * torn}{events[at - 1]}"] += 1
    return counted


def kill_randomly(folder: Path, count: int) -> int:
    """SIGKILL at random moments, until there have been so many."""
    generator, path = random.Random(0), folder / "random" / "run"
    expected, kills = result(folder / "whole-long"), 0
    session = Session(LONG, resume=True)
    seconds = 0.2
    while kills < count:
        _place(None, path)
        while True:
            began = time.monotonic()
            child = start(session, path)
            time.sleep(generator.random() * seconds)
            os.kill(child, signal.SIGKILL)
            code = ended(child)
            if code == 0:
                seconds = max(0.02, time.monotonic() - began)
                break
            assert code == -signal.SIGKILL
            kills += 1
            check_left(path, None)
        check_resumed(path, expected)
    return kills


def _place(before: Path | None, path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    if before is not None:
        shutil.copytree(before, path)


def main(folder: Path, count: int) -> None:
    torch.set_num_threads(1)
    Experiment.make_problem = lambda *_: Wavering()
    rundir.environment = dict  # It asks git.
    os.fsync = lambda _: None  # A killed process does not need it, and it takes most of the time.
    kernel_name()
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    Session(SHORT).run(folder / "warm")  # What is done once in a process is done before it forks.
    for name, training in (("whole", SHORT), ("whole-long", LONG)):
        assert ended(start(Session(training), folder / name)) == 0
    best = [result(folder / name)[2]["best"]["samples"] for name in ("whole", "whole-long")]
    kills = kill_randomly(folder, count)
    points = enumerate_points(folder)
    os.write(output, json.dumps({"best": best, "random": kills, "points": points}).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
