"""What is said about the rounds of a measurement: median, spread, number, and ratios of two of them.

The median is taken everywhere, on both sides of a ratio and for the limit of the machine. No PyTorch
here.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["UNDERCUT", "floor_text", "ratio_text", "spread", "spread_text", "summarise", "with_spread"]

UNDERCUT = (
    "<1*: below 1, but not by more than the spread. !: below 1 by more than that, so measure again."
)
"""Explains what :func:`floor_text` returns."""


def spread(values: Sequence[float]) -> float | None:
    """Half the range of the values, in percent of their median; ``None`` for a single one."""
    if len(values) < 2:
        return None
    return 50 * (max(values) - min(values)) / statistics.median(values)


def summarise(seconds: Mapping[str, Any]) -> dict[str, Any]:
    """The median, the spread and the number of rounds by the same names, and all the seconds.

    >>> summarise({"1": {"loop": [2.0, 3.0, 4.0]}})["spread"]
    {'1': {'loop': 33.333333333333336}}
    """
    return {
        "median": _each(seconds, statistics.median),
        "spread": _each(seconds, spread),
        "rounds": _each(seconds, len),
        "seconds": dict(seconds),
    }


def spread_text(values: Sequence[float]) -> str:
    """The spread as it stands in tables, without a sign."""
    percent = spread(values)
    return "" if percent is None else f"{percent:.0f}"


def with_spread(text: str, values: Sequence[float]) -> str:
    """A figure, followed by the spread of the values that it was made from.

    >>> with_spread("12 ms", [0.012, 0.011, 0.013])
    '12 ms±8'
    """
    return _with_percent(text, spread(values))


def ratio_text(upper: Sequence[float], lower: Sequence[float]) -> str:
    """The ratio of two medians, and the spread of the ratios of the rounds in percent.

    >>> ratio_text([2.0, 3.0, 4.0], [1.0, 1.5, 1.9])
    '2.00±3'
    """
    ratio = statistics.median(upper) / statistics.median(lower)
    shown = f"{ratio:.3g}" if ratio >= 10 else f"{ratio:.2f}"
    return _with_percent(shown, _ratio_spread(upper, lower))


def floor_text(upper: Sequence[float], floor: Sequence[float]) -> str:
    """As :func:`ratio_text`, for a time over one that should not be longer; see :data:`UNDERCUT`.

    >>> floor_text([1.0, 1.1], [1.1, 1.05])
    '<1*'
    """
    ratio = statistics.median(upper) / statistics.median(floor)
    if ratio >= 1:
        return ratio_text(upper, floor)
    percent = _ratio_spread(upper, floor) or 0.0
    return "<1*" if 100 * (1 - ratio) <= percent else f"{ratio_text(upper, floor)}!"


def _ratio_spread(upper: Sequence[float], lower: Sequence[float]) -> float | None:
    return spread([a / b for a, b in zip(upper, lower, strict=False)])  # Slow ones have fewer rounds.


def _with_percent(text: str, percent: float | None) -> str:
    return text if percent is None else f"{text}±{percent:.0f}"


def _each(tree: Mapping[str, Any], leaf: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        name: _each(below, leaf) if isinstance(below, Mapping) else leaf(below)
        for name, below in tree.items()
    }
