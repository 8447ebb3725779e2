"""The forward and backward pass of the wavefront engine: the loops over the steps of a grid."""

from collections.abc import Sequence
from typing import Any, TypeVar

from jaxtyping import Bool
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept, PhaseWeights
from gridlstm.engines.backend import Backend, Boundary
from gridlstm.engines.buffers import Buffers, Call, make_gradients
from gridlstm.engines.dispatch import choose_backend
from gridlstm.engines.moves import make_order
from gridlstm.engines.operands import pack_kept, pack_once
from gridlstm.engines.products import GradWeights, Matrices
from gridlstm.engines.recording import is_recorded
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import Plan
from gridlstm.state import State

__all__ = [
    "backward_pass",
    "flatten",
    "forward_pass",
    "grouped",
    "make_call",
    "new_state",
    "present",
    "spread",
    "used_columns",
]


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


def used_columns(call: Call, incoming: Sequence[State]) -> tuple[slice, ...]:
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
        _run_step(call, packed, buffers, backend, s)
    return [*outgoing, *blocks]


def _run_step(
    call: Call, packed: Sequence[Matrices], buffers: Buffers, backend: Backend, s: int
) -> None:
    """The forward pass of one step, phase by phase."""
    for p, matrices in enumerate(packed):
        if buffers.inputs[p] is not buffers.hidden:
            backend.read(s, p)
        x = buffers.inputs[p].at(s)[..., call.columns[p]]
        matrices.multiply(x, call.plan.steps[s], buffers.gates[p].at(s))
        backend.forward(s, p)


def _recompute(
    call: Call, packed: Sequence[Matrices], buffers: Buffers, backend: Backend, steps: range
) -> None:
    """The gates of successive steps, from the vectors that were kept: so no step waits for another."""
    for p, matrices in enumerate(packed):
        if buffers.inputs[p] is not buffers.hidden:
            for s in steps:
                backend.read(s, p)
        # The gates must be those of the forward pass, to the last bit.
        apart = [steps] if matrices.rows_are_independent else [range(s, s + 1) for s in steps]
        for part in apart:
            x = buffers.inputs[p].of(part)[..., call.columns[p]]
            matrices.multiply(x, call.plan.merge(part), buffers.gates[p].of(part))
        for s in steps:
            backend.forward(s, p, discard=True)


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
        steps = buffers.gates[0].part(s)
        if recompute and s == steps[-1]:
            _recompute(call, packed, buffers, backend, steps)
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


def _detached(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if t is None else t.detach() for t in tensors]
