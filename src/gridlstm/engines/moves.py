"""Where the vectors of a step come from and go to, as indices for tensors."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.engines.recording import is_recorded
from gridlstm.geometry import Plan
from gridlstm.state import State

__all__ = ["Move", "Moves", "copy", "make_by_set", "make_moves", "make_order", "make_sets"]

P = ParamSpec("P")
R = TypeVar("R")
Places = slice | Tensor
Numbered = tuple[slice | int, slice | int]
"""A move before its indices are tensors: indices are given by their number in a list."""


class Move(NamedTuple):
    """A copy of vectors from some places of one tensor to some places of another."""

    source: Places
    target: Places

    def back(self) -> "Move":
        """The move in the opposite direction, for gradients."""
        return Move(self.target, self.source)


class Moves(NamedTuple):
    """The moves of one step, one per dimension; ``None`` where a dimension has none.

    ``enter`` goes from the faces of the incoming side to the step's blocks, ``go`` from the step's
    blocks to those of the next step, ``leave`` from the step's blocks to the faces of the outgoing
    side. Blocks are counted from the start of their step.
    """

    enter: tuple[Move | None, ...]
    go: tuple[Move | None, ...]
    leave: tuple[Move | None, ...]


def kept_on_device(make: Callable[P, R]) -> Callable[P, R]:
    """Keeps indices for later calls, which copy nothing to a device: a CUDA graph can capture them.

    An index created under a fake tensor mode, or while a graph was being recorded, must not be used by
    a later call; it is not kept.
    """
    kept = lru_cache(maxsize=256)(make)

    @wraps(make)
    def get(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_recorded():
            return make(*args, **kwargs)
        with torch.inference_mode(False):  # A later call may need gradients.
            return kept(*args, **kwargs)  # type: ignore[arg-type]

    return get


@kept_on_device
def make_order(plan: Plan, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each block the number of its position, and for each position the number of its block."""
    order = torch.from_numpy(plan.position).to(device)
    return order, torch.from_numpy(np.argsort(plan.position)).to(device)


@kept_on_device
def make_sets(plan: Plan, device: torch.device) -> Tensor:
    """The weight set of each block."""
    return torch.from_numpy(plan.weight_set).to(device)


@kept_on_device
def make_by_set(plan: Plan, device: torch.device, steps: range) -> list[tuple[int, Places]]:
    """The weight sets in use in these steps, and their blocks; see :meth:`Plan.by_set`."""
    found = []
    for number, blocks in plan.by_set(steps):
        evenly = _slice(blocks)
        found.append((number, torch.from_numpy(blocks).to(device) if evenly is None else evenly))
    return found


@kept_on_device
def make_moves(plan: Plan, device: torch.device) -> list[Moves]:
    """The moves of every step of a plan, with indices on ``device``."""
    steps, numbers, lengths = _number_moves(plan)
    # torch.export.save fails on constants without elements.
    indices = torch.from_numpy(numbers).to(device).split(lengths) if lengths else ()

    def place(numbered: slice | int) -> Places:
        return numbered if isinstance(numbered, slice) else indices[numbered]

    def make(numbered: Numbered | None) -> Move | None:
        return None if numbered is None else Move(place(numbered[0]), place(numbered[1]))

    return [Moves(*(tuple(map(make, moves)) for moves in step)) for step in steps]


@lru_cache(maxsize=256)
def _number_moves(
    plan: Plan,
) -> tuple[list[list[list[Numbered | None]]], NDArray[np.int64], list[int]]:
    """The moves of every step as in :class:`Moves`, all their indices in one array, and the lengths."""
    indices: list[NDArray[np.int64]] = []

    def place(numbers: NDArray[np.int64]) -> slice | int:
        evenly = _slice(numbers)
        if evenly is not None:
            return evenly
        indices.append(numbers)
        return len(indices) - 1

    def make(chosen: NDArray[np.bool_], targets: NDArray[np.int64]) -> Numbered | None:
        if not chosen.any():
            return None
        return place(np.flatnonzero(chosen)), place(targets[chosen])

    steps = []
    for step in plan.steps:
        rows = slice(step.start, step.stop)
        enter, go, leave = [], [], []
        for face, exit_, enters, successor in zip(
            plan.face, plan.exit, plan.enters, plan.successor, strict=True
        ):
            inward = make(enters[rows], face[rows])
            enter.append(inward and inward[::-1])
            go.append(make(successor[rows] >= 0, successor[rows]))
            leave.append(make(successor[rows] < 0, exit_[rows]))
        steps.append([enter, go, leave])
    return steps, np.concatenate([np.empty(0, np.int64), *indices]), [len(i) for i in indices]


def _slice(numbers: NDArray[np.int64]) -> slice | None:
    """A slice where the numbers are evenly spaced, as they mostly are in two dimensions."""
    gaps = np.diff(numbers)
    gap = int(gaps[0]) if len(gaps) else 1
    evenly = gap > 0 and (gaps == gap).all()
    return slice(int(numbers[0]), int(numbers[-1]) + 1, gap) if evenly else None


def copy(move: Move | None, source: State, target: State) -> None:
    """Carries out a move, if there is one, for the vectors that both states have."""
    if move is not None:
        for vectors, places in zip(source, target, strict=True):
            if vectors is not None and places is not None:
                places[move.target] = vectors[move.source]
