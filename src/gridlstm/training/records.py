"""What is read back from JSON that somebody may have edited or damaged, checked."""

import math
from typing import Any

__all__ = ["count", "duration", "measures", "table"]


def table(found: object, what: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: if it is something else.
    """
    if not isinstance(found, dict):
        raise ValueError(f"{what}: expected an object, got {_kind(found)}")
    return found


def measures(found: object, what: str) -> dict[str, float]:
    """Numbers by name; one that is not finite is a number, too.

    Raises:
        ValueError: if it is something else.
    """
    for name, value in table(found, what).items():
        if not isinstance(value, int | float) or (isinstance(value, int) and abs(value) >= 2**63):
            raise ValueError(f"{what}: expected numbers, got {name}: {_kind(value)}")
    return dict(table(found, what))


def count(found: object, what: str) -> int:
    """How many of something.

    Raises:
        ValueError: if it is not an integer of at least 0.
    """
    if not isinstance(found, int) or not 0 <= found < 2**63:
        raise ValueError(f"{what}: expected an integer of at least 0, got {_kind(found)}")
    return found


def duration(found: object, what: str) -> float:
    """Seconds.

    Raises:
        ValueError: if it is not a finite number of at least 0.
    """
    value = measures({what: found}, what)[what]
    if not 0 <= value < math.inf:
        raise ValueError(f"{what}: expected at least 0, got {value}")
    return value


def _kind(found: object) -> str:
    """A value in an error message: short, and on one line."""
    kinds = {dict: "an object", list: "a list", type(None): "null", str: "a string"}
    return kinds.get(type(found), "") or f"{found!r}"[:40]
