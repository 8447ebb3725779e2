"""The curves of a report, as the data that its script draws. No PyTorch here."""

import math
from collections.abc import Sequence
from typing import Any

from gridlstm.experiments.record import Experiment
from gridlstm.pages.report.runs import ReportedRun

__all__ = ["curves"]

Column = list[float | None]


def curves(experiment: Experiment[Any], runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """All measurements of all runs against samples and against time.

    Returns:
        ``x`` and ``y`` have the labels of what can be drawn, by name, the experiment's measure first.
        ``log`` says whether its axis is logarithmic at first. ``runs`` has columns ``x`` and ``y`` by
        name for each run, empty for one without measurements. What is not finite is ``None``.
    """
    measure = experiment.measure
    measured = dict.fromkeys(name for run in runs for name in run.measures)
    names = sorted(measured, key=lambda name: name != measure.name)
    return {
        "x": {"samples": experiment.samples_unit[0], "minutes": "minutes of training"},
        "y": {name: measure.label if name == measure.name else name for name in names},
        "log": measure.scale == "log",
        "runs": [
            {
                "x": {
                    "samples": _column(run, "samples", run.unit),
                    "minutes": _column(run, "seconds", 60),
                },
                "y": {name: _column(run, name) for name in run.measures},
            }
            for run in runs
        ],
    }


def _column(run: ReportedRun, name: str, unit: float = 1) -> Column:
    """Values of all rows. JSON has neither NaN nor infinity."""
    values = (row.get(name) for row in run.curve)
    return [None if value is None or not math.isfinite(value) else value / unit for value in values]
