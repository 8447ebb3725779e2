"""Runs the command ``gridlstm`` for shell scripts, each time in a fork of a process that is ready.

Starting Python and PyTorch takes seconds, and the documents have dozens of commands. ``serve`` waits at
a socket; :data:`CLIENT` is a program in place of ``gridlstm`` that hands over its arguments, its
directory and its standard streams. What would take long is made small before it runs: see
:func:`_smaller`. What cannot run is skipped with a reason, once its arguments have been understood.
"""

import json
import os
import signal
import socket
import sys
import webbrowser
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CLIENT = """#!{python} -S
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = json.dumps([os.getcwd(), sys.argv]).encode()
    socket.send_fds(server, [len(asked).to_bytes(4, "big") + asked], [0, 1, 2])
    sys.exit(int(server.recv(16) or b"70"))
"""

SMALL = {"hidden": 8, "relu": 8, "pairs": 400, "validated": 20, "beam": 2}
"""Options of experiments that decide how long training takes, and values with which it does not."""
ABSENT = ("enwik8", "multi30k", "mnist")
"""Data that are not part of the package."""
TESTED = 60
"""Samples that ``eval`` takes unless told otherwise."""


def serve(address: str) -> None:
    """Waits for commands until it is killed."""
    from gridlstm import cli
    from gridlstm.bench.table import BENCHMARKS
    from gridlstm.commands import evaluate, sweep, train
    from gridlstm.commands.table import COMMANDS
    from gridlstm.experiments.record import import_name
    from gridlstm.experiments.translation.data import Parallel
    from gridlstm.experiments.translation.tokens import make_tokeniser
    from gridlstm.sweeps import worker

    text = Parallel.tatoeba()
    Parallel.tatoeba = lambda: text  # type: ignore[method-assign]
    for code in ("zh", "en"):
        make_tokeniser(code, "jieba").split("你好")
    train.run = _smaller(train.run)
    sweep.run = _smaller_cells(sweep.run)
    worker.subprocess = SimpleNamespace(Popen=ForkedCell, DEVNULL=None)
    evaluate.run = _fewer(evaluate.run)
    webbrowser.open = lambda address: True  # type: ignore[assignment]
    for entry in COMMANDS.values():
        for command in entry.values() if isinstance(entry, dict) else [entry]:
            import_name(command.run)  # Before the forks, which are fast then.
    for command in BENCHMARKS.values():
        module, _, function = command.run.partition(":")
        setattr(sys.modules[module], function, _skip_bench)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for the children.
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        while True:
            asked, _ = door.accept()
            if os.fork() == 0:
                _answer(asked, cli.main)
            asked.close()


def _answer(asked: socket.socket, main: Any) -> None:
    """Runs one command, and tells its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(asked, 1 << 16, 3)
    folder, sys.argv = json.loads(message[4:])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(folder)
    code = 0
    try:
        main()
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 70
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    asked.send(str(code).encode())
    os._exit(0)


def _smaller(run: Any) -> Any:
    """Training of one update, with a small network, in the place that it would have had."""
    from gridlstm.experiments.registry import experiment_of

    def train(options: Any) -> None:
        experiment = options.experiment
        missing = {getattr(experiment, name, None) for name in ("corpus", "dataset")} & {*ABSENT}
        own = (getattr(experiment, name, None) for name in ("text", "train", "folder"))
        if missing and not any(own):
            _skip(f"{missing.pop()} is not part of the package")
            return
        out = options.run.out or Path("runs") / experiment_of(experiment).run_name(experiment)
        run(replace(options, experiment=_small(experiment), run=replace(options.run, out=out)))

    return train


def _small(experiment: Any) -> Any:
    """Options for one update of a small network."""
    batch = experiment.training.batch
    changed: dict[str, Any] = {
        field.name: SMALL[field.name] for field in fields(experiment) if field.name in SMALL
    }
    changed["training"] = replace(experiment.training, samples=batch, evaluate_every=batch)
    return replace(experiment, **changed)


def _smaller_cells(run: Any) -> Any:
    def sweep(options: Any) -> None:
        few = replace(options.run, test_samples=TESTED)
        run(replace(options, experiment=_small(options.experiment), run=few))

    return sweep


class ForkedCell:
    """The process of a cell, forked instead of started: as much of ``Popen`` as a worker needs."""

    returncode: int | None = None

    def __init__(self, command: list[str], stdout: Any, **_: Any) -> None:
        from gridlstm.commands import sweep_cell

        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stdout.fileno(), 2)
            code = 70
            try:
                sweep_cell.main(*command[3:])
                code = 0
            except SystemExit as stopped:
                code = int(stopped.code or 0)
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        return self.wait(os.WNOHANG)

    def wait(self, how: int = 0) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, how)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


def _fewer(run: Any) -> Any:
    return lambda options: run(replace(options, samples=options.samples or TESTED))


def _skip_bench(options: Any) -> None:
    _skip("it takes minutes; tests/test_bench.py runs it")


def _skip(reason: str) -> None:
    sys.stderr.write(f"skipped: {' '.join(sys.argv[1:])}: {reason}\n")


if __name__ == "__main__":
    serve(sys.argv[1])
