"""How networks learn: measurements against samples, samples against depth, solutions against depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

__all__ = ["Curve", "draw_curves", "draw_depth", "draw_solutions"]

MARKERS = {"grid": "o", "stacked": "s", "tanh": "^", "relu": "v"}
COLOURS = {"grid": "C0", "stacked": "C1", "tanh": "C2", "relu": "C3"}

LABELS = {
    "accuracy": ("samples, thousands", "accuracy"),
    "bits": ("characters, millions", "bits per character"),
    "perplexity": ("samples, thousands", "perplexity"),
    "error": ("samples, thousands", "error on validation images"),
}
"""What stands along and up a figure of each measure."""


@dataclass(frozen=True)
class Curve:
    """How a run learnt.

    Attributes:
        name: of the run.
        experiment: which one.
        network: which kind, as ``tied-grid``.
        layers: its depth.
        hidden: its width.
        bits: of a parity; else ``None``.
        start: what a network for parity starts from; else ``None``.
        samples: at every evaluation.
        measure: what was measured, ``accuracy``, ``bits`` per character, ``perplexity`` or ``error``.
        values: at every evaluation.
        characters: how many a sample has, if it is one of text; else ``None``.
    """

    name: str
    experiment: str
    network: str
    layers: int
    hidden: int
    bits: int | None
    samples: list[int]
    measure: str
    values: list[float]
    characters: int | None = None
    start: str | None = None

    def reached(self, threshold: float) -> int | None:
        """Samples until an accuracy was first reached, or ``None``."""
        pairs = zip(self.samples, self.values, strict=True)
        return next((n for n, accuracy in pairs if accuracy >= threshold), None)


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Accuracy (as in Figure 4), perplexity or error against samples, or bits against characters."""
    measures = sorted({curve.measure for curve in curves})
    if len(measures) > 1:
        raise ValueError(f"--kind curve: expected runs with one measure, got {', '.join(measures)}")
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for curve in curves:
        unit = 1000 if curve.characters is None else 1e6 / curve.characters
        name = curve.name.replace("$", r"\$")  # It is a name, not a formula.
        axes.plot([n / unit for n in curve.samples], curve.values, label=name, linewidth=1.2)
    along, up = LABELS[measures[0]]
    axes.set_xlabel(along)
    axes.set_ylabel(up)
    if measures == ["accuracy"]:
        axes.set_ylim(-0.02, 1.02)
    elif measures == ["perplexity"]:
        axes.set_yscale("log")
    elif measures == ["error"]:
        if any(value > 0 for curve in curves for value in curve.values):
            axes.set_yscale("log")
        for axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            axis(PercentFormatter(1))
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    axes.set_title(", ".join(sorted({curve.experiment for curve in curves})), fontsize=10)
    return figure


def draw_depth(curves: Sequence[Curve], thresholds: Sequence[float]) -> Figure:
    """Samples to reach an accuracy against layers, as in Figure 5; hollow where it was not reached."""
    if any(curve.measure != "accuracy" for curve in curves):
        raise ValueError("--kind depth: expected runs with an accuracy, got others")
    figure = Figure(figsize=(4.2 * len(thresholds), 3.8), layout="constrained")
    panels = figure.subplots(1, len(thresholds), squeeze=False, sharey=True)[0]
    for axes, threshold in zip(panels, thresholds, strict=True):
        for network in sorted({curve.network for curve in curves}):
            own = [curve for curve in curves if curve.network == network]
            _dots(axes, network, own, threshold)
        axes.set_title(f"accuracy of {threshold:.0%}", fontsize=10)
        axes.set_xlabel("layers")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("samples, thousands (hollow: not reached)")
    panels[0].set_ylim(bottom=0)
    panels[-1].legend(fontsize=8)
    return figure


def _dots(axes: Axes, network: str, curves: Sequence[Curve], threshold: float) -> None:
    found = [(curve, curve.reached(threshold)) for curve in curves]
    tied, _, kind = network.partition("-")
    style: dict[str, Any] = {
        "marker": MARKERS[kind] if tied == "tied" else "x",
        "linestyle": "",
        "color": COLOURS[kind],
    }
    axes.plot(
        [curve.layers for curve, n in found if n is not None],
        [n / 1000 for _, n in found if n is not None],
        label=network.replace("-", " "),
        **style,
    )
    axes.plot(
        [curve.layers for curve, n in found if n is None],
        [curve.samples[-1] / 1000 for curve, n in found if n is None],
        fillstyle="none",
        alpha=0.6,
        **{**style, "marker": MARKERS[kind]},
    )


def draw_solutions(curves: Sequence[Curve]) -> Figure:
    """Layers of networks that solved a parity against its bits, as in Figure 9; hollow if unsolved.

    A panel for each start of the networks.
    """
    if any(curve.bits is None for curve in curves):
        raise ValueError("--kind solutions: expected runs of parity, got others")
    starts = sorted({curve.start or "" for curve in curves}, reverse=True)
    figure = Figure(figsize=(1 + 4.6 * len(starts), 4), layout="constrained")
    panels = figure.subplots(1, len(starts), squeeze=False, sharey=True)[0]
    for axes, start in zip(panels, starts, strict=True):
        own = [curve for curve in curves if (curve.start or "") == start]
        for network in sorted({curve.network for curve in own}):
            _solutions(axes, network, [curve for curve in own if curve.network == network])
        axes.set_title(f"{start} start", fontsize=10)
        axes.set_xlabel("input bits k (hollow: not solved)")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    panels[0].set_ylabel("layers")
    panels[0].set_ylim(bottom=0)  # Shared: only after all is drawn.
    return figure


def _solutions(axes: Axes, network: str, curves: Sequence[Curve]) -> None:
    tied, _, kind = network.partition("-")
    label: str | None = network.replace("-", " ")
    for solved in (True, False):
        own = [curve for curve in curves if (curve.reached(1.0) is not None) == solved]
        if own:
            axes.plot(
                [curve.bits or 0 for curve in own],
                [curve.layers for curve in own],
                linestyle="",
                marker=MARKERS[kind],
                color=COLOURS[kind],
                fillstyle="full" if solved else "none",
                alpha=1.0 if tied == "tied" else 0.5,
                label=label,
            )
            label = None
