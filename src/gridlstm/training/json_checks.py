"""Checks of values read from JSON files, which may have been edited or damaged."""

import math
from typing import Any

__all__ = ["check_count", "check_numbers", "check_object", "check_seconds"]


def check_object(value: object, name: str) -> dict[str, Any]:
    """Returns the value if it is a JSON object.

    Raises:
        ValueError: if it is not.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{name}: expected an object, got {_describe(value)}")
    return value


def check_numbers(value: object, name: str) -> dict[str, float]:
    """Returns the value if it is a JSON object of numbers; infinity and NaN are allowed.

    Raises:
        ValueError: if it is not.
    """
    numbers = check_object(value, name)
    for key, number in numbers.items():
        if not isinstance(number, int | float) or (isinstance(number, int) and abs(number) >= 2**63):
            raise ValueError(f"{name}: expected numbers, got {key}: {_describe(number)}")
    return dict(numbers)


def check_count(value: object, name: str) -> int:
    """Returns the value if it is an integer of at least 0.

    Raises:
        ValueError: if it is not.
    """
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{name}: expected an integer of at least 0, got {_describe(value)}")
    return value


def check_seconds(value: object, name: str) -> float:
    """Returns the value if it is a finite number of at least 0.

    Raises:
        ValueError: if it is not.
    """
    seconds = check_numbers({name: value}, name)[name]
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{name}: expected at least 0, got {seconds}")
    return seconds


def _describe(value: object) -> str:
    """A value in an error message: short, and on one line."""
    kinds = {dict: "an object", list: "a list", type(None): "null", str: "a string"}
    return kinds.get(type(value), "") or f"{value!r}"[:40]
