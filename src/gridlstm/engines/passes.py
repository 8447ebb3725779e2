"""The forward and backward pass of the wavefront engine: the loops over the steps of a grid."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from jaxtyping import Bool
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept, PhaseWeights
from gridlstm.engines.backend import Boundary
from gridlstm.engines.buffers import Buffers, Call, make_gradients
from gridlstm.engines.dispatch import choose_backend
from gridlstm.engines.moves import Move, copy, make_order
from gridlstm.engines.operands import pack_kept, pack_once
from gridlstm.engines.products import GradWeights
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
    boundary = _between(call, buffers.boundary, Boundary(incoming, outgoing, blocks))
    backend = choice(call, buffers, None, boundary)
    pack = pack_kept if keep else pack_once
    packed = [pack(choice, w.weight, call, p) for p, w in enumerate(weights)]
    if buffers.boundary is not None:
        copy(Move(slice(None), _first_faces(call)), incoming[_cut(call)], buffers.boundary)
    backend.run(range(len(call.plan.steps)), packed)
    if buffers.boundary is not None:
        last = _last_faces(call)
        copy(Move(last, slice(None)), buffers.boundary, outgoing[_cut(call)])
        # As a result of an operator, it must be the same in every call.
        buffers.boundary.map(lambda t: t[last.stop :].zero_())
    return [*outgoing, *blocks]


def backward_pass(
    call: Call,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    buffers: Buffers,
    grads: Sequence[State],
    *,
    last_kept: bool = False,
) -> list[PhaseWeights | State]:
    """The backward of ``forward_pass``: the gradients of the weights and of the incoming sides.

    If the buffers hold one piece at a time, each is computed again, from the vectors between pieces.

    Args:
        grads: the gradients of what ``forward_pass`` returned.
        last_kept: whether buffers for one piece still hold the last one.
    """
    like, count = buffers.hidden.data, len(call.block.transforms)
    workspace = Workspace()
    gradients = make_gradients(call, like, workspace)
    entering = [
        State(like.new_empty(shape), None if transform.memory is None else like.new_empty(shape))
        for i, transform in enumerate(call.block.transforms)
        for shape in [(call.plan.faces(i), call.batch, call.block.width(i))]
    ]
    choice = choose_backend(call.block, like, call.product)
    sides = _between(call, gradients.boundary, Boundary(entering, grads[:count], grads[count:]))
    backend = choice(call, buffers, gradients, sides)
    again, packed = None, []
    if buffers.gates[0].span == "piece":
        nothing = [State(None, None)] * count  # type: ignore[arg-type]
        again = choice(
            call, buffers, None, _between(call, buffers.boundary, Boundary(incoming, nothing, []))
        )
        packed = [pack_once(choice, w.weight, call, p) for p, w in enumerate(weights)]
    back = [
        choice.pack(w.weight[..., columns], call)
        for w, columns in zip(weights, call.columns, strict=True)
    ]
    parts = call.plan.pieces if again else (range(len(call.plan.steps)),)
    multiply = choice.multiply_transposed
    grad_weights = GradWeights(weights, buffers, call.columns, parts, multiply)
    if gradients.boundary is not None:
        last = _last_faces(call)
        gradients.boundary.map(lambda t: t[last].zero_())
        copy(Move(slice(None), last), grads[_cut(call)], gradients.boundary)
    for part in reversed(parts):
        if again and not (last_kept and part == parts[-1]):
            again.run(part, packed)
        backend.run_back(part, back)
        grad_weights.add(part)
    if gradients.boundary is not None:
        copy(Move(_first_faces(call), slice(None)), gradients.boundary, entering[_cut(call)])
    sums = zip(grad_weights.finish(), gradients.vectors, strict=True)
    return [*(phase._replace(vectors=vectors) for phase, vectors in sums), *entering]


def _cut(call: Call) -> int:
    """The dimension along which the grid is cut."""
    assert call.plan.cut is not None, "only a grid that is cut has vectors between pieces"
    return call.plan.cut.dimension


def _between(call: Call, vectors: State | None, boundary: Boundary) -> Boundary:
    """The boundary of all pieces: along the dimension of a cut, the vectors between them."""
    if vectors is None:
        return boundary
    incoming, outgoing = list(boundary.incoming), list(boundary.outgoing)
    incoming[_cut(call)] = outgoing[_cut(call)] = vectors
    return replace(boundary, incoming=incoming, outgoing=outgoing)


def _first_faces(call: Call) -> slice:
    """The faces before the first piece, in the vectors between pieces."""
    return slice(0, call.plan.faces(_cut(call)))


def _last_faces(call: Call) -> slice:
    """The faces behind the last piece, in the vectors between pieces."""
    faces, pieces = call.plan.faces(_cut(call)), len(call.plan.pieces)
    return slice(pieces * faces, (pieces + 1) * faces)


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
