"""The geometry of a grid: which block runs when, and where its vectors go. No tensors here.

A block has a *position*, one index per dimension, and is reached by travelling along every dimension,
forwards or backwards. Blocks at the same travelled distance from the starting corner (the same
coordinate sum) form a *step*: they need only the step before, so all of them can run at once.

A vector that travels along dimension i crosses the same *face* of every block on its way. Dimension i
has one face per position of the other dimensions, numbered in lexicographic order. A side of the grid
is the list of its dimension's faces.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
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


class GridShape(NamedTuple):
    """What determines a plan. Sizes may be symbolic while a graph is recorded."""

    sizes: tuple[int, ...]
    reverse: tuple[bool, ...]
    untied: tuple[bool, ...]

    def plan(self) -> "Plan":
        """The plan for these sizes, as numbers."""
        return make_plan(tuple(int(size) for size in self.sizes), self.reverse, self.untied)


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
        steps: the steps, in order.
        position: for each block, the lexicographic number of its position.
        weight_set: for each block, its weight set.
        face: for each dimension and block, the face of that dimension to which it belongs.
        enters: for each dimension and block, whether that dimension's vectors come from the side.
        successor: for each dimension and block, the place in the next step of the block that
            receives its vectors, or -1 if they leave through the side.
    """

    sizes: tuple[int, ...]
    reverse: tuple[bool, ...]
    untied: tuple[bool, ...]
    steps: tuple[Step, ...]
    position: Ints
    weight_set: Ints
    face: tuple[Ints, ...]
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

    def part(self, s: int, parts: int) -> range:
        """The steps of the same part as step ``s``, of ``parts`` parts of about equal size."""
        return _parts(self, parts)[s]

    def merge(self, steps: range) -> Step:
        """Successive steps as one, for work in which none waits for another.

        Weight sets are in order, so that each is used up before the next. Blocks are not.
        """
        return self.steps[steps[0]] if len(steps) == 1 else _merge(self, steps)

    def by_set(self, steps: range) -> list[Ints]:
        """For each weight set, the blocks of these steps that use it, counted from the first block."""
        used = self.weight_set[self.steps[steps[0]].start : self.steps[steps[-1]].stop]
        order = np.argsort(used, kind="stable")
        return np.split(order, np.searchsorted(used[order], np.arange(1, self.sets)))


@lru_cache(maxsize=256)
def make_plan(sizes: tuple[int, ...], reverse: tuple[bool, ...], untied: tuple[bool, ...]) -> Plan:
    """Plans a grid of the given sizes.

    >>> plan = make_plan((3, 2), (False, False), (False, False))
    >>> [step.stop - step.start for step in plan.steps]
    [1, 2, 2, 1]
    """
    dimensions = len(sizes)
    # travelled[i]: how far along dimension i each block is, blocks in lexicographic order.
    travelled = np.indices(sizes).reshape(dimensions, -1)
    index = np.stack(
        [n - 1 - t if back else t for t, n, back in zip(travelled, sizes, reverse, strict=True)]
    )
    step = travelled.sum(0)
    weight_set = _numbers(index, sizes, untied)
    order = np.lexsort((*travelled[1:], weight_set, step))
    travelled, index, step = travelled[:, order], index[:, order], step[order]
    weight_set = weight_set[order]
    position = _numbers(index, sizes, [True] * dimensions)
    starts = np.searchsorted(step, np.arange(sum(sizes) - dimensions + 2))

    number = np.empty(len(order), np.int64)
    number[_numbers(travelled, sizes, [True] * dimensions)] = np.arange(len(order))
    successors = []
    for i, size in enumerate(sizes):
        leaves = travelled[i] == size - 1
        ahead = _numbers(travelled, sizes, [True] * dimensions) + prod(sizes[i + 1 :])
        following = number[np.where(leaves, 0, ahead)] - starts[step + 1]
        successors.append(np.where(leaves, -1, following))

    return Plan(
        sizes=sizes,
        reverse=reverse,
        untied=untied,
        steps=tuple(
            Step(int(start), int(stop), _groups(weight_set[start:stop]))
            for start, stop in pairwise(starts)
        ),
        position=position,
        weight_set=weight_set,
        face=tuple(
            _numbers(index, sizes, [j != i for j in range(dimensions)]) for i in range(dimensions)
        ),
        enters=tuple(travelled[i] == 0 for i in range(dimensions)),
        successor=tuple(successors),
    )


@lru_cache(maxsize=256)
def _parts(plan: Plan, parts: int) -> list[range]:
    """For each step, the steps of its part."""
    part_of = [step.start * parts // plan.blocks for step in plan.steps]
    return [range(bisect_left(part_of, part), bisect_right(part_of, part)) for part in part_of]


@lru_cache(maxsize=256)
def _merge(plan: Plan, steps: range) -> Step:
    start, count = plan.steps[steps[0]].start, plan.count(steps)
    if plan.sets == 1:
        return Step(start, start + count, ((0, 0, count),))
    blocks = ((number, int(n)) for number, blocks in enumerate(plan.by_set(steps)) for n in blocks)
    return Step(start, start + count, tuple((number, n, n + 1) for number, n in blocks))


def _numbers(index: Ints, sizes: Sequence[int], counted: Sequence[bool]) -> Ints:
    number = np.zeros(index.shape[1], np.int64)
    for i, size in enumerate(sizes):
        if counted[i]:
            number = number * size + index[i]
    return number


def _groups(weight_set: Ints) -> tuple[tuple[int, int, int], ...]:
    edges = [0, *(np.flatnonzero(np.diff(weight_set)) + 1).tolist(), len(weight_set)]
    return tuple((int(weight_set[first]), first, last) for first, last in pairwise(edges))
