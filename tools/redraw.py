"""Draws the figures of results/ anew, from the runs and benchmarks that are collected there."""

import json
from pathlib import Path

from bench_tables import newest_cases
from headline import draw_headline

from gridlstm.bench.growth import draw_growth
from gridlstm.bench.rates_figure import draw_rates
from gridlstm.experiments.algorithmic.depth import draw_depth
from gridlstm.experiments.algorithmic.figure_options import DepthOptions
from gridlstm.experiments.curve import Curve, draw_curves
from gridlstm.experiments.parity.solutions import draw_solutions
from gridlstm.experiments.registry import find_experiment, from_flat
from gridlstm.experiments.results import CollectedRun, read_runs
from gridlstm.figures.save import save_figure

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
CURVES = {
    "addition-curve": ("runs-addition*.json", {"digits": 15}),
    "memorization-curve": ("runs-memorization*.json", {"layers": 16}),
    "characters-curve": ("characters-enwik8.json", {}),
    "characters-30m-curve": ("characters-30m.json", {}),
    "translation-curve": ("translation-256.json", {}),
    "images-curve": ("images-mnist.json", {}),
}
"""Learning curves: their runs, and options that these must have."""


def collected_curve(run: CollectedRun) -> Curve:
    """The learning curve of a run that ``gridlstm collect`` wrote."""
    experiment = find_experiment(run["experiment"])
    rows = [row for row in run["curve"] if experiment.measure.name in row]
    return Curve(
        name=run["run"],
        experiment=experiment,
        options=from_flat(experiment, run["options"]),
        samples=[row["samples"] for row in rows],
        values=[row[experiment.measure.name] for row in rows],
    )


def curves(pattern: str) -> list[Curve]:
    """The learning curves of collected files."""
    return [collected_curve(run) for run in read_runs(sorted(RESULTS.glob(pattern)))]


def redraw() -> None:
    """Writes all figures that need nothing but results/."""
    for figure, (name, options) in CURVES.items():
        chosen = [
            curve
            for curve in curves(name)
            if all(getattr(curve.options, option) == value for option, value in options.items())
        ]
        save_figure(draw_curves(chosen), RESULTS / figure)
    depth = draw_depth(curves("sweep-memorization.json"), DepthOptions.thresholds)
    save_figure(depth, RESULTS / "memorization-depth")
    save_figure(draw_solutions(curves("figure-9.json")), RESULTS / "parity-solutions")
    for path in sorted(RESULTS.glob("bench*.json")):
        measured = json.loads(path.read_text())
        if measured["kind"] == "bench":
            save_figure(draw_rates(measured["cases"]), path)
        elif measured["kind"] == "all":
            save_figure(draw_rates(measured["engine"]["cases"]), path)
        elif measured["kind"] == "growth":
            save_figure(draw_growth(measured["axes"]), path)
    save_figure(draw_rates([case for case, _ in newest_cases()]), RESULTS / "speed")
    save_figure(draw_headline(), RESULTS / "headline")
