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
from dataclasses import fields, replace
from pathlib import Path
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
    from gridlstm.bench import command as bench
    from gridlstm.commands import characters, evaluate, images, plot, train, translation  # noqa: F401
    from gridlstm.data.parallel import Parallel
    from gridlstm.data.tokens import make_tokeniser

    text = Parallel.tatoeba()
    Parallel.tatoeba = lambda: text  # type: ignore[method-assign]
    for code in ("zh", "en"):
        make_tokeniser(code, "jieba").split("你好")
    train.run = _smaller(train.run)
    evaluate.run = _fewer(evaluate.run)
    bench.run = lambda options: _skip("it takes minutes; tests/test_bench.py runs it")
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
    from gridlstm.commands.train import default_name

    def train(options: Any) -> None:
        experiment = options.experiment
        missing = {getattr(experiment, name, None) for name in ("corpus", "dataset")} & {*ABSENT}
        if missing and not getattr(experiment, "text", None) and not getattr(experiment, "train", None):
            _skip(f"{missing.pop()} is not part of the package")
            return
        batch = experiment.training.batch
        changed: dict[str, Any] = {
            field.name: SMALL[field.name] for field in fields(experiment) if field.name in SMALL
        }
        changed["training"] = replace(experiment.training, samples=batch, evaluate_every=batch)
        out = options.run.out or Path("runs") / default_name(experiment)
        run(
            replace(
                options, experiment=replace(experiment, **changed), run=replace(options.run, out=out)
            )
        )

    return train


def _fewer(run: Any) -> Any:
    return lambda options: run(replace(options, samples=options.samples or TESTED))


def _skip(reason: str) -> None:
    sys.stderr.write(f"skipped: {' '.join(sys.argv[1:])}: {reason}\n")


if __name__ == "__main__":
    serve(sys.argv[1])
