"""The buffers that the steps of a call work on: one row for each block of a step and each sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gridlstm.block import Block, Dropout
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import Plan

__all__ = ["Buffers", "Call", "Gradients", "Keep", "Rows", "make_buffers", "make_gradients"]

Keep = Literal["all", "part", "two", "one"]

PARTS = 16
"""Into how many parts a grid is cut where only a part of the gates is kept."""


@dataclass(frozen=True)
class Call:
    """What a call computes. Mask and dropout are in the order of the plan.

    Attributes:
        block: what each block computes.
        plan: which blocks run when.
        batch: the number of samples.
        biases: for each phase, ``[sets, gates]``, or ``None``.
        peepholes: for each phase, the diagonal weights ``[sets, P]``, or ``None``.
        mask: which blocks are real, ``[blocks, batch]``, or ``None``.
        dropout: what is kept, ``[phases, blocks, batch, H]``, or ``None``.
        product: the type of the operands and results of matrix products; states keep their own.
    """

    block: Block
    plan: Plan
    batch: int
    biases: tuple[Tensor | None, ...]
    peepholes: tuple[Tensor | None, ...]
    mask: Tensor | None
    dropout: Dropout | None
    product: torch.dtype


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``[blocks, batch, columns]``, found by the step they belong to.

    ``keep="all"`` has rows for every block; ``"part"`` for the steps of one part of the grid at a
    time; ``"two"`` for a step and its neighbour, in turn; ``"one"`` for one step at a time.
    """

    data: Tensor
    keep: Keep
    plan: Plan

    def first(self, s: int) -> int:
        """The number of the first row of step ``s``."""
        if self.keep == "two":
            return s % 2 * self.plan.widest
        return self.plan.steps[s].start - self.plan.steps[self.part(s).start].start

    def part(self, s: int) -> range:
        """The steps whose rows are there at the same time as those of step ``s``."""
        if self.keep == "all":
            return range(len(self.plan.steps))
        if self.keep == "part":
            return self.plan.part(s, PARTS)
        return range(s, s + 1)

    def at(self, s: int) -> Tensor:
        """The rows of step ``s``, ``[blocks of the step, batch, columns]``."""
        return self.of(range(s, s + 1))

    def of(self, steps: range) -> Tensor:
        """The rows of successive steps, which are there at the same time."""
        first = self.first(steps[0])
        return self.data[first : first + self.plan.count(steps)]


@dataclass(frozen=True)
class Buffers:
    """What the forward pass works on, and leaves for the backward pass.

    Attributes:
        hidden: the incoming hidden vectors, ``H`` columns.
        memory: the incoming memory vectors, ``M`` columns.
        inputs: for each phase, what it multiplies by its weights: the hidden vectors it reads, after
            dropout, ``H`` columns. The first may be ``hidden`` itself.
        gates: for each phase its gates, activated (of a non-LSTM transform, the preactivations),
            ``G`` columns. The backward pass overwrites them with gradients of preactivations.
    """

    hidden: Rows
    memory: Rows
    inputs: Sequence[Rows]
    gates: Sequence[Rows]


@dataclass(frozen=True)
class Gradients:
    """What the backward pass works on.

    Attributes:
        hidden: the gradients of the incoming hidden vectors.
        memory: the gradients of the incoming memory vectors.
        inputs: for each phase, the gradients of what it read. The first may be ``hidden`` itself.
        peepholes: for each phase, the gradient of the diagonal weights so far, ``[sets, P]``; or
            ``None``.
    """

    hidden: Rows
    memory: Rows
    inputs: Sequence[Rows]
    peepholes: Sequence[Tensor | None]


def make_buffers(
    call: Call, like: Tensor, workspace: Workspace, *, states: Keep, gates: Keep
) -> Buffers:
    """Takes the buffers of a call from a workspace, uninitialised."""

    def rows(keep: Keep, columns: int, dtype: torch.dtype) -> Rows:
        return _rows(call, like, workspace, keep, columns, dtype)

    H = call.block.hidden_size
    hidden = rows(states, H, like.dtype)
    plain = call.dropout is None and call.product == like.dtype
    return Buffers(
        hidden=hidden,
        memory=rows(states, call.block.memory_size, like.dtype),
        inputs=[
            hidden if plain and p == 0 else rows(gates, H, call.product)
            for p in range(len(call.block.phases))
        ],
        gates=[rows(gates, size, call.product) for size in call.block.gate_sizes],
    )


def make_gradients(call: Call, like: Tensor, workspace: Workspace) -> Gradients:
    """Takes the buffers of a backward pass from a workspace, uninitialised but for sums."""

    def rows(keep: Keep, columns: int, dtype: torch.dtype) -> Rows:
        return _rows(call, like, workspace, keep, columns, dtype)

    H, phases = call.block.hidden_size, len(call.block.phases)
    hidden = rows("two", H, like.dtype)
    direct = any(transform.cell.reads_hidden for transform in call.block.transforms)
    plain = call.dropout is None and call.product == like.dtype and phases == 1 and not direct
    return Gradients(
        hidden=hidden,
        memory=rows("two", call.block.memory_size, like.dtype),
        inputs=[hidden if plain else rows("one", H, call.product) for _ in range(phases)],
        peepholes=[None if p is None else torch.zeros_like(p) for p in call.peepholes],
    )


def _rows(
    call: Call, like: Tensor, workspace: Workspace, keep: Keep, columns: int, dtype: torch.dtype
) -> Rows:
    plan = call.plan
    count = plan.widest
    if keep == "all":
        count = plan.blocks
    elif keep == "part":
        count = max(plan.count(plan.part(s, PARTS)) for s in range(len(plan.steps)))
    elif keep == "two":
        count = 2 * plan.widest
    return Rows(workspace.take((count, call.batch, columns), like, dtype), keep, plan)
