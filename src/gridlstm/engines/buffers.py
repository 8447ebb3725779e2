"""The buffers that the steps of a call work on: one row per block and sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept
from gridlstm.engines.pieces import boundary_faces
from gridlstm.engines.workspace import Workspace, pitch
from gridlstm.geometry import GridShape, Plan
from gridlstm.state import State

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

Span = Literal["all_steps", "piece", "two_steps", "one_step"]
"""The steps whose rows a buffer holds at the same time."""


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
        return self.plan.largest_group * self.batch <= 64

    @property
    def has_many_rows(self) -> bool:
        """Whether products have so many rows, all together, that it takes little of the time."""
        return self.plan.blocks * self.batch > 8192


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``[blocks, batch, columns]``, addressed by the step they belong to.

    ``span="all_steps"`` has rows for every block, ``"piece"`` for the steps of one piece of the grid at
    a time, ``"two_steps"`` for a step and its neighbour, ``"one_step"`` for one step at a time.
    """

    data: Tensor
    span: Span
    plan: Plan

    def first(self, s: int) -> int:
        """The number of the first row of step ``s``."""
        if self.span == "two_steps":
            return s % 2 * self.plan.widest
        if self.span == "one_step":
            return 0
        first = 0 if self.span == "all_steps" else self.plan.steps[self.plan.piece(s).start].start
        return self.plan.steps[s].start - first

    def at(self, s: int) -> Tensor:
        """The rows of step ``s``, ``[blocks of the step, batch, columns]``."""
        return self.of(range(s, s + 1))

    def of(self, steps: range) -> Tensor:
        """The rows of successive steps."""
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
        boundary: if the grid is cut, the vectors that enter each piece along the dimension of the cut
            and those that leave the last one, ``[faces of all pieces, batch, d]``; or ``None``.
    """

    hidden: Rows
    memory: Rows
    inputs: Sequence[Rows]
    gates: Sequence[Rows]
    boundary: State | None


@dataclass(frozen=True)
class Gradients:
    """The buffers of the backward pass.

    Attributes:
        hidden: the gradients of the incoming hidden vectors.
        memory: the gradients of the incoming memory vectors.
        inputs: for each phase, the gradients of what it read. The first may be ``hidden`` itself.
        vectors: for each phase, the gradient of its learned vectors so far, ``[sets, V]``, or ``None``.
        boundary: if the grid is cut, the gradients of the vectors between pieces; or ``None``.
    """

    hidden: Rows
    memory: Rows
    inputs: Sequence[Rows]
    vectors: Sequence[Tensor | None]
    boundary: State | None


def make_buffers(
    call: Call,
    like: Tensor,
    workspace: Workspace,
    *,
    states: Span,
    gates: Span,
    boundary: State | None = None,
) -> Buffers:
    """Takes the buffers of a call from a workspace, uninitialised, except for a ``boundary``."""

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
        boundary=boundary or _make_boundary(call, like, workspace),
    )


def kept_tensors(buffers: Buffers) -> list[Tensor]:
    """What a backward pass needs: the buffers, or only the vectors between the pieces of a grid."""
    if buffers.gates[0].span != "all_steps":
        assert buffers.boundary is not None, "a grid whose gates are recomputed is cut"
        return [t for t in buffers.boundary if t is not None]
    inputs = [x for x in buffers.inputs if x is not buffers.hidden]
    return [rows.data for rows in (buffers.hidden, buffers.memory, *inputs, *buffers.gates)]


def restore_buffers(
    call: Call, kept: Sequence[Tensor], workspace: Workspace, *, recompute: bool, copy: bool
) -> Buffers:
    """Buffers for a backward pass with the :func:`kept_tensors` of the forward pass.

    Args:
        call: the call.
        kept: these tensors.
        workspace: where other buffers come from.
        recompute: whether only the vectors between pieces were kept.
        copy: whether to copy what the backward pass overwrites.
    """
    like = kept[0]
    if recompute:
        # What is recomputed is written there again.
        boundary = State(*(t.clone() if copy or not t.is_contiguous() else t for t in kept))
        return make_buffers(call, like, workspace, states="piece", gates="piece", boundary=boundary)

    def rows(data: Tensor, *, overwritten: bool) -> Rows:
        # A compiler or a hook may have chosen another layout than that of the workspace.
        laid_out = data.stride() == (data.shape[1] * pitch(data.shape[2]), pitch(data.shape[2]), 1)
        if (overwritten and copy) or not laid_out:
            data = workspace.take(data.shape, like, data.dtype).copy_(data)
        return Rows(data, "all_steps", call.plan)

    masked = call.mask is not None  # Then the backward clears what masked blocks read.
    hidden, memory = rows(like, overwritten=masked), rows(kept[1], overwritten=False)
    count = len(call.block.phases)
    inputs = [rows(x, overwritten=masked) for x in kept[2:-count]]
    inputs = [*[hidden] * (count - len(inputs)), *inputs]
    gates = [rows(g, overwritten=True) for g in kept[-count:]]
    return Buffers(hidden, memory, inputs, gates, _make_boundary(call, like, workspace))


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
        boundary=_make_boundary(call, like, workspace),
    )


def _rows(
    call: Call, like: Tensor, workspace: Workspace, span: Span, columns: int, dtype: torch.dtype
) -> Rows:
    plan = call.plan
    count = plan.widest
    if span == "all_steps":
        count = plan.blocks
    elif span == "piece":
        count = max(map(plan.count, plan.pieces))
    elif span == "two_steps":
        count = 2 * plan.widest
    return Rows(workspace.take((count, call.batch, columns), like, dtype), span, plan)


def _make_boundary(call: Call, like: Tensor, workspace: Workspace) -> State | None:
    """Takes what vectors between pieces need."""
    plan, cut = call.plan, call.plan.cut
    if cut is None:
        return None
    transform = call.block.transforms[cut.dimension]
    faces = boundary_faces(GridShape(plan.sizes, plan.reverse, plan.untied), cut.dimension)
    shape = (faces, call.batch, call.block.width(cut.dimension))

    def take() -> Tensor:
        return workspace.take((prod(shape),), like).view(shape)  # Sides are contiguous.

    return State(take(), None if transform.memory is None else take())
