"""The layers of networks that solved parity, against the number of bits (Figure 9)."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gridlstm.experiments.algorithmic.markers import marker_of
from gridlstm.experiments.curve import Curve, read_curve
from gridlstm.experiments.parity.options import SolutionsOptions
from gridlstm.figures.save import write_figure
from gridlstm.training.rundir import RunDir

__all__ = ["draw_runs", "draw_solutions", "plot"]


_STARTS = {
    "random": "weights of random size",
    "signs": "weights of one size, random signs",
}
"""What the initialisations are."""


def plot(options: SolutionsOptions) -> None:
    """Draws which runs were solved."""
    write_figure(draw_runs([RunDir.open(path) for path in options.runs]), options)


def draw_runs(runs: Sequence[RunDir]) -> Figure:
    """Figure 9 from runs."""
    return draw_solutions([read_curve(run) for run in runs])


def draw_solutions(curves: Sequence[Curve]) -> Figure:
    """One panel per initialisation. Hollow markers: not solved.

    Raises:
        ValueError: if there are runs of other experiments.
    """
    if any(curve.experiment.name != "parity" for curve in curves):
        raise ValueError("plot solutions: expected runs of parity, got others")
    starts = sorted({curve.options.start for curve in curves}, reverse=True)
    figure = Figure(figsize=(1 + 4.6 * len(starts), 4), layout="constrained")
    panels = figure.subplots(1, len(starts), squeeze=False, sharey=True)[0]
    for axes, start in zip(panels, starts, strict=True):
        of_start = [curve for curve in curves if curve.options.start == start]
        for network in sorted({curve.options.network for curve in of_start}):
            _draw_network(axes, network, [c for c in of_start if c.options.network == network])
        axes.set_title(f"start: {_STARTS[start]}", fontsize=10)
        axes.set_xlabel("input bits k (hollow: not solved)")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
    labelled: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    figure.legend([*labelled.values()], [*labelled], fontsize=8, loc="outside lower center", ncols=3)
    _scale_layers(panels[0], sorted({curve.options.layers for curve in curves}))
    return figure


def _scale_layers(axes: Axes, layers: Sequence[int]) -> None:
    """Scales the vertical axis, which all panels share; by factors if depths differ much."""
    axes.set_ylabel("layers")
    if layers[-1] > 20 * layers[0]:
        axes.set_yscale("log")
        axes.set_yticks(layers, [str(number) for number in layers], minor=False)
        axes.set_yticks([], minor=True)
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_network(axes: Axes, network: str, curves: Sequence[Curve]) -> None:
    marker = marker_of(network)
    label: str | None = curves[0].experiment.network_title(network)
    for solved in (True, False):
        chosen = [curve for curve in curves if (curve.reached(1.0) is not None) == solved]
        if chosen:
            axes.plot(
                [curve.options.bits for curve in chosen],
                [curve.options.layers for curve in chosen],
                linestyle="",
                marker=marker.shape,
                color=marker.colour,
                fillstyle="full" if solved else "none",
                label=label,
            )
            label = None
