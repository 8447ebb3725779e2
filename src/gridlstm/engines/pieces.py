"""Whether to cut a grid into pieces that run one after the other, and what crosses their boundaries."""

from collections.abc import Sequence
from math import prod

from torch import Tensor

from gridlstm.block import PhaseWeights
from gridlstm.geometry import Cut, GridShape

__all__ = ["boundary_faces", "choose_cut", "cut_dimension"]

PIECES = 6
"""The most pieces of a grid whose gates are recomputed: memory falls to about a sixth."""
CACHE = 2**21
"""Bytes of weights that stay in the cache of a core, about."""


def choose_cut(
    shape: GridShape, weights: Sequence[PhaseWeights], like: Tensor, *, recompute: bool
) -> Cut | None:
    """How to cut a grid, if at all.

    Args:
        shape: its shape.
        weights: one per phase.
        like: an incoming side, ``[faces, batch, d]``.
        recompute: whether the pieces will be recomputed one at a time.
    """
    i = cut_dimension(shape, weights, like, recompute=recompute)
    if i is None:
        return None
    if shape.untied[i]:
        return Cut(i, shape.sizes[i])
    rows = prod(shape.sizes) * like.shape[1]
    return Cut(i, max(1, min(PIECES, shape.sizes[i], rows // _least_rows(weights))))


def _least_rows(weights: Sequence[PhaseWeights]) -> int:
    """The rows of a piece below which adding up the weights' gradients takes much of the time."""
    return 1 + weights[0].weight.shape[-1] // 4


def cut_dimension(
    shape: GridShape, weights: Sequence[PhaseWeights], like: Tensor, *, recompute: bool
) -> int | None:
    """The dimension along which to cut. Sizes may be symbolic.

    If the weights of an untied grid do not fit into the cache of a processor, a piece has the blocks of
    one position along the first untied dimension, so that each weight is read from memory once. On
    other devices it is better to run as many blocks at a time as possible.
    """
    size = sum(w.weight.numel() * w.weight.element_size() for w in weights)
    if any(shape.untied) and like.device.type == "cpu" and size > CACHE:
        return shape.untied.index(True)
    return 0 if recompute else None


def boundary_faces(shape: GridShape, i: int) -> int:
    """Of a grid cut along dimension i, the faces of all pieces. Sizes may be symbolic."""
    # Along a tied dimension, the number does not depend on the size: fewer may be in use.
    pieces = shape.sizes[i] if shape.untied[i] else PIECES
    return (pieces + 1) * prod(size for j, size in enumerate(shape.sizes) if j != i)
