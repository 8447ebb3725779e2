"""How the cells of a sweep ended, as a file and as a figure."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from gridlstm.experiments.registry import flat
from gridlstm.files import write_json
from gridlstm.provenance import environment
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.plan import SweepPlan
from gridlstm.sweeps.status import CellState
from gridlstm.training.rundir import RunError

__all__ = ["count_states", "draw_sweep", "write_results"]

TICKS = 12
"""The most values that each have a tick on the horizontal axis."""


def count_states(states: Sequence[CellState]) -> dict[str, int]:
    """How many cells are in each state."""
    names = [state.state for state in states]
    return {name: names.count(name) for name in dict.fromkeys(names)}


def write_results(sweep: SweepDir, states: Sequence[CellState]) -> None:
    """Writes ``sweep.json``, and the figure as PNG and SVG."""
    from gridlstm.figures.save import save_figure

    content = {
        **sweep.plan.described(),
        "outcome": count_states(states),
        "cells": [_described(sweep, state) for state in states],
        "environment": environment(),
    }
    write_json(sweep.path / "sweep.json", content)
    save_figure(draw_sweep(sweep.plan, states), sweep.path / "sweep")


def _described(sweep: SweepDir, state: CellState) -> dict[str, Any]:
    run = sweep.run(state.cell.name)
    try:
        sessions, evaluation = run.sessions(), run.read_result("evaluation.json") or {}
    except RunError:  # The cell has failed for this reason.
        sessions, evaluation = [], {}
    return {
        "cell": state.cell.name,
        "varied": dict(state.cell.varied),
        "ended": state.state,
        "samples": state.samples,
        "seconds": state.seconds,
        sweep.plan.experiment.measure.name: state.measured,
        "evaluation": {
            name: value for name, value in evaluation.items() if not isinstance(value, list)
        },
        "commits": list(dict.fromkeys(session.get("commit") for session in sessions)),
        **({"failure": state.detail} if state.state == "failed" else {}),
    }


def draw_sweep(plan: SweepPlan, states: Sequence[CellState]) -> Any:
    """What was measured at the end against the first option that varies.

    One line per combination of the other options. Points are cells; the line is the mean over seeds.

    Returns:
        A figure of Matplotlib.
    """
    from matplotlib.figure import Figure

    from gridlstm.experiments.measure_axis import show_measure

    across, others = _axes_of(plan)
    lines: dict[str, list[tuple[Any, float]]] = {}
    for state in states:
        if state.measured is not None:
            options = flat(state.cell.options)
            label = ", ".join(f"{name} {options[name]}" for name in others)
            lines.setdefault(label, []).append((options[across], state.measured))
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    places = _places([flat(cell.options)[across] for cell in plan.cells.values()])
    for number, (label, points) in enumerate(lines.items()):
        colour = f"C{number % 10}"
        across_places, measured = [places[str(x)] for x, _ in points], [y for _, y in points]
        axes.plot(across_places, measured, "o", color=colour, markersize=4, alpha=0.6)
        means = {places[str(x)]: fmean(y for other, y in points if other == x) for x, _ in points}
        axes.plot(sorted(means), [means[x] for x in sorted(means)], color=colour, label=label or None)
    if len(places) <= TICKS:
        axes.set_xticks(list(places.values()), list(places))
    axes.set_xlabel(across.replace("_", " "))
    values = [value for points in lines.values() for _, value in points]
    show_measure(axes, plan.experiment.measure, values)
    axes.grid(alpha=0.3)
    if any(lines):
        axes.legend(fontsize=8)
    axes.set_title(plan.experiment.name, fontsize=10)
    return figure


def _axes_of(plan: SweepPlan) -> tuple[str, list[str]]:
    """The option of the horizontal axis, and those that distinguish lines."""
    varying = list(dict.fromkeys(name for grid in plan.over for name in grid))
    without_seed = [name for name in varying if name != "seed"] or varying
    return without_seed[0], without_seed[1:]


def _places(values: Sequence[Any]) -> Mapping[str, float]:
    """Where values lie on the horizontal axis: numbers as they are, others side by side."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    distinct = list(dict.fromkeys(values))
    return {str(value): value if numbers else place for place, value in enumerate(distinct)}
