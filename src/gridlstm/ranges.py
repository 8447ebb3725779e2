"""Range checks of numbers. No PyTorch here: options are checked before it is loaded."""

import math
import operator
from typing import TypedDict

from typing_extensions import Unpack

__all__ = ["Bounds", "check_number"]


class Bounds(TypedDict, total=False):
    """Bounds of a number. ``optional`` also allows ``None``."""

    least: float
    above: float
    most: float
    below: float
    optional: bool


_COMPARISONS = {
    "least": ("at least", operator.ge),
    "above": ("more than", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}


def check_number(name: str, value: float | None, **bounds: Unpack[Bounds]) -> None:
    """Checks that a value is a finite number within bounds.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is infinite or NaN, or out of bounds.

    >>> check_number("momentum", 1, least=0, below=1)
    Traceback (most recent call last):
    ValueError: momentum: expected at least 0 and below 1, got 1
    >>> check_number("rate", math.inf, above=0)
    Traceback (most recent call last):
    ValueError: rate: expected a finite number, got inf
    """
    optional = bounds.get("optional", False)
    if value is None and optional:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    limits = [
        (words, within, limit)
        for kind, (words, within) in _COMPARISONS.items()
        if isinstance(limit := bounds.get(kind), int | float)
    ]
    if not all(within(value, limit) for _, within, limit in limits):
        expected = " and ".join(f"{words} {limit}" for words, _, limit in limits)
        raise ValueError(f"{name}: expected {expected}{' or None' * optional}, got {value}")
