"""Markers of networks in figures: no two share a shape or a colour."""

from typing import NamedTuple

__all__ = ["Marker", "marker_of"]

_MARKERS = {
    "tied-grid": ("o", "#1f77b4"),
    "untied-grid": ("X", "#2ca02c"),
    "tied-stacked": ("s", "#ff7f0e"),
    "untied-stacked": ("D", "#d62728"),
    "tied-tanh": ("^", "#9467bd"),
    "untied-tanh": ("<", "#8c564b"),
    "tied-relu": ("v", "#e377c2"),
    "untied-relu": (">", "#17becf"),
}


class Marker(NamedTuple):
    """The shape and colour of a network."""

    shape: str
    colour: str


def marker_of(network: str) -> Marker:
    """The marker of a network such as ``tied-grid``."""
    return Marker(*_MARKERS[network])
