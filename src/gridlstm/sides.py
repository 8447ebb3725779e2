"""The sides of a grid: checks of their shapes, and the layout that the engines use.

For a caller, a side is ``[batch, *sizes of the other dimensions, hidden]``; for an engine it is
``[faces, batch, hidden]``.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from gridlstm.checks import check_kind, check_lengths
from gridlstm.dim import Dim
from gridlstm.state import State

__all__ = ["Extent", "check_sides", "from_faces", "make_incoming", "make_mask"]


class Extent(NamedTuple):
    """The size of a call: the batch size, and the number of blocks along each dimension."""

    batch: int
    sizes: tuple[int, ...]


def check_sides(dims: Sequence[Dim], sides: Mapping[str, State], like: Tensor) -> Extent:
    """Checks the incoming sides of a call and derives its extent from them.

    Raises:
        TypeError: if a side is not a pair of tensors, or not of the dtype of ``like``.
        ValueError: if a side is unknown, has the wrong shape or is on another device than ``like``, or
            the size of a dimension is unknown.
    """
    if not isinstance(sides, Mapping):
        raise TypeError(f"sides: expected a mapping from names to State, got {type(sides).__name__}")
    names = [dim.name for dim in dims]
    if not sides:
        raise ValueError(f"sides: expected at least one of {', '.join(names)}, got none")
    sizes = {dim.name: dim.size for dim in dims} | {"batch": None}
    for name, side in sides.items():
        if name not in names:
            raise ValueError(f'sides: unknown dimension "{name}", expected some of {", ".join(names)}')
        if not isinstance(side, tuple) or len(side) != 2:
            raise TypeError(
                f'side "{name}": expected a State or a pair (hidden, memory), got {type(side).__name__}'
            )
        if not isinstance(side[0], Tensor):
            raise TypeError(
                f'side "{name}": expected hidden to be a tensor, got {type(side[0]).__name__}'
            )
        dim = dims[names.index(name)]
        hidden, memory = side
        axes = ["batch", *(other for other in names if other != name), "hidden"]
        sizes["hidden"] = dim.hidden_size
        _check_vectors(name, "hidden", hidden, axes, sizes, like)
        sizes.update(zip(axes, hidden.shape, strict=True))
        if memory is None:
            continue
        if not dim.has_memory:
            raise ValueError(
                f'side "{name}": expected no memory because the dimension has none '
                f"(transform {dim.transform!r}), got one"
            )
        if not isinstance(memory, Tensor):
            raise TypeError(
                f'side "{name}": expected memory to be a tensor or None, got {type(memory).__name__}'
            )
        _check_vectors(name, "memory", memory, axes, sizes, like)
    known = []
    for name in names:
        size = sizes[name]
        if size is None:
            raise ValueError(
                f'dimension "{name}": unknown size: expected a side of another dimension, or '
                f"a size in Dim, got sides {', '.join(sides)}"
            )
        if size == 0:
            raise ValueError(f'dimension "{name}": expected a size of at least 1, got 0')
        known.append(size)
    return Extent(sizes["batch"] or 0, tuple(known))


def _check_vectors(
    side: str,
    what: str,
    vectors: Tensor,
    axes: Sequence[str],
    sizes: Mapping[str, int | None],
    like: Tensor,
) -> None:
    expected = [sizes[axis] for axis in axes]
    shape = list(vectors.shape)
    if len(shape) != len(expected) or any(
        size is not None and size != got for size, got in zip(expected, shape, strict=True)
    ):
        shown = [axis if size is None else str(size) for axis, size in zip(axes, expected, strict=True)]
        raise ValueError(
            f'side "{side}": expected {what} [{", ".join(shown)}] ({", ".join(axes)}), got {shape}'
        )
    check_kind(f'side "{side}": {what}', vectors, like)


def make_mask(
    dims: Sequence[Dim],
    extent: Extent,
    lengths: Mapping[str, Tensor] | None,
    mask: Tensor | None,
    device: torch.device,
) -> Tensor | None:
    """Which blocks are real, ``[blocks, batch]``; ``None`` if all are.

    Raises:
        TypeError: if lengths are not integers or the mask is not boolean.
        ValueError: if a name is unknown, a shape is wrong or a length is out of range.
    """
    names = [dim.name for dim in dims]
    full = (extent.batch, *extent.sizes)
    real = None
    if mask is not None:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
            raise TypeError(f"mask: expected a tensor of dtype torch.bool, got {kind}")
        if mask.shape != full:
            raise ValueError(
                f"mask: expected {list(full)} (batch, {', '.join(names)}), got {list(mask.shape)}"
            )
        real = _to_device("mask", mask, device)
    if not isinstance(lengths, Mapping | None):
        raise TypeError(
            f"lengths: expected a mapping from names to tensors, got {type(lengths).__name__}"
        )
    for name, length in (lengths or {}).items():
        if name not in names:
            raise ValueError(
                f'lengths: unknown dimension "{name}", expected some of {", ".join(names)}'
            )
        i = names.index(name)
        check_lengths(f'lengths "{name}"', length, extent.batch, 0, extent.sizes[i])
        length = _to_device(f'lengths "{name}"', length, device)
        inside = torch.arange(extent.sizes[i], device=device) < length.unsqueeze(-1)
        axes = [extent.batch, *(1 if j != i else size for j, size in enumerate(extent.sizes))]
        inside = inside.view(axes)
        real = inside if real is None else real & inside
    return None if real is None else real.expand(full).flatten(1).mT


def _to_device(name: str, tensor: Tensor, device: torch.device) -> Tensor:
    """Lengths and masks may be on any device, except on meta, which has no values."""
    if tensor.is_meta and device.type != "meta":
        raise ValueError(f"{name}: expected a tensor on {device}, got {tensor.device}")
    return tensor.to(device)


def make_incoming(
    dims: Sequence[Dim], extent: Extent, sides: Mapping[str, State], like: Tensor
) -> list[State]:
    """For each dimension, its incoming side as the engines use it; missing vectors are zero."""
    incoming = []
    for i, dim in enumerate(dims):
        hidden, memory = sides.get(dim.name, (None, None))
        faces = prod([size for j, size in enumerate(extent.sizes) if j != i])
        shape = (faces, extent.batch, dim.hidden_size or 0)
        zero = like.new_zeros(1).expand(shape)
        new_hidden = zero if hidden is None else _to_faces(hidden).to(like.dtype)
        new_memory = zero if memory is None else _to_faces(memory).to(like.dtype)
        incoming.append(State(new_hidden, new_memory if dim.has_memory else None))
    return incoming


def _to_faces(tensor: Tensor) -> Tensor:
    """``[batch, *others, hidden]`` to ``[faces, batch, hidden]``."""
    if tensor.dim() == 2:
        return tensor.unsqueeze(0)
    return tensor.movedim(0, -2).flatten(0, -3)


def from_faces(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """``[faces or blocks, batch, hidden]`` to ``[batch, *sizes, hidden]``."""
    if not sizes:
        return tensor.squeeze(0)
    return tensor.view(*sizes, *tensor.shape[1:]).movedim(-2, 0)
