"""How far the cells of a sweep are. No PyTorch here."""

import json
from typing import Any, NamedTuple

from gridlstm.sweeps.claims import ClaimWatch, newest_claim
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.plan import SweepCell
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["ENDED", "OVER", "CellState", "SweepWatch", "has_ended"]

ENDED = {"solved": "solved", "samples": "samples", "minutes": "cut off"}
"""How a run can end, as a run calls it and as a sweep calls it."""
OVER = (*ENDED.values(), "failed")
"""States of cells with which nothing is left to do."""


class CellState(NamedTuple):
    """How far a cell is.

    Attributes:
        cell: which one.
        state: ``waiting``, ``running``, ``stopped``, ``solved``, ``samples`` (all were used),
            ``cut off`` (by the limit of minutes) or ``failed``.
        samples: trained on.
        seconds: of training.
        measured: what the experiment is judged by; of a cell that has ended, on test samples.
        detail: where it runs, or the last line of a cell that failed.
        next_claim: the number of the claim to take; ``None`` if there is nothing to do.
    """

    cell: SweepCell
    state: str
    samples: int = 0
    seconds: float = 0.0
    measured: float | None = None
    detail: str = ""
    next_claim: int | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in OVER


def has_ended(run: RunDir) -> bool:
    """Whether a run has been trained to its end."""
    summary = run.summary()
    return summary is not None and summary["reason"] in ENDED


class SweepWatch:
    """Looks at the cells of a sweep again and again.

    Args:
        sweep: its directory.
    """

    def __init__(self, sweep: SweepDir) -> None:
        self.sweep = sweep
        self._claims = ClaimWatch()
        self._ended: dict[str, CellState] = {}

    def look(self) -> list[CellState]:
        """All cells as they are now."""
        return [self._ended.get(name) or self._state(cell) for name, cell in self._cells()]

    def _cells(self) -> list[tuple[str, SweepCell]]:
        return list(self.sweep.plan.cells.items())

    def _state(self, cell: SweepCell) -> CellState:
        run, measure = self.sweep.run(cell.name), self.sweep.plan.experiment.measure.name
        failure = self.sweep.failure(cell.name)
        if failure is not None:
            state = CellState(cell, "failed", detail=str(failure.get("line", "")))
            return _with_progress(state, _last_row(run), measure)
        ended = self._end(cell, run, measure)
        if ended is not None:
            self._ended[cell.name] = ended
            return ended
        claim, row = newest_claim(self.sweep.claims(cell.name)), _last_row(run)
        number = self._claims.free_number(claim)
        if claim is not None and number is None:
            holder = claim.holder
            where = f"{str(holder.get('host', '')).partition(' ')[0]} {holder.get('process', '')}"
            return _with_progress(CellState(cell, "running", detail=where.strip()), row, measure)
        name = "stopped" if row or run.checkpoints.exists() else "waiting"
        return _with_progress(CellState(cell, name, next_claim=number), row, measure)

    def _end(self, cell: SweepCell, run: RunDir, measure: str) -> CellState | None:
        """How a cell ended, once it has been tested."""
        try:
            evaluation = run.read_result("evaluation.json")
            summary = run.summary() if evaluation is not None else None
        except RunError:  # Whoever works on the cell next says what is wrong.
            return None
        if evaluation is None or summary is None or summary["reason"] not in ENDED:
            return None
        measured = evaluation.get(measure, summary.get("measures", {}).get(measure))
        return CellState(
            cell, ENDED[summary["reason"]], summary["samples"], summary["seconds"], measured
        )


def _with_progress(state: CellState, row: dict[str, Any], measure: str) -> CellState:
    return state._replace(
        samples=row.get("samples", 0), seconds=row.get("seconds", 0.0), measured=row.get(measure)
    )


def _last_row(run: RunDir) -> dict[str, Any]:
    """The last measurements of a run: only the end of the file is read, as it is read often."""
    try:
        with (run.path / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 4096))
            row = json.loads(file.read().split(b"\n")[-2])
    except (OSError, ValueError, IndexError):
        return {}
    return row if isinstance(row, dict) else {}
