"""Checks of the fields of a dataclass: their annotated types, and ranges. No PyTorch here."""

import math
from dataclasses import dataclass, fields
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from typing_extensions import Unpack

from gridlstm.ranges import Bounds, check_number

__all__ = ["AtMost", "Layers", "Threads", "check_fields", "check_type", "check_types"]

LARGEST = 2**53
"""The largest allowed integer: up to here JSON, floats and 64-bit integers agree."""


@dataclass(frozen=True)
class AtMost:
    """An upper bound of a number, as metadata of its annotation: ``Annotated[int, AtMost(1000)]``."""

    value: int
    because: str = ""

    def __str__(self) -> str:
        return f"of at most {self.value:,}" + (f" ({self.because})" if self.because else "")


Threads = Annotated[int, AtMost(1024, "each has a stack of 8 MiB or so")]
"""Threads of a process. A thousand times more would need terabytes."""
Layers = Annotated[int, AtMost(1000)]
"""Layers of a network; the paper has up to 148. Layers are made one by one, so with many more it would
take minutes before their memory is known."""

_NAMES = {
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
    NoneType: "None",
}


def check_types(record: Any) -> None:
    """Checks that each field of a dataclass has exactly its annotated type.

    A ``bool`` is not an integer, an integer is a number, and numbers are finite.

    Raises:
        ValueError: if a field has another type, is too large or not finite.

    >>> @dataclass
    ... class Sizes:
    ...     layers: Layers
    >>> check_types(Sizes(True))
    Traceback (most recent call last):
    ValueError: layers: expected an integer of at most 1,000, got True
    """
    kinds = get_type_hints(type(record), include_extras=True)
    for name in (field.name for field in fields(record)):
        check_type(name, getattr(record, name), kinds[name])


def check_type(name: str, value: Any, kind: Any) -> None:
    """Checks that a value is of an annotated type, as :func:`check_types` does.

    Raises:
        ValueError: if it has another type, is too large or not finite.
    """
    if type(value) is int and abs(value) > LARGEST:
        raise ValueError(f"{name}: expected at most {LARGEST:,}, got a larger number")
    if type(value) is float and not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    if not _fits(value, kind):
        raise ValueError(f"{name}: expected {_describe(kind)}, got {shortened(value)}")


def check_fields(owner: object, *names: str, **bounds: Unpack[Bounds]) -> None:
    """Applies :func:`~gridlstm.ranges.check_number` to several fields of ``owner``."""
    for name in names:
        check_number(name, getattr(owner, name), **bounds)


def _fits(value: Any, kind: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [part.value for part in parts[1:] if isinstance(part, AtMost)]
        return _fits(value, parts[0]) and all(value <= limit for limit in limits)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return type(value) is str and value in parts
    if origin is tuple:
        return type(value) is tuple and all(_fits(item, parts[0]) for item in value)
    if kind is float:
        return type(value) in (int, float)
    if kind is int:
        return type(value) is int
    return isinstance(value, kind)


def _describe(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [part for part in parts[1:] if isinstance(part, AtMost)]
        return " ".join([_describe(parts[0]), *map(str, limits)])
    if origin in (Union, UnionType):
        return " or ".join(map(_describe, parts))
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    if origin is tuple:
        return f"a list of which each is {_describe(parts[0])}"
    return _NAMES.get(kind) or str(kind.__name__)
