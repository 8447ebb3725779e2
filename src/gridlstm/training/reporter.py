"""Reports the progress of a run: on a terminal, as lines of JSON, in files."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rich.console import Console

from gridlstm.errors import one_line
from gridlstm.pipes import best_effort_stdout, print_json
from gridlstm.training.problem import Measures
from gridlstm.training.progress import ProgressLine
from gridlstm.training.rundir import RunDir
from gridlstm.training.stop import StopRequest
from gridlstm.training.trainer import Trainer

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["Reporter"]


class Reporter:
    """Reports the progress of a run, as an :class:`~gridlstm.training.problem.Observer`.

    Args:
        run: the directory for metrics; ``None`` in all processes but the first, which report nothing.
        trainer: the trainer to report on.
        stop: says whether a signal requests a stop.
    """

    def __init__(self, run: RunDir | None, trainer: Trainer, stop: StopRequest) -> None:
        self._run = run
        self._stop = stop
        console = Console(file=best_effort_stdout())
        self._writer = None if run is None else _tensorboard(run, trainer.samples)
        self._prints_lines = run is not None and not console.is_terminal
        self._line: ProgressLine | None = None
        if run is not None and console.is_terminal:
            name, goal = one_line(run.path.name), trainer.problem.goal
            self._line = ProgressLine(name, trainer.samples, trainer.settings, goal, console)

    def __enter__(self) -> "Reporter":
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.stop()
        if self._writer is not None:
            self._writer.close()

    def stepped(self, samples: int, loss: float) -> None:
        """Updates the progress line."""
        if self._line is not None:
            self._line.stepped(samples, loss)

    def evaluated(self, row: Measures) -> None:
        """Reports and stores the measurements of an evaluation."""
        counters = ("samples", "step", "seconds", "loss")
        if self._line is not None:
            self._line.evaluated({name: value for name, value in row.items() if name not in counters})
        if self._run is not None:
            self._run.append_metrics(row)
        if self._prints_lines:
            print_json(row, best_effort_stdout())
        if self._writer is not None:
            for name, value in row.items():
                if name not in ("samples", "step"):
                    self._writer.add_scalar(name, value, int(row["samples"]))

    def interrupted(self) -> bool:
        """Whether a signal requests a stop."""
        return self._stop.signal is not None


def _tensorboard(run: RunDir, samples: int) -> "SummaryWriter | None":
    """A writer of TensorBoard files, if TensorBoard is installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run.path / "tensorboard"), purge_step=samples + 1)
