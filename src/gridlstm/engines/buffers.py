"""The buffers that the steps of a call work on: one row per block and sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept
from gridlstm.engines.workspace import Workspace, pitch
from gridlstm.geometry import Plan

__all__ = [
    "Buffers",
    "Call",
    "Gradients",
    "Rows",
    "Span",
    "kept_tensors",
    "make_buffers",
    "make_gradients",
    "restore_buffers",
]

Span = Literal["all_steps", "part", "two_steps", "one_step"]
"""The steps whose rows a buffer holds at the same time."""

PARTS = 16
"""The number of parts into which the steps are divided for the span ``"part"``."""


@dataclass(frozen=True)
class Call:
    """What a call computes. Blocks are in the order of the plan.

    Attributes:
        block: what each block computes.
        plan: which blocks run when.
        batch: the number of samples.
        biases: for each phase, ``[sets, gates]``, or ``None``.
        vectors: for each phase, the learned vectors of its cells ``[sets, V]``, or ``None``.
        mask: which blocks are real, ``[blocks, batch]``, or ``None``.
        dropout: what is kept of the hidden vectors that blocks read, or ``None``.
        zoneout: which old values blocks keep, or ``None`` for the expectation.
        product: the dtype of the operands and results of matrix products; states keep their own.
        columns: for each phase, the columns of H that may differ from zero. Products leave out the
            others.
    """

    block: Block
    plan: Plan
    batch: int
    biases: tuple[Tensor | None, ...]
    vectors: tuple[Tensor | None, ...]
    mask: Tensor | None
    dropout: Dropout | None
    zoneout: Kept | None
    product: torch.dtype
    columns: tuple[slice, ...]

    @property
    def has_few_rows(self) -> bool:
        """Whether products have so few rows that laying out their matrices takes much of the time."""
        return self.plan.widest // self.plan.sets * self.batch <= 64

    @property
    def has_many_rows(self) -> bool:
        """Whether products have so many rows, all together, that it takes little of the time."""
        return self.plan.blocks * self.batch > 8192


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``[blocks, batch, columns]``, addressed by the step they belong to.

    ``span="all_steps"`` has rows for every block, ``"part"`` for the steps of one part of the grid at a
    time, ``"two_steps"`` for a step and its neighbour, ``"one_step"`` for one step at a time.
    """

    data: Tensor
    span: Span
    plan: Plan

    def first(self, s: int) -> int:
        """The number of the first row of step ``s``."""
        if self.span == "two_steps":
            return s % 2 * self.plan.widest
        return self.plan.steps[s].start - self.plan.steps[self.part(s).start].start

    def part(self, s: int) -> range:
        """The steps whose rows are held at the same time as those of step ``s``."""
        if self.span == "all_steps":
            return range(len(self.plan.steps))
        if self.span == "part":
            return self.plan.part(s, PARTS)
        return range(s, s + 1)

    def at(self, s: int) -> Tensor:
        """The rows of step ``s``, ``[blocks of the step, batch, columns]``."""
        return self.of(range(s, s + 1))

    def of(self, steps: range) -> Tensor:
        """The rows of successive steps of the same part."""
        first = self.first(steps[0])
        return self.data[first : first + self.plan.count(steps)]


@dataclass(frozen=True)
class Buffers:
    """The buffers of the forward pass, which leaves them for the backward pass.

    Attributes:
        hidden: the incoming hidden vectors, ``H`` columns.
        memory: the incoming memory vectors, ``M`` columns.
        inputs: for each phase, the hidden vectors it reads, after dropout, ``H`` columns. The first may
            be ``hidden`` itself.
        gates: for each phase, its activated gates (for a non-LSTM transform and with layer
            normalisation, the preactivations), ``G`` columns. The backward pass overwrites them with
            gradients of preactivations.
    """

    hidden: Rows
    memory: Rows
    inputs: Sequence[Rows]
    gates: Sequence[Rows]


@dataclass(frozen=True)
class Gradients:
    """The buffers of the backward pass.

    Attributes:
        hidden: the gradients of the incoming hidden vectors.
        memory: the gradients of the incoming memory vectors.
        inputs: for each phase, the gradients of what it read. The first may be ``hidden`` itself.
        vectors: for each phase, the gradient of its learned vectors so far, ``[sets, V]``, or ``None``.
    """

    hidden: Rows
    memory: Rows
    inputs: Sequence[Rows]
    vectors: Sequence[Tensor | None]


def make_buffers(
    call: Call, like: Tensor, workspace: Workspace, *, states: Span, gates: Span
) -> Buffers:
    """Takes the buffers of a call from a workspace, uninitialised."""

    def rows(span: Span, columns: int, dtype: torch.dtype) -> Rows:
        return _rows(call, like, workspace, span, columns, dtype)

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


def kept_tensors(buffers: Buffers) -> list[Tensor]:
    """What a backward pass needs: the vectors between blocks and, if kept for all steps, the gates."""
    rows = [buffers.hidden, buffers.memory]
    if buffers.gates[0].span == "all_steps":
        rows += [x for x in buffers.inputs if x is not buffers.hidden]
        rows += buffers.gates
    return [r.data for r in rows]


def restore_buffers(call: Call, kept: Sequence[Tensor], workspace: Workspace, *, copy: bool) -> Buffers:
    """Buffers for a backward pass with the :func:`kept_tensors` of the forward pass.

    Args:
        call: the call.
        kept: these tensors.
        workspace: where other buffers come from.
        copy: whether to copy what the backward pass overwrites.
    """
    like = kept[0]

    def rows(data: Tensor, *, overwritten: bool) -> Rows:
        # A compiler or a hook may have chosen another layout than that of the workspace.
        laid_out = data.stride() == (data.shape[1] * pitch(data.shape[2]), pitch(data.shape[2]), 1)
        if (overwritten and copy) or not laid_out:
            data = workspace.take(data.shape, like, data.dtype).copy_(data)
        return Rows(data, "all_steps", call.plan)

    masked = call.mask is not None  # Then the backward clears what masked blocks read.
    hidden, memory = rows(like, overwritten=masked), rows(kept[1], overwritten=False)
    if len(kept) == 2:
        scratch = make_buffers(call, like, workspace, states="one_step", gates="part")
        inputs = [hidden if x is scratch.hidden else x for x in scratch.inputs]
        return Buffers(hidden, memory, inputs, scratch.gates)
    count = len(call.block.phases)
    inputs = [rows(x, overwritten=masked) for x in kept[2:-count]]
    inputs = [*[hidden] * (count - len(inputs)), *inputs]
    return Buffers(hidden, memory, inputs, [rows(g, overwritten=True) for g in kept[-count:]])


def make_gradients(call: Call, like: Tensor, workspace: Workspace) -> Gradients:
    """Takes the buffers of a backward pass from a workspace, uninitialised except for sums."""

    def rows(span: Span, columns: int, dtype: torch.dtype) -> Rows:
        return _rows(call, like, workspace, span, columns, dtype)

    H, phases = call.block.hidden_size, len(call.block.phases)
    hidden = rows("two_steps", H, like.dtype)
    direct = any(transform.reads_hidden for transform in call.block.transforms)
    plain = call.dropout is None and call.product == like.dtype and phases == 1 and not direct
    return Gradients(
        hidden=hidden,
        memory=rows("two_steps", call.block.memory_size, like.dtype),
        inputs=[hidden if plain else rows("one_step", H, call.product) for _ in range(phases)],
        vectors=[None if v is None else torch.zeros_like(v) for v in call.vectors],
    )


def _rows(
    call: Call, like: Tensor, workspace: Workspace, span: Span, columns: int, dtype: torch.dtype
) -> Rows:
    plan = call.plan
    count = plan.widest
    if span == "all_steps":
        count = plan.blocks
    elif span == "part":
        count = max(plan.count(plan.part(s, PARTS)) for s in range(len(plan.steps)))
    elif span == "two_steps":
        count = 2 * plan.widest
    return Rows(workspace.take((count, call.batch, columns), like, dtype), span, plan)
