"""Layer normalisation, dropout and zoneout of a grid: its arguments, and what is drawn for a call.

All random numbers of a call are drawn here, before an engine runs, so every engine uses the same.
"""

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept, Zoneout
from gridlstm.dim import Dim
from gridlstm.geometry import GridShape
from gridlstm.ranges import check_number

__all__ = [
    "Probabilities",
    "check_layer_norm",
    "check_names",
    "check_zoneout",
    "draw_dropout",
    "draw_zoneout",
    "expand_zoneout",
]

Probabilities = float | tuple[float, float]
"""Of keeping old values: of both vectors, or of the hidden and of the memory vector."""


def check_names(argument: str, names: Sequence[str], dims: Sequence[Dim]) -> tuple[str, ...]:
    """Checks a list of dimensions.

    Raises:
        TypeError: if it is not a list or tuple.
        ValueError: if a name is unknown.
    """
    if not isinstance(names, list | tuple):
        raise TypeError(f"{argument}: expected a list of names of dimensions, got {names!r}")
    known = [dim.name for dim in dims]
    for name in names:
        if name not in known:
            raise ValueError(f"{argument}: expected some of {', '.join(known)}, got {name!r}")
    return tuple(dict.fromkeys(names))


def check_layer_norm(layer_norm: bool | Sequence[str], dims: Sequence[Dim]) -> tuple[str, ...]:
    """The names of the dimensions with layer normalisation.

    Raises:
        TypeError: if it is neither ``True``, ``False`` nor a list of names.
        ValueError: if a name is unknown, a vector has a single value, or only one of two dimensions
            that share weights is listed.
    """
    if isinstance(layer_norm, bool):
        names = tuple(dim.name for dim in dims) if layer_norm else ()
    elif isinstance(layer_norm, list | tuple):
        names = check_names("layer_norm", layer_norm, dims)
    else:
        raise TypeError(
            f"layer_norm: expected True, False or a list of names of dimensions, got {layer_norm!r}"
        )
    for dim in dims:
        if dim.name in names and dim.hidden_size == 1:
            raise ValueError(
                f'layer_norm: expected a hidden size of at least 2 for dimension "{dim.name}" '
                f"(a single value, normalised, is always 0), got 1"
            )
        owner = dim.shares_weights_with
        if owner is not None and (dim.name in names) != (owner in names):
            raise ValueError(
                f'layer_norm: expected both "{dim.name}" and "{owner}" or none, because they share '
                f"weights, got {list(names)}"
            )
    return names


def check_zoneout(zoneout: Any, dims: Sequence[Dim]) -> Any:
    """Checks the argument ``zoneout`` of a grid and returns it with pairs as tuples.

    Raises:
        TypeError: if it is neither a number, a pair of numbers, nor a mapping from names to these.
        ValueError: if a name is unknown, or a probability is not from 0 to 1.
    """
    if isinstance(zoneout, Mapping):
        check_names("zoneout", list(zoneout), dims)
        return {name: _check_pair(f'zoneout "{name}"', value) for name, value in zoneout.items()}
    return _check_pair("zoneout", zoneout)


def _check_pair(argument: str, value: Any) -> Probabilities:
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise TypeError(f"{argument}: expected a number or a pair (hidden, memory), got {value!r}")
        for name, probability in zip(Zoneout._fields, value, strict=True):
            check_number(f"{argument}: {name}", probability, least=0, most=1)
        return tuple(value)
    check_number(argument, value, least=0, most=1)
    return float(value)


def expand_zoneout(
    zoneout: Probabilities | Mapping[str, Probabilities], dims: Sequence[Dim]
) -> dict[str, Zoneout]:
    """The probabilities of every dimension with zoneout, from a checked argument of a grid."""
    given = zoneout if isinstance(zoneout, Mapping) else {dim.name: zoneout for dim in dims}
    pairs = {
        name: Zoneout(*map(float, p)) if isinstance(p, tuple) else Zoneout(p, p)
        for name, p in given.items()
    }
    return {name: pair for name, pair in pairs.items() if any(pair)}


def draw_dropout(
    block: Block,
    shape: GridShape,
    batch: int,
    probability: float,
    like: Tensor,
    *,
    tied: Collection[str] = (),
    between: Collection[str] | None = None,
) -> Dropout | None:
    """Draws the dropout of all blocks at once.

    Args:
        block: what each block computes.
        shape: the sizes and directions of the grid.
        batch: the number of samples.
        probability: of dropping a value.
        like: a tensor with the dtype and device of the states.
        tied: the dimensions along which all blocks drop the same values.
        between: the dimensions between whose blocks values are dropped. Default: all hidden vectors
            that blocks read, also those that enter the grid.
    """
    if probability == 0:
        return None
    phases, names = len(block.phases), [transform.name for transform in block.transforms]
    sizes = [1 if name in tied else size for name, size in zip(names, shape.sizes, strict=True)]
    blocks, drawn = prod(shape.sizes), (phases, *sizes, batch, block.hidden_size)
    kept = torch.empty(drawn, dtype=torch.bool, device=like.device).bernoulli_(1 - probability)
    kept = kept.expand(phases, *shape.sizes, *drawn[-2:]).reshape(phases, blocks, *drawn[-2:])
    scale = like.new_full((phases, blocks, block.hidden_size), 1 / (1 - probability))
    if between is not None:
        unaffected = ~_is_between(block, shape, between, like.device)
        kept = kept | unaffected.unsqueeze(-2)
        scale = scale.masked_fill(unaffected, 1)
    return Dropout(kept, scale)


def _is_between(block: Block, shape: GridShape, names: Collection[str], device: torch.device) -> Tensor:
    """Which hidden values a block along one of these dimensions hands to the next, to be read there.

    ``[phases, blocks, H]``. A second phase also reads new vectors of its own block, which are not.
    """
    chosen = torch.zeros(
        len(block.phases), *shape.sizes, block.hidden_size, dtype=torch.bool, device=device
    )
    for i, transform in enumerate(block.transforms):
        if transform.name in names:
            received = chosen[: transform.phase + 1, ..., transform.hidden].movedim(i + 1, 0)
            received[: -1 if shape.reverse[i] else None][0 if shape.reverse[i] else 1 :] = True
    return chosen.view(len(block.phases), prod(shape.sizes), -1)


def draw_zoneout(block: Block, blocks: int, batch: int, device: torch.device) -> Kept | None:
    """Draws which old values all blocks keep; ``None`` without zoneout."""

    def draw(kind: str) -> Tensor | None:
        if not any(getattr(transform.zoneout, kind) for transform in block.transforms):
            return None
        parts = [
            torch.empty(blocks, batch, block.width(i), dtype=torch.bool, device=device).bernoulli_(
                getattr(transform.zoneout, kind)
            )
            for i, transform in enumerate(block.transforms)
            if getattr(transform, kind) is not None
        ]
        return torch.cat(parts, -1)

    kept = Kept(draw("hidden"), draw("memory"))
    return None if kept.hidden is None and kept.memory is None else kept
