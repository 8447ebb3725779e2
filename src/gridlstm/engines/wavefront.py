"""The fast engine: all blocks of a step at once, with a hand-written backward.

The blocks of a step need only the step before (see :mod:`gridlstm.geometry`), so one matrix product
computes them all. Their incoming vectors lie side by side, and a step's outgoing vectors are written
where the next step reads them. The gates are kept for the backward pass, which overwrites them with
the gradients of their preactivations; one product over all blocks gives the gradient of the weights.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.autograd import forward_ad

from gridlstm.block import Block, Dropout, Kept, PhaseWeights
from gridlstm.checks import autocast_dtype
from gridlstm.engines.buffers import Call, kept_tensors, make_buffers, restore_buffers
from gridlstm.engines.moves import make_order
from gridlstm.engines.passes import (
    backward_pass,
    flatten,
    forward_pass,
    grouped,
    make_call,
    present,
    used_columns,
)
from gridlstm.engines.pieces import choose_cut
from gridlstm.engines.recording import check_batched, has_saved_hooks, is_recorded
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import GridShape
from gridlstm.state import State

__all__ = ["SECOND_DERIVATIVES", "run"]


def run(
    block: Block,
    shape: GridShape,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    *,
    mask: Bool[Tensor, "blocks batch"] | None = None,
    dropout: Dropout | None = None,
    zoneout: Kept | None = None,
    trace: bool = False,
    recompute: bool = False,
) -> tuple[list[State], list[State] | None]:
    """Runs a grid; see :func:`gridlstm.engines.reference.run` for the other arguments.

    Args:
        recompute: keep only the last of a few pieces of the grid, and the vectors between them, for the
            backward pass, which computes one piece after the other again. Takes less memory and more
            time.

    Raises:
        RuntimeError: inside a PyTorch transform that only the reference engine supports.
    """
    like = incoming[0].hidden
    low = autocast_dtype(like)
    with torch.autocast(like.device.type, enabled=False) if low else nullcontext():
        weights = [w._replace(weight=w.weight.to(low or like.dtype)) for w in weights]
        given = present([*weights, *incoming])
        needed = torch.is_grad_enabled() and any(t.requires_grad for t in given)
        cut = choose_cut(shape, weights, like, recompute=recompute and needed)
        call = make_call(block, shape.plan(cut), weights, like, mask, dropout, zoneout)
        call = replace(call, columns=used_columns(call, incoming))
        tensors = flatten([*weights, *incoming])
        if any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors):
            raise RuntimeError(
                'engine="wavefront" does not support forward-mode derivatives: use engine="reference"'
            )
        if needed:
            flat = _Wavefront.apply(call, trace, recompute, has_saved_hooks(), *tensors)  # type: ignore[no-untyped-call]
            states = grouped(State, flat)
        else:
            workspace = Workspace()
            buffers = make_buffers(call, like, workspace, states="two_steps", gates="one_step")
            states = forward_pass(call, weights, incoming, buffers, trace, keep=not is_recorded())
    if not trace:
        return states, None
    _, back = make_order(call.plan, like.device)
    return states[: len(incoming)], [s.map(lambda t: t[back]) for s in states[len(incoming) :]]


SECOND_DERIVATIVES = (
    'engine="wavefront" does not support second derivatives: build the grid with engine="reference"'
)
"""The message for an attempt to differentiate a backward pass."""


class _Wavefront(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: Call, trace: bool, recompute: bool, hooked: bool, *tensors: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        split = _weight_count(call)
        weights, incoming = grouped(PhaseWeights, tensors[:split]), grouped(State, tensors[split:])
        ctx.set_materialize_grads(False)
        workspace = Workspace(reuse=not hooked)
        buffers = make_buffers(
            call,
            incoming[0].hidden,
            workspace,
            states="piece" if recompute else "all_steps",
            gates="piece" if recompute else "all_steps",
        )
        outputs = tuple(flatten(forward_pass(call, weights, incoming, buffers, trace)))
        # The sides too: a second derivative would depend on them, and they must not change in place.
        # Hooks of torch.utils.checkpoint and save_on_cpu drop or move what is saved here.
        ctx.save_for_backward(*tensors, *(kept_tensors(buffers) if hooked else ()))
        ctx.call, ctx.lock, ctx.recompute, ctx.gates_lost = call, Lock(), recompute, False
        ctx.buffers, ctx.workspace = (None, None) if hooked else (buffers, workspace)
        ctx.count = len(tensors)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        check_batched(grads)
        with ctx.lock:  # Threads may share a retained graph, and with it these buffers.
            every = ctx.saved_tensors
            saved, kept = every[: ctx.count], every[ctx.count :]
            split = _weight_count(ctx.call)
            weights, incoming = grouped(PhaseWeights, saved[:split]), grouped(State, saved[split:])
            workspace, buffers = ctx.workspace, ctx.buffers
            # This overwrites the gates, even if it fails. A second backward pass recomputes them.
            gates_lost, ctx.gates_lost = ctx.gates_lost, True
            if buffers is None:
                workspace, gates_lost = Workspace(), gates_lost or ctx.recompute
                options = {"recompute": ctx.recompute, "copy": False}
                buffers = restore_buffers(ctx.call, kept, workspace, **options)
            with torch.no_grad():
                if gates_lost and not ctx.recompute:
                    forward_pass(ctx.call, weights, incoming, buffers, trace=False)
                upstream, last_kept = grouped(State, grads), not gates_lost
                gradients = backward_pass(
                    ctx.call, weights, incoming, buffers, upstream, last_kept=last_kept
                )
            if not _graph_is_kept():
                # Freed like saved tensors: the next call can use them, even if the graph lives on.
                del ctx.buffers, ctx.workspace
        flat = [
            gradient if needed else None
            for gradient, needed in zip(flatten(gradients), ctx.needs_input_grad[4:], strict=True)
        ]
        if torch.is_grad_enabled():  # With create_graph=True.
            once = _OnlyOnce.apply(len(flat), *flat, *saved, *grads)  # type: ignore[no-untyped-call]
            flat = list(once)
        return None, None, None, None, *flat


class _OnlyOnce(torch.autograd.Function):
    """Passes gradients through, and raises an error if it is differentiated itself."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if t is None else t.view_as(t) for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise RuntimeError(SECOND_DERIVATIVES)


def _graph_is_kept() -> bool:
    """Whether this backward pass retains the graph; assumed where PyTorch has no way to ask."""
    ask = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return True if ask is None else bool(ask())


def _weight_count(call: Call) -> int:
    return len(PhaseWeights._fields) * len(call.block.phases)
