"""Learning curves: the measurement of an experiment against samples (as in Figure 4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from matplotlib.figure import Figure

from gridlstm.errors import one_line
from gridlstm.experiments.measure_axis import show_measure
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.run_labels import label_runs
from gridlstm.experiments.trained import record_and_options
from gridlstm.figures.options import CurveOptions
from gridlstm.figures.save import write_figure
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["Curve", "draw_curves", "draw_runs", "plot", "read_curve"]


@dataclass(frozen=True)
class Curve:
    """The learning curve of a run.

    Attributes:
        name: the name of the run.
        experiment: the experiment of the run.
        options: the options of the run.
        samples: the number of samples at each evaluation.
        values: the measurement at each evaluation.
    """

    name: str
    experiment: Experiment[Any]
    options: Any
    samples: list[int]
    values: list[float]

    def reached(self, threshold: float) -> int | None:
        """The number of samples when a value was first reached; ``None`` if it never was."""
        pairs = zip(self.samples, self.values, strict=True)
        return next((samples for samples, value in pairs if value >= threshold), None)


def read_curve(run: RunDir) -> Curve:
    """Reads the learning curve of a run.

    Raises:
        RunError: if the run has not been evaluated yet, or its metrics are damaged.
    """
    (experiment, options), rows = record_and_options(run), run.metrics()
    if not rows:
        raise RunError(f"{run.path}: expected a run with evaluations, got none yet")
    for name in ("samples", experiment.measure.name):
        if any(name not in row for row in rows):
            raise RunError(f"{run.path / 'metrics.jsonl'}: expected {name} in every row")
    return Curve(
        name=one_line(run.path.name),
        experiment=experiment,
        options=options,
        samples=[row["samples"] for row in rows],
        values=[row[experiment.measure.name] for row in rows],
    )


def plot(options: CurveOptions) -> None:
    """Draws the learning curves of runs."""
    write_figure(draw_runs([RunDir.open(path) for path in options.runs]), options)


def draw_runs(runs: Sequence[RunDir]) -> Figure:
    """The learning curves of runs."""
    return draw_curves([read_curve(run) for run in runs])


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Measurements against samples, or against what the experiment counts instead.

    Raises:
        ValueError: if the runs have different measurements.
    """
    measure = curves[0].experiment.measure
    names = sorted({curve.experiment.measure.name for curve in curves})
    if len(names) > 1:
        raise ValueError(f"plot curve: expected runs with one measure, got {', '.join(names)}")
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    labels = label_runs(curves)
    for curve, label, (colour, line) in zip(curves, labels, _styles(), strict=False):
        unit = curve.experiment.samples_unit[1](curve.options)
        axes.plot(
            [n / unit for n in curve.samples],
            curve.values,
            label=label.replace("$", r"\$"),  # Matplotlib would read a formula.
            color=colour,
            linestyle=line,
            linewidth=1.4,
        )
    axes.set_xlabel(curves[0].experiment.samples_unit[0])
    show_measure(axes, measure, [value for curve in curves for value in curve.values])
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    columns = 2 if len(labels) > 3 and max(map(len, labels)) <= 36 else 1
    # Below the axes, a legend hides no curve.
    figure.legend(fontsize=8, loc="outside lower center", ncols=columns)
    axes.set_title(", ".join(sorted({_task(curve) for curve in curves})), fontsize=10)
    return figure


def _styles() -> Iterator[tuple[str, str]]:
    """Pairs of colour and line, all different up to forty curves."""
    return cycle((f"C{k}", line) for line in ("-", "--", ":", "-.") for k in range(10))


def _task(curve: Curve) -> str:
    """The experiment and the size of its task, or its data."""
    size = f"{curve.options.size} {curve.experiment.unit}".strip()
    return f"{curve.experiment.name}, {size}".replace("$", r"\$")
