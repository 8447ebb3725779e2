"""What a report shows of each run, read from its files. No PyTorch here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gridlstm.errors import one_line
from gridlstm.experiments.record import Measure
from gridlstm.experiments.results import CollectedRun, collect_run, is_uncommitted
from gridlstm.experiments.run_record import record_and_options
from gridlstm.pages.report.parts import Part
from gridlstm.sweeps.status import CellState
from gridlstm.training.rundir import DEMONSTRATION, RunDir, RunError

__all__ = ["ReportedRun", "read_runs"]

POINTS = 2000
"""The most points of a curve."""
COUNTERS = ("samples", "step", "seconds")
"""Columns of ``metrics.jsonl`` that are not measurements."""
LARGEST = 1e15
"""Larger numbers of a test are not believed."""
STATES = {"samples": "out of samples", "running": "in progress"}
"""How far a run is, in words, where the name of the state does not say it."""


@dataclass(frozen=True)
class ReportedRun:
    """A run as the page shows it. Strings come from files and are not trusted.

    Attributes:
        name: of the run, or of the cell of a sweep.
        state: how it ended, or how far it is.
        problem: why it failed or cannot be read; empty if it did not and can.
        collected: its options, sessions, results and curve; ``None`` if it has not begun.
        unit: samples per unit of the horizontal axis.
        demonstration: what the network does with an unseen sample, as lines.
    """

    name: str
    state: str
    problem: str = ""
    collected: CollectedRun | None = None
    unit: float = 1.0
    demonstration: Sequence[str] = ()

    @property
    def options(self) -> dict[str, Any]:
        """All options; none if it has not begun."""
        return self.collected["options"] if self.collected else {}

    @property
    def curve(self) -> list[dict[str, float]]:
        """The rows of ``metrics.jsonl``, or some of very many."""
        return self.collected["curve"] if self.collected else []

    @property
    def uncommitted(self) -> bool:
        """Whether it is from a working tree with uncommitted changes."""
        return self.collected is not None and is_uncommitted(self.collected)

    @property
    def measures(self) -> list[str]:
        """The names of what was measured."""
        names = dict.fromkeys(name for row in self.curve for name in row)
        return [name for name in names if name not in COUNTERS]

    def last(self, name: str) -> float | None:
        """The last value in ``metrics.jsonl``."""
        return self.curve[-1].get(name) if self.curve else None

    def best(self, measure: Measure) -> float | None:
        """The best value in ``metrics.jsonl``."""
        values = [row[measure.name] for row in self.curve if measure.name in row]
        finite = [value for value in values if math.isfinite(value)]
        return (min if measure.lower_is_better else max)(finite, default=None)

    def tested(self, name: str) -> float | None:
        """What ``gridlstm eval`` measured."""
        value = ((self.collected or {}).get("evaluation") or {}).get(name)
        return value if isinstance(value, int | float) and abs(value) < LARGEST else None


def read_runs(part: Part, states: Sequence[CellState]) -> list[ReportedRun]:
    """The runs of a part.

    Args:
        part: of the report.
        states: how far its runs are.

    Raises:
        RunError: if a run cannot be read, unless it is a cell of a sweep, which then says so.
    """
    return [_read(part, state) for state in states]


def _read(part: Part, state: CellState) -> ReportedRun:
    name, run = state.cell.name, part.runs[state.cell.name]
    words, problem = STATES.get(state.state, state.state), ""
    if state.state == "failed":
        problem = one_line(state.detail)
    if not (run.path / "config.json").exists():
        return ReportedRun(name, words, problem)
    try:
        experiment, options = record_and_options(run)
        unit, collected = experiment.samples_unit[1](options), collect_run(run, POINTS)
        return ReportedRun(name, words, problem, collected, unit, _demonstration(run, collected))
    except RunError as error:
        if part.sweep is None:
            raise
        return ReportedRun(name, "damaged", one_line(error))


def _demonstration(run: RunDir, collected: CollectedRun) -> list[str]:
    """What ``train`` or else ``eval`` has kept."""
    lines = (run.read_result(DEMONSTRATION) or {}).get("lines")
    lines = lines or (collected["evaluation"] or {}).get("demonstration")
    return [str(line) for line in lines] if isinstance(lines, list) else []
