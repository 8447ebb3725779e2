"""What is seen of a run: a progress bar on a terminal, lines of JSON elsewhere, and its files."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from gridlstm.training.problem import Measures
from gridlstm.training.rundir import RunDir
from gridlstm.training.weights import save_weights

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["Reporter", "Signals", "say", "signals"]


class Signals:
    """Whether the run has been asked to stop, and by which signal."""

    caught: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Notes a signal; the next one of its kind is not waited for."""
        self.caught = number
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def signals() -> Iterator[Signals]:
    """Within it, SIGINT and SIGTERM ask the run to stop at the next update, with a checkpoint."""
    caught, numbers = Signals(), (signal.SIGINT, signal.SIGTERM)
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
        name: what the progress bar is of.
        samples: those done so far, and the most there will be.
        caught: whether a signal has come.
    """

    def __init__(
        self, run: RunDir | None, name: str, samples: tuple[int, int], caught: Signals
    ) -> None:
        self._run = run
        self._caught = caught
        console = Console()
        self._writer = None if run is None else _tensorboard(run, samples[0])
        self._lines = run is not None and not console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=run is None or self._lines,
        )
        self._task = self._bar.add_task(name, total=samples[1], completed=samples[0], figures="")
        self._measured = ""
        self._loss: float | None = None

    def __enter__(self) -> "Reporter":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._writer is not None:
            self._writer.close()

    def stepped(self, samples: int, loss: float) -> None:
        """Moves the bar on."""
        self._loss = loss if self._loss is None else 0.95 * self._loss + 0.05 * loss
        if not self._bar.disable:
            speed = self._bar.tasks[self._task].speed
            figures = f"loss {self._loss:.4f} {self._measured}"
            if speed:
                figures += f" {speed:.0f} samples/s"
            self._bar.update(self._task, completed=samples, figures=figures)

    def evaluated(self, row: Measures) -> None:
        """Writes a row of metrics."""
        counters = ("samples", "step", "seconds", "loss")
        self._measured = " ".join(f"{k} {v:.4f}" for k, v in row.items() if k not in counters)
        if self._run is not None:
            self._run.append(row)
        if self._lines:
            say(row)
        if self._writer is not None:
            for name, value in row.items():
                if name not in ("samples", "step"):
                    self._writer.add_scalar(name, value, int(row["samples"]))

    def improved(self, network: nn.Module) -> None:
        """Keeps the network."""
        if self._run is not None:
            save_weights(network, self._run.best)

    def interrupted(self) -> bool:
        """Whether a signal has come."""
        return self._caught.caught is not None


def say(row: dict[str, Any]) -> None:
    """A line of JSON on standard output."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def _tensorboard(run: RunDir, samples: int) -> "SummaryWriter | None":
    """A writer of TensorBoard's files, where it is installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run.path / "tensorboard"), purge_step=samples + 1)
