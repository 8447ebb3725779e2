"""Markers of networks in figures."""

from typing import NamedTuple

__all__ = ["Marker", "marker_of"]

SHAPES = {"grid": "o", "stacked": "s", "tanh": "^", "relu": "v"}
COLOURS = {"grid": "C0", "stacked": "C1", "tanh": "C2", "relu": "C3"}


class Marker(NamedTuple):
    """The label, shape and colour of a network, and whether its weights are tied."""

    label: str
    shape: str
    colour: str
    tied: bool


def marker_of(network: str) -> Marker:
    """The marker of a network such as ``tied-grid``."""
    tied, _, kind = network.partition("-")
    return Marker(network.replace("-", " "), SHAPES[kind], COLOURS[kind], tied == "tied")
