"""How far the runs of a report are, also those that are still training. No PyTorch here."""

from collections.abc import Callable

from gridlstm.pages.report.parts import Part
from gridlstm.sweeps.plan import SweepCell
from gridlstm.sweeps.status import ENDED, CellState, SweepWatch
from gridlstm.training.lock import is_abandoned
from gridlstm.training.rundir import RunDir

__all__ = ["follow"]


def follow(part: Part) -> Callable[[], list[CellState]]:
    """A function that looks at all runs of a part, each time as they are then.

    It raises :class:`~gridlstm.training.rundir.RunError` if the files of a run are damaged, unless the
    run is a cell of a sweep.
    """
    if part.sweep is not None:
        return SweepWatch(part.sweep).look
    measure = part.experiment.measure.name
    return lambda: [_state(name, run, measure) for name, run in part.runs.items()]


def _state(name: str, run: RunDir, measure: str) -> CellState:
    summary, rows = run.summary(), run.metrics()
    last = rows[-1] if rows else {}
    if summary is not None:
        state = ENDED.get(summary["reason"], "stopped")
    else:
        state = "stopped" if is_abandoned(run.path) else "running"
    return CellState(
        SweepCell(name, {}, None),
        state,
        last.get("samples", 0),
        last.get("seconds", 0.0),
        last.get(measure),
    )
