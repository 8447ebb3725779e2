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
from typing import Any, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.autograd import forward_ad

from gridlstm.block import Block, Dropout, Kept, PhaseWeights
from gridlstm.checks import autocast_dtype
from gridlstm.engines.backend import Backend, Boundary
from gridlstm.engines.buffers import Buffers, Call, make_buffers, make_gradients
from gridlstm.engines.dispatch import choose_backend
from gridlstm.engines.moves import make_order
from gridlstm.engines.packing import pack_kept, pack_once
from gridlstm.engines.products import GradWeights, Matrices
from gridlstm.engines.recording import check_batched, is_recorded
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import GridShape, Plan
from gridlstm.state import State

__all__ = [
    "SECOND_DERIVATIVES",
    "backward_pass",
    "flatten",
    "forward_pass",
    "grouped",
    "make_call",
    "new_state",
    "present",
    "run",
    "spread",
]


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
        recompute: keep only the vectors between blocks for the backward pass, which recomputes the
            gates. Takes less memory and more time.

    Raises:
        RuntimeError: inside a PyTorch transform that only the reference engine supports.
    """
    like = incoming[0].hidden
    low = autocast_dtype(like)
    with torch.autocast(like.device.type, enabled=False) if low else nullcontext():
        weights = [w._replace(weight=w.weight.to(low or like.dtype)) for w in weights]
        call = make_call(block, shape.plan(), weights, like, mask, dropout, zoneout)
        call = replace(call, columns=_used_columns(call, incoming))
        tensors = flatten([*weights, *incoming])
        if any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors):
            raise RuntimeError(
                'engine="wavefront" does not support forward-mode derivatives: use engine="reference"'
            )
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
            flat = _Wavefront.apply(call, trace, recompute, *tensors)  # type: ignore[no-untyped-call]
            states = grouped(State, flat)
        else:
            workspace = Workspace()
            buffers = make_buffers(call, like, workspace, states="two_steps", gates="one_step")
            states = forward_pass(call, weights, incoming, buffers, trace, keep=not is_recorded())
    if not trace:
        return states, None
    _, back = make_order(call.plan, like.device)
    return states[: len(incoming)], [s.map(lambda t: t[back]) for s in states[len(incoming) :]]


def make_call(
    block: Block,
    plan: Plan,
    weights: Sequence[PhaseWeights],
    like: Tensor,
    mask: Bool[Tensor, "blocks batch"] | None,
    dropout: Dropout | None,
    zoneout: Kept | None,
) -> Call:
    """A call, with everything in the order of the plan.

    Args:
        block: what each block computes.
        plan: which blocks run when.
        weights: one per phase, in the dtype of products.
        like: an incoming side.
        mask: as in :func:`run`, with blocks in lexicographic order.
        dropout: the same.
        zoneout: the same.
    """
    order, _ = make_order(plan, like.device)
    return Call(
        block,
        plan,
        batch=like.shape[1],
        biases=tuple(_detached([w.bias for w in weights])),
        vectors=tuple(_detached([w.vectors for w in weights])),
        mask=None if mask is None else mask[order],
        dropout=None if dropout is None else Dropout(*(t[:, order] for t in dropout)),
        zoneout=None if zoneout is None else Kept(*(t if t is None else t[order] for t in zoneout)),
        product=weights[0].weight.dtype,
        columns=(slice(0, block.hidden_size),) * len(block.phases),
    )


def _used_columns(call: Call, incoming: Sequence[State]) -> tuple[slice, ...]:
    """For each phase, the columns of H without those of missing sides at either end.

    Along a dimension with one position, all that arrives is the incoming side. If it is missing, it is
    zero, and so is its part of every product.
    """
    transforms = call.block.transforms
    missing = [
        size == 1 and _is_missing(side.hidden)
        for size, side in zip(call.plan.sizes, incoming, strict=True)
    ]
    used = []
    for p in range(len(call.block.phases)):
        # A later phase reads the new vectors of an earlier one.
        there = [
            transform.hidden
            for transform, zero in zip(transforms, missing, strict=True)
            if not zero or transform.phase < p
        ]
        used.append(
            slice(there[0].start, there[-1].stop) if there else slice(0, call.block.hidden_size)
        )
    return tuple(used)


def _is_missing(side: Tensor) -> bool:
    """Whether a side is one zero, expanded. Asking a device for its value would take too long."""
    one = side.device.type == "cpu" and not any(side.stride()) and not is_recorded()
    return one and side.numel() > 0 and not side.requires_grad and not side.flatten()[0].item()


SECOND_DERIVATIVES = (
    'engine="wavefront" does not support second derivatives: build the grid with engine="reference"'
)
"""The message for an attempt to differentiate a backward pass."""


class _Wavefront(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: Call, trace: bool, recompute: bool, *tensors: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        split = _weight_count(call)
        weights, incoming = grouped(PhaseWeights, tensors[:split]), grouped(State, tensors[split:])
        ctx.set_materialize_grads(False)
        # The sides too: a second derivative would depend on them, and they must not change in place.
        ctx.save_for_backward(*tensors)
        ctx.call, ctx.workspace, ctx.lock = call, Workspace(), Lock()
        ctx.buffers = make_buffers(
            call,
            incoming[0].hidden,
            ctx.workspace,
            states="all_steps",
            gates="part" if recompute else "all_steps",
        )
        ctx.gates_lost = recompute
        return tuple(flatten(forward_pass(call, weights, incoming, ctx.buffers, trace)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        check_batched(grads)
        with ctx.lock:  # Threads may share a retained graph, and with it these buffers.
            saved = ctx.saved_tensors
            weights = grouped(PhaseWeights, saved[: _weight_count(ctx.call)])
            # This overwrites the gates, even if it fails. A second backward pass recomputes them.
            gates_lost, ctx.gates_lost = ctx.gates_lost, True
            with torch.no_grad():
                gradients = backward_pass(
                    ctx.call, weights, ctx.buffers, grouped(State, grads), recompute=gates_lost
                )
            if not _graph_is_kept():
                # Freed like saved tensors: the next call can use them, even if the graph lives on.
                del ctx.buffers, ctx.workspace
        flat = [
            gradient if needed else None
            for gradient, needed in zip(flatten(gradients), ctx.needs_input_grad[3:], strict=True)
        ]
        if torch.is_grad_enabled():  # With create_graph=True.
            once = _OnlyOnce.apply(len(flat), *flat, *saved, *grads)  # type: ignore[no-untyped-call]
            flat = list(once)
        return None, None, None, *flat


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


def forward_pass(
    call: Call,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    buffers: Buffers,
    trace: bool,
    *,
    keep: bool = False,
) -> list[State]:
    """The outgoing sides, ``[faces, batch, d]``; with ``trace``, followed by those of all blocks.

    With ``keep``, what is made of the weights for products is kept for later calls.
    """
    outgoing = [new_state(side, side.hidden.shape[0]) for side in incoming]
    blocks = [new_state(side, call.plan.blocks) for side in incoming] if trace else []
    choice = choose_backend(call.block, buffers.hidden.data, call.product)
    backend = choice(call, buffers, None, Boundary(incoming, outgoing, blocks))
    pack = pack_kept if keep else pack_once
    packed = [pack(choice, w.weight, call, p) for p, w in enumerate(weights)]
    for s in range(len(call.plan.steps)):
        backend.enter(s)
        _run_phases(call, packed, buffers, backend, s)
    return [*outgoing, *blocks]


def _run_phases(
    call: Call,
    packed: Sequence[Matrices],
    buffers: Buffers,
    backend: Backend,
    s: int,
    *,
    discard: bool = False,
) -> None:
    """The forward pass of one step, phase by phase."""
    for p, matrices in enumerate(packed):
        if buffers.inputs[p] is not buffers.hidden:
            backend.read(s, p)
        x = buffers.inputs[p].at(s)[..., call.columns[p]]
        matrices.multiply(x, call.plan.steps[s], buffers.gates[p].at(s))
        backend.forward(s, p, discard=discard)


def backward_pass(
    call: Call,
    weights: Sequence[PhaseWeights],
    buffers: Buffers,
    grads: Sequence[State],
    *,
    recompute: bool,
) -> list[PhaseWeights | State]:
    """The backward of ``forward_pass``: the gradients of the weights and of the incoming sides.

    Args:
        grads: the gradients of what ``forward_pass`` returned.
        recompute: whether to recompute the gates, because the buffers do not have them.
    """
    like, count = buffers.hidden.data, len(call.block.transforms)
    workspace = Workspace()
    gradients = make_gradients(call, like, workspace)
    incoming = [
        State(like.new_empty(shape), None if transform.memory is None else like.new_empty(shape))
        for i, transform in enumerate(call.block.transforms)
        for shape in [(call.plan.faces(i), call.batch, call.block.width(i))]
    ]
    choice = choose_backend(call.block, like, call.product)
    backend = choice(call, buffers, gradients, Boundary(incoming, grads[:count], grads[count:]))
    grad_weights = GradWeights(weights, buffers, call.columns)
    packed = [pack_once(choice, w.weight, call, p) for p, w in enumerate(weights) if recompute]
    back = [
        choice.pack(w.weight[..., columns], call)
        for w, columns in zip(weights, call.columns, strict=True)
    ]
    for s in reversed(range(len(call.plan.steps))):
        if recompute:
            _run_phases(call, packed, buffers, backend, s, discard=True)
        for p in reversed(range(len(weights))):
            backend.backward(s, p)
            grad_input = gradients.inputs[p].at(s)[..., call.columns[p]]
            back[p].multiply(buffers.gates[p].at(s), call.plan.steps[s], grad_input)
        backend.finish(s)
        grad_weights.add(s)
    sums = zip(grad_weights.finish(), gradients.vectors, strict=True)
    return [*(phase._replace(vectors=vectors) for phase, vectors in sums), *incoming]


def new_state(like: State, rows: int) -> State:
    """Uninitialised vectors of the shape of ``like``, except for the number of rows."""
    return like.map(lambda t: t.new_empty(rows, *t.shape[1:]))


Group = TypeVar("Group", State, PhaseWeights)


def flatten(groups: Sequence[State | PhaseWeights]) -> list[Tensor | None]:
    """All fields of weights or states."""
    return [tensor for group in groups for tensor in group]


def grouped(kind: type[Group], tensors: Sequence[Any]) -> list[Group]:
    """The inverse of :func:`flatten`."""
    size = len(kind._fields)
    return [kind(*tensors[i : i + size]) for i in range(0, len(tensors), size)]


def spread(given: Sequence[bool], tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The tensors, and ``None`` between them where none is given."""
    rest = iter(tensors)
    return [next(rest) if there else None for there in given]


def present(groups: Sequence[State | PhaseWeights]) -> list[Tensor]:
    """The tensors of weights or states, without those that are missing."""
    return [t for t in flatten(groups) if t is not None]


def _weight_count(call: Call) -> int:
    return len(PhaseWeights._fields) * len(call.block.phases)


def _detached(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if t is None else t.detach() for t in tensors]
