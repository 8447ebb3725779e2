"""The vertical axis of a figure that shows what an experiment measures."""

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from gridlstm.experiments.record import Measure

__all__ = ["show_measure"]


def show_measure(axes: Axes, measure: Measure, values: Iterable[float]) -> None:
    """Labels and scales the vertical axis.

    Args:
        axes: of the figure.
        measure: what is shown.
        values: all that are shown.
    """
    axes.set_ylabel(measure.label)
    if measure.scale == "log" and any(value > 0 for value in values):
        axes.set_yscale("log")
    elif measure.scale == "linear" and not measure.lower_is_better:
        axes.set_ylim(-0.02, 1.02)
    if measure.percent:
        for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            set_formatter(PercentFormatter(1))
