"""The geometry of a grid: which block runs when, and where its vectors go. No tensors here.

A block has a *position*, one index per dimension, and is reached by travelling along every dimension,
forwards or backwards. Blocks at the same travelled distance from the starting corner (the same
coordinate sum) form a *step*: they need only the step before, so all of them can run at once.

A vector that travels along dimension i crosses the same *face* of every block on its way. Dimension i
has one face per position of the other dimensions, numbered in lexicographic order. A side of the grid
is the list of its dimension's faces.

A grid may be *cut* along one dimension into pieces that run one after the other. A vector that travels
along this dimension then leaves each piece through a face, and enters the next one through the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Cut",
    "GridShape",
    "Plan",
    "Step",
    "face_number",
    "make_plan",
    "position_number",
    "set_number",
    "travel",
]

Ints = NDArray[np.int64]


def travel(sizes: Sequence[int], reverse: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    """Positions in an order that visits every block after its predecessors.

    >>> list(travel([2, 2], [False, True]))
    [(0, 1), (0, 0), (1, 1), (1, 0)]
    """
    return product(
        *(range(n)[::-1] if back else range(n) for n, back in zip(sizes, reverse, strict=True))
    )


def position_number(position: Sequence[int], sizes: Sequence[int]) -> int:
    """The lexicographic number of a position."""
    return _number(position, sizes, [True] * len(sizes))


def face_number(position: Sequence[int], sizes: Sequence[int], dimension: int) -> int:
    """The face of ``dimension`` to which the block at ``position`` belongs."""
    return _number(position, sizes, [i != dimension for i in range(len(sizes))])


def set_number(position: Sequence[int], sizes: Sequence[int], untied: Sequence[bool]) -> int:
    """The weight set of the block at ``position``; 0 if all dimensions are tied."""
    return _number(position, sizes, untied)


def _number(position: Sequence[int], sizes: Sequence[int], counted: Sequence[bool]) -> int:
    number = 0
    for index, size, counts in zip(position, sizes, counted, strict=True):
        if counts:
            number = number * size + index
    return number


class Cut(NamedTuple):
    """How a grid is cut into pieces.

    Attributes:
        dimension: the number of the dimension along which it is cut.
        pieces: how many pieces there are; their lengths differ by one position at most.
    """

    dimension: int
    pieces: int


class GridShape(NamedTuple):
    """What determines a plan. Sizes may be symbolic while a graph is recorded."""

    sizes: tuple[int, ...]
    reverse: tuple[bool, ...]
    untied: tuple[bool, ...]

    def plan(self, cut: Cut | None = None) -> "Plan":
        """The plan for these sizes, as numbers."""
        return make_plan(tuple(int(size) for size in self.sizes), self.reverse, self.untied, cut)


@dataclass(frozen=True)
class Step:
    """Blocks that run at once: numbers ``start`` to ``stop`` of the plan.

    ``groups`` lists the weight sets in use as ``(set, first, last)``, with blocks counted from the
    start of the step. A set may have several groups.
    """

    start: int
    stop: int
    groups: tuple[tuple[int, int, int], ...]

    @cached_property
    def group_array(self) -> Ints:
        """``groups`` as an array, ``[groups, 3]``."""
        return np.array(self.groups, np.int64)


@dataclass(frozen=True, eq=False)
class Plan:
    """The order in which the blocks of a grid run, step by step.

    Blocks are numbered in that order. Within a step they are sorted by weight set, and then so that in
    one or two dimensions the successors of a step's blocks are contiguous in the next step.

    Attributes:
        sizes: blocks along each dimension.
        reverse: whether each dimension is travelled from its last position to its first.
        untied: whether each dimension has one weight set per position.
        cut: how the grid is cut, or ``None``.
        steps: the steps, in order.
        pieces: the steps of each piece, one after the other; a single one if the grid is not cut.
        position: for each block, the lexicographic number of its position.
        weight_set: for each block, its weight set.
        face: for each dimension and block, the face of that dimension to which it belongs. Along the
            dimension of a cut, faces are numbered on from piece to piece.
        exit: the same for vectors that leave: along the dimension of a cut, the face of the next piece.
        enters: for each dimension and block, whether that dimension's vectors come from the side, or
            from another piece.
        successor: for each dimension and block, the place in the next step of the block that
            receives its vectors, or -1 if they leave through the side, or to another piece.
    """

    sizes: tuple[int, ...]
    reverse: tuple[bool, ...]
    untied: tuple[bool, ...]
    cut: Cut | None
    steps: tuple[Step, ...]
    pieces: tuple[range, ...]
    position: Ints
    weight_set: Ints
    face: tuple[Ints, ...]
    exit: tuple[Ints, ...]
    enters: tuple[NDArray[np.bool_], ...]
    successor: tuple[Ints, ...]

    @property
    def blocks(self) -> int:
        """The number of blocks in the grid."""
        return prod(self.sizes)

    @cached_property
    def widest(self) -> int:
        """The number of blocks in the largest step."""
        return max(step.stop - step.start for step in self.steps)

    def faces(self, dimension: int) -> int:
        """The number of faces of a dimension."""
        return self.blocks // self.sizes[dimension]

    @cached_property
    def sets(self) -> int:
        """The number of weight sets."""
        return int(self.weight_set.max()) + 1

    def count(self, steps: range) -> int:
        """The number of blocks in successive steps."""
        return self.steps[steps[-1]].stop - self.steps[steps[0]].start

    def piece(self, s: int) -> range:
        """The steps of the same piece as step ``s``."""
        return self._piece_of[s]

    @cached_property
    def _piece_of(self) -> list[range]:
        return [piece for piece in self.pieces for _ in piece]

    @cached_property
    def largest_group(self) -> int:
        """The most blocks of a step that share their weights."""
        return max(last - first for step in self.steps for _, first, last in step.groups)

    def by_set(self, steps: range) -> list[tuple[int, Ints]]:
        """The weight sets in use in these steps, and their blocks, counted from the first block."""
        used = self.weight_set[self.steps[steps[0]].start : self.steps[steps[-1]].stop]
        order = np.argsort(used, kind="stable")
        sets, starts = np.unique(used[order], return_index=True)
        return list(zip(sets.tolist(), np.split(order, starts[1:]), strict=True))


@lru_cache(maxsize=256)
def make_plan(
    sizes: tuple[int, ...],
    reverse: tuple[bool, ...],
    untied: tuple[bool, ...],
    cut: Cut | None = None,
) -> Plan:
    """Plans a grid of the given sizes.

    >>> plan = make_plan((3, 2), (False, False), (False, False))
    >>> [step.stop - step.start for step in plan.steps]
    [1, 2, 2, 1]
    >>> make_plan((3, 2), (False, False), (False, False), Cut(0, 2)).pieces
    (range(0, 3), range(3, 5))
    """
    dimensions = len(sizes)
    # travelled[i]: how far along dimension i each block is, blocks in lexicographic order.
    travelled = np.indices(sizes).reshape(dimensions, -1)
    index = np.stack(
        [n - 1 - t if back else t for t, n, back in zip(travelled, sizes, reverse, strict=True)]
    )
    piece, inside = _cut(travelled, sizes, cut)
    distance = inside.sum(0)
    weight_set = _numbers(index, sizes, untied)
    order = np.lexsort((*travelled[1:], weight_set, distance, piece))
    travelled, index, inside = travelled[:, order], index[:, order], inside[:, order]
    weight_set, piece, distance = weight_set[order], piece[order], distance[order]
    position = _numbers(index, sizes, [True] * dimensions)
    starts = np.flatnonzero(np.diff(distance, prepend=-1) | np.diff(piece, prepend=0))
    step = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    firsts = np.searchsorted(piece[starts], np.arange(piece[-1] + 2))

    number = np.empty(len(order), np.int64)
    number[_numbers(travelled, sizes, [True] * dimensions)] = np.arange(len(order))
    successors = []
    for i, size in enumerate(sizes):
        leaves = travelled[i] == size - 1
        if cut is not None and i == cut.dimension:
            leaves |= _pieces(travelled[i] + 1, size, cut.pieces) > piece
        ahead = _numbers(travelled, sizes, [True] * dimensions) + prod(sizes[i + 1 :])
        following = number[np.where(leaves, 0, ahead)] - starts[(step + 1) % len(starts)]
        successors.append(np.where(leaves, -1, following))

    faces = [_numbers(index, sizes, [j != i for j in range(dimensions)]) for i in range(dimensions)]
    exits = list(faces)
    if cut is not None:
        i, count = cut.dimension, prod(sizes) // sizes[cut.dimension]
        faces[i], exits[i] = faces[i] + piece * count, faces[i] + (piece + 1) * count
    return Plan(
        sizes=sizes,
        reverse=reverse,
        untied=untied,
        cut=cut,
        steps=tuple(
            Step(int(start), int(stop), _groups(weight_set[start:stop]))
            for start, stop in pairwise([*starts, len(order)])
        ),
        pieces=tuple(range(int(first), int(last)) for first, last in pairwise(firsts)),
        position=position,
        weight_set=weight_set,
        face=tuple(faces),
        exit=tuple(exits),
        enters=tuple(inside[i] == 0 for i in range(dimensions)),
        successor=tuple(successors),
    )


def _cut(travelled: Ints, sizes: Sequence[int], cut: Cut | None) -> tuple[Ints, Ints]:
    """For each block, the number of its piece, and how far along each dimension of it the block is."""
    if cut is None:
        return np.zeros_like(travelled[0]), travelled
    i, inside = cut.dimension, travelled.copy()
    piece = _pieces(travelled[i], sizes[i], cut.pieces)
    inside[i] -= -(-piece * sizes[i] // cut.pieces)  # The first position of the piece.
    return piece, inside


def _pieces(positions: Ints, size: int, pieces: int) -> Ints:
    """The piece of each position along a dimension of this size."""
    return positions * pieces // size


def _numbers(index: Ints, sizes: Sequence[int], counted: Sequence[bool]) -> Ints:
    number = np.zeros(index.shape[1], np.int64)
    for i, size in enumerate(sizes):
        if counted[i]:
            number = number * size + index[i]
    return number


def _groups(weight_set: Ints) -> tuple[tuple[int, int, int], ...]:
    edges = [0, *(np.flatnonzero(np.diff(weight_set)) + 1).tolist(), len(weight_set)]
    return tuple((int(weight_set[first]), first, last) for first, last in pairwise(edges))
