"""What is seen of a run: a progress bar on a terminal, lines of JSON elsewhere, and its files."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console

from gridlstm.errors import shown
from gridlstm.pipes import lasting_output
from gridlstm.training.bar import Bar
from gridlstm.training.problem import Measures
from gridlstm.training.rundir import RunDir
from gridlstm.training.trainer import Trainer

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["Reporter", "Signals", "say", "signals"]

HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none.


class Signals:
    """Whether the run has been asked to stop, and by which signal."""

    caught: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Notes a signal. The next one of its kind is not waited for.

        But a terminal that is closed may send two.
        """
        self.caught = number
        if number != HANGUP:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def signals() -> Iterator[Signals]:
    """Within it, SIGINT, SIGTERM and SIGHUP ask the run to stop at the next update, with a checkpoint.

    SIGHUP does not, if it is ignored, as by ``nohup``.
    """
    caught, numbers = Signals(), [signal.SIGINT, signal.SIGTERM]
    if HANGUP is not None and signal.getsignal(HANGUP) != signal.SIG_IGN:
        numbers.append(HANGUP)
    before = [signal.signal(number, caught) for number in numbers]
    try:
        yield caught
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Reporter:
    """Tells how a run goes, as an :class:`~gridlstm.training.trainer.Observer`.

    Args:
        run: where metrics are written; ``None`` in all processes but the first, which say nothing.
        trainer: what the progress bar is of.
        caught: whether a signal has come.
    """

    def __init__(self, run: RunDir | None, trainer: Trainer, caught: Signals) -> None:
        self._run = run
        self._caught = caught
        console = Console(file=lasting_output())
        self._writer = None if run is None else _tensorboard(run, trainer.samples)
        self._lines = run is not None and not console.is_terminal
        self._bar: Bar | None = None
        if run is not None and console.is_terminal:
            name, goal = shown(run.path.name), trainer.problem.goal
            self._bar = Bar(name, trainer.samples, trainer.settings, goal, console)

    def __enter__(self) -> "Reporter":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._writer is not None:
            self._writer.close()

    def stepped(self, samples: int, loss: float) -> None:
        """Moves the bar on."""
        if self._bar is not None:
            self._bar.stepped(samples, loss)

    def evaluated(self, row: Measures) -> None:
        """Writes a row of metrics."""
        counters = ("samples", "step", "seconds", "loss")
        if self._bar is not None:
            self._bar.evaluated({name: value for name, value in row.items() if name not in counters})
        if self._run is not None:
            self._run.append(row)
        if self._lines:
            say(row, lasting_output())
        if self._writer is not None:
            for name, value in row.items():
                if name not in ("samples", "step"):
                    self._writer.add_scalar(name, value, int(row["samples"]))

    def interrupted(self) -> bool:
        """Whether a signal has come."""
        return self._caught.caught is not None


def say(row: dict[str, Any], output: IO[str] | None = None) -> None:
    """A line of JSON, on standard output unless another is given."""
    output = output or sys.stdout
    output.write(json.dumps(row) + "\n")
    output.flush()


def _tensorboard(run: RunDir, samples: int) -> "SummaryWriter | None":
    """A writer of TensorBoard's files, where it is installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run.path / "tensorboard"), purge_step=samples + 1)
