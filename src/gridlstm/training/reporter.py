"""Reports the progress of a run: on a terminal, as lines of JSON, in files."""

from rich.console import Console

from gridlstm.errors import one_line
from gridlstm.pipes import best_effort_stdout, print_json
from gridlstm.training.problem import Measures
from gridlstm.training.progress import ProgressLine
from gridlstm.training.rundir import RunDir
from gridlstm.training.settings import TrackerName
from gridlstm.training.stop import StopRequest
from gridlstm.training.trackers import SafeTracker
from gridlstm.training.trainer import Trainer

__all__ = ["Reporter"]


class Reporter:
    """Reports the progress of a run, as an :class:`~gridlstm.training.problem.Observer`.

    Args:
        run: the directory for metrics; ``None`` in all processes but the first, which report nothing.
        trainer: the trainer to report on.
        stop: says whether a signal requests a stop.
        track: where metrics go besides the directory, if anywhere.
    """

    def __init__(
        self,
        run: RunDir | None,
        trainer: Trainer,
        stop: StopRequest,
        track: TrackerName | None = None,
    ) -> None:
        self._run = run
        self._stop = stop
        console = Console(file=best_effort_stdout())
        self._tracker = None if run is None else SafeTracker(track, run, trainer.samples)
        self._prints_lines = run is not None and not console.is_terminal
        self._line: ProgressLine | None = None
        if run is not None and console.is_terminal:
            name, goal = one_line(run.path.name), trainer.problem.goal
            self._line = ProgressLine(name, trainer.samples, trainer.settings, goal, console)

    def __enter__(self) -> "Reporter":
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._line is not None:
            self._line.stop()
        if self._tracker is not None:
            self._tracker.close(failed=error is not None)

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
        if self._tracker is not None:
            self._tracker.evaluated(row)

    def interrupted(self) -> bool:
        """Whether a signal requests a stop."""
        return self._stop.signal is not None
