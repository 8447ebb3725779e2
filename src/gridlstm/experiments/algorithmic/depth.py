"""Samples to reach an accuracy against layers (Figure 5)."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridlstm.experiments.algorithmic.figure_options import DepthOptions
from gridlstm.experiments.algorithmic.markers import marker_of
from gridlstm.experiments.curve import Curve, read_curve
from gridlstm.figures.save import write_figure
from gridlstm.training.rundir import RunDir

__all__ = ["draw_depth", "draw_runs", "plot"]


def plot(options: DepthOptions) -> None:
    """Draws how many samples each run needed."""
    curves = [read_curve(RunDir.open(path)) for path in options.runs]
    write_figure(draw_depth(curves, options.thresholds), options)


def draw_runs(runs: Sequence[RunDir]) -> Figure:
    """Figure 5 from runs, with the accuracies of the paper."""
    return draw_depth([read_curve(run) for run in runs], DepthOptions.thresholds)


def draw_depth(curves: Sequence[Curve], thresholds: Sequence[float]) -> Figure:
    """One panel per accuracy. Hollow markers: the accuracy was not reached.

    Raises:
        ValueError: if runs do not measure an accuracy.
    """
    if any(curve.experiment.measure.name != "accuracy" for curve in curves):
        raise ValueError("plot depth: expected runs with an accuracy, got others")
    figure = Figure(figsize=(4.2 * len(thresholds), 3.8), layout="constrained")
    panels = figure.subplots(1, len(thresholds), squeeze=False, sharey=True)[0]
    networks = sorted({curve.options.network for curve in curves})
    apart = 0.03 * max(curve.options.layers for curve in curves)
    for axes, threshold in zip(panels, thresholds, strict=True):
        for k, network in enumerate(networks):
            of_network = [curve for curve in curves if curve.options.network == network]
            # Side by side: networks with the same layers and samples would hide each other.
            _draw_network(axes, of_network, threshold, aside=apart * (k - (len(networks) - 1) / 2))
        axes.set_title(f"accuracy of {threshold:.0%}", fontsize=10)
        axes.set_xlabel("layers")
        axes.set_xticks(sorted({curve.options.layers for curve in curves}))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("samples, thousands\n(hollow: not reached)")
    panels[0].set_ylim(0, 1.08 * max(curve.samples[-1] for curve in curves) / 1000)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=len(networks))
    return figure


def _draw_network(axes: Axes, curves: Sequence[Curve], threshold: float, aside: float) -> None:
    experiment, network = curves[0].experiment, curves[0].options.network
    marker = marker_of(network)
    needed = [(curve.options.layers + aside, curve, curve.reached(threshold)) for curve in curves]
    style: dict[str, Any] = {"linestyle": "", "color": marker.colour, "marker": marker.shape}
    axes.plot(
        [layers for layers, _, samples in needed if samples is not None],
        [samples / 1000 for _, _, samples in needed if samples is not None],
        label=experiment.network_title(network),
        **style,
    )
    axes.plot(
        [layers for layers, _, samples in needed if samples is None],
        [curve.samples[-1] / 1000 for _, curve, samples in needed if samples is None],
        fillstyle="none",
        **style,
    )
