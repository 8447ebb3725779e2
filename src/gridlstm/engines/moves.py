"""Where the vectors of a step come from and go to, as indices for tensors."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.geometry import Plan
from gridlstm.state import State

__all__ = ["Move", "Moves", "copy", "make_moves"]

Places = slice | Tensor


class Move(NamedTuple):
    """Vectors that go from some places of one tensor to some places of another."""

    source: Places
    target: Places

    def back(self) -> "Move":
        """The same way in the other direction, as gradients go it."""
        return Move(self.target, self.source)


class Moves(NamedTuple):
    """The moves of one step, one a dimension; ``None`` where a dimension has none.

    ``enter`` goes from the faces of the incoming side to the step's blocks, ``go`` from the step's
    blocks to those of the next step, ``leave`` from the step's blocks to the faces of the outgoing
    side. Blocks are counted from the start of their step.
    """

    enter: tuple[Move | None, ...]
    go: tuple[Move | None, ...]
    leave: tuple[Move | None, ...]


@lru_cache(maxsize=256)
def make_moves(plan: Plan, device: torch.device) -> tuple[Moves, ...]:
    """The moves of every step of a plan, with indices on ``device``."""

    def places(numbers: NDArray[np.int64]) -> Places:
        """A slice where the numbers are evenly spaced, as they mostly are in two dimensions."""
        gaps = np.diff(numbers)
        gap = int(gaps[0]) if len(gaps) else 1
        if gap > 0 and (gaps == gap).all():
            return slice(int(numbers[0]), int(numbers[-1]) + 1, gap)
        return torch.from_numpy(numbers).to(device)

    def make(chosen: NDArray[np.bool_], targets: NDArray[np.int64]) -> Move | None:
        if not chosen.any():
            return None
        return Move(places(np.flatnonzero(chosen)), places(targets[chosen]))

    moves = []
    for step in plan.steps:
        rows = slice(step.start, step.stop)
        enter, go, leave = [], [], []
        for face, enters, successor in zip(plan.face, plan.enters, plan.successor, strict=True):
            inward = make(enters[rows], face[rows])
            enter.append(inward and inward.back())
            go.append(make(successor[rows] >= 0, successor[rows]))
            leave.append(make(successor[rows] < 0, face[rows]))
        moves.append(Moves(tuple(enter), tuple(go), tuple(leave)))
    return tuple(moves)


def copy(way: Move | None, source: State, target: State) -> None:
    """Copies vectors along a way, if there is one; those that the source lacks are left out."""
    if way is not None:
        for vectors, places in zip(source, target, strict=True):
            if vectors is not None and places is not None:
                places[way.target] = vectors[way.source]
