"""The dimensions of a grid as a string, from which an operator makes its block."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from secrets import token_hex
from types import MappingProxyType
from typing import Any, NamedTuple

from gridlstm.cells import Cell, Output, Transfer
from gridlstm.dim import Dim

__all__ = ["Description", "describe", "read_description"]


class Description(NamedTuple):
    """The arguments of :func:`make_block`."""

    dims: tuple[Dim, ...]
    output: Output
    layer_norm: tuple[str, ...]
    zoneout: dict[str, tuple[float, float]]


_PROCESS = token_hex(8)
_own: dict[str, Cell | Transfer] = {}
"""User-defined transforms. They are kept: a graph that was compiled with one may run at any time."""


def describe(
    dims: Sequence[Dim],
    output: Output,
    layer_norm: Sequence[str] = (),
    zoneout: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> str:
    """Describes a grid as JSON. User-defined transforms get a name that only this process knows.

    >>> read_description(describe([Dim("depth", size=2)], "paper")).dims
    (Dim('depth', size=2),)
    """
    described = [{f.name: getattr(dim, f.name) for f in fields(dim) if f.init} for dim in dims]
    rest = {"output": output, "layer_norm": list(layer_norm), "zoneout": dict(zoneout)}
    return json.dumps({"dims": described, **rest}, default=_name_own)


def _name_own(transform: Cell | Transfer) -> dict[str, str]:
    name = f"{_PROCESS}-{id(transform)}"
    _own[name] = transform
    return {"own": name, "shown": repr(transform)}


@lru_cache(maxsize=256)
def read_description(description: str) -> Description:
    """The inverse of :func:`describe`.

    Raises:
        RuntimeError: if a transform was user-defined in another process.
    """
    described = json.loads(description)
    return Description(
        dims=tuple(_read_dim(**dim) for dim in described["dims"]),
        output=described["output"],
        layer_norm=tuple(described["layer_norm"]),
        zoneout={name: tuple(pair) for name, pair in described["zoneout"].items()},
    )


def _read_dim(transform: Any, **arguments: Any) -> Dim:
    if isinstance(transform, dict):
        if transform["own"] not in _own:
            raise RuntimeError(
                f'dimension "{arguments["name"]}": the user-defined transform {transform["shown"]} is '
                "known only to the process in which its grid was created: export the grid with "
                'engine="reference" instead'
            )
        transform = _own[transform["own"]]
    return Dim(transform=transform, **arguments)
