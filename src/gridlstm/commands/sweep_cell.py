"""The process of one cell of a sweep: claims it, trains it, tests it. A worker starts it.

Its claim comes first, before PyTorch is loaded, and is released last. What it prints goes to the log of
the cell.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from gridlstm.commands.exit_codes import exit_on_error
from gridlstm.errors import ExpectedError
from gridlstm.sweeps.claims import Claim, newest_claim
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.status import has_ended
from gridlstm.training.lock import LockedError, locked
from gridlstm.training.rundir import RunDir

__all__ = ["main"]

DEATHS = 3
"""A cell whose process was killed this many times, without progress in between, has failed."""
PAUSE = 5.0
"""Seconds to wait when another process trains in the cell's directory."""


def main(
    folder: str, name: str, number: str, parent: str, device: str, data: str | None = None
) -> None:
    """Works on a cell, if nobody else does.

    Args:
        folder: the directory of the sweep.
        name: of the cell.
        number: of the claim to take.
        parent: the process that started this one. When it is gone, this one stops as well.
        device: where to compute.
        data: the directory of data sets.
    """
    with exit_on_error("gridlstm sweep"):
        sweep = SweepDir.open(Path(folder))
        run = sweep.run(name)
        claims, step = sweep.claims(name), _newest_step(run)
        before = newest_claim(claims)
        deaths = _deaths(before, step)
        claim = Claim.take(claims, int(number), step=step, deaths=deaths)
        if claim is None:
            return
    _stop_on_signal(claim)
    claim.keep(int(parent), lambda: os.kill(os.getpid(), signal.SIGTERM))
    code = 0
    try:
        with exit_on_error("gridlstm train"):
            if deaths >= DEATHS:
                killed = f"killed {deaths} times, or out of memory; before: {sweep.last_line(name)}"
                raise ExpectedError(killed, code=1)
            if _in_use(run):
                time.sleep(PAUSE)
            elif sweep.failure(name) is None:
                _work(sweep, name, run, device, None if data is None else Path(data))
    except SystemExit as stopped:
        code = int(stopped.code or 0)
        if 0 < code < 128:
            sweep.record_failure(name, code, sweep.last_line(name))
    claim.release()
    sys.exit(code)


def _work(sweep: SweepDir, name: str, run: RunDir, device: str, data: Path | None) -> None:
    from gridlstm.commands import evaluate, train
    from gridlstm.commands.options import Eval, RunOptions, Train

    if not has_ended(run):
        how = RunOptions(out=run.path, resume=True, threads=1, device=device, data=data)  # type: ignore[arg-type]
        train.run(Train(sweep.plan.cells[name].options, how))
    if run.read_result("evaluation.json") is None:
        evaluate.run(Eval(run=run.path, samples=sweep.plan.test_samples, data=data))


def _in_use(run: RunDir) -> bool:
    """Whether a process trains there that has lost its claim, because it was suspended for long."""
    if not run.path.exists():
        return False
    try:
        with locked(run.path):
            return False
    except LockedError:
        return True


def _newest_step(run: RunDir) -> int:
    """The update of the newest checkpoint: how far the cell has come."""
    steps = [path.name.removeprefix("step-") for path in run.checkpoints.glob("step-*")]
    return max((int(step) for step in steps if step.isdecimal()), default=-1)


def _deaths(before: Claim | None, step: int) -> int:
    """How often the process of a cell was killed since it last made progress."""
    if before is None or before.released:
        return 0
    earlier = before.holder.get("deaths", 0) if before.holder.get("step", step) == step else 0
    return int(earlier) + 1


def _stop_on_signal(claim: Claim) -> None:
    """While nothing is trained, a signal ends the process at once. Training has its own handlers."""

    def leave(signum: int, frame: FrameType | None) -> None:
        claim.release()
        os._exit(128 + signum)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)


if __name__ == "__main__":
    main(*sys.argv[1:])
