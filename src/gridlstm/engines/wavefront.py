"""The fast engine: all blocks of a step at once, with a hand-written backward.

The blocks of a step need only the step before (see :mod:`gridlstm.geometry`), so one matrix product
serves them all. Their incoming vectors lie side by side, and a step's outgoing vectors are written
where the next step reads them. For the backward pass the gates are kept too; there they make room
for the gradients of their preactivations, and one product over all blocks gives the gradient of the
weights.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor

from gridlstm.block import Block, Dropout, Weights
from gridlstm.engines.moves import Move, make_moves, move
from gridlstm.engines.rows import Keep, Rows, make_rows
from gridlstm.engines.step import Call, Tape, backward_step, forward_step
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import Plan
from gridlstm.state import State

__all__ = ["run"]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def run(
    block: Block,
    plan: Plan,
    weights: Sequence[Weights],
    incoming: Sequence[State],
    *,
    mask: Bool[Tensor, "blocks batch"] | None = None,
    dropout: Dropout | None = None,
    trace: bool = False,
    recompute: bool = False,
) -> tuple[list[State], list[State] | None]:
    """Runs a grid; see :func:`gridlstm.engines.reference.run` for the other arguments.

    Args:
        recompute: keep only the vectors between blocks for the backward pass and compute the gates
            anew there: a third of the memory, for more time.
    """
    like = incoming[0].hidden
    order = torch.from_numpy(plan.position).to(like.device)
    call = Call(
        block,
        plan,
        batch=like.shape[1],
        mask=None if mask is None else mask[order].unsqueeze(-1),
        dropout=None if dropout is None else Dropout(dropout.kept[:, order], dropout.scale),
    )
    if torch.is_autocast_enabled(like.device.type):
        # Only the products are in low precision; a bias is added to their results.
        low = torch.get_autocast_dtype(like.device.type)
        weights = [Weights(w.weight.to(low), w.bias) for w in weights]
    tensors = _flatten([*weights, *incoming])
    with torch.autocast(like.device.type, enabled=False):
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
            flat = _Wavefront.apply(call, trace, recompute, *tensors)  # type: ignore[no-untyped-call]
            states = _pairs(State, flat)
        else:
            workspace = Workspace()
            tape = _new_tape(call, weights, like, workspace, "two", "one")
            states = _forward(call, weights, incoming, tape, trace)
    if not trace:
        return states, None
    back = torch.argsort(order)
    blocks = [state.map(lambda t: t[back]) for state in states[len(incoming) :]]
    return states[: len(incoming)], blocks


class _Wavefront(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: Call, trace: bool, recompute: bool, *tensors: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        split = 2 * len(call.block.phases)
        weights, incoming = _pairs(Weights, tensors[:split]), _pairs(State, tensors[split:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors[:split])
        ctx.call, ctx.workspace = call, Workspace()
        kept: Keep = "one" if recompute else "all"
        ctx.tape = _new_tape(call, weights, incoming[0].hidden, ctx.workspace, "all", kept)
        return tuple(_flatten(_forward(call, weights, incoming, ctx.tape, trace)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        weights = _pairs(Weights, ctx.saved_tensors)
        with torch.no_grad():
            flat = _flatten(_backward(ctx.call, weights, ctx.tape, _pairs(State, grads)))
        if torch.is_grad_enabled():  # Asked for with create_graph=True.
            flat = list(_OnlyOnce.apply(len(flat), *flat, *ctx.saved_tensors))  # type: ignore[no-untyped-call]
        return None, None, None, *flat


class _OnlyOnce(torch.autograd.Function):
    """Hands gradients on, and refuses to be differentiated itself."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if t is None else t.view_as(t) for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise RuntimeError(
            'engine="wavefront" has no second derivatives: build the grid with engine="reference"'
        )


def _new_tape(
    call: Call,
    weights: Sequence[Weights],
    like: Tensor,
    workspace: Workspace,
    states: Keep,
    gates: Keep,
) -> Tape:
    def rows(keep: Keep, columns: int, dtype: torch.dtype | None = None) -> Rows:
        return make_rows(workspace, call.plan, keep, call.batch, columns, like, dtype)

    block = call.block
    hidden = rows(states, block.hidden_size)
    inputs = [rows(gates, block.hidden_size, weights[0].weight.dtype) for _ in block.phases]
    if call.dropout is None and like.dtype == weights[0].weight.dtype:
        inputs[0] = hidden  # The first phase reads the vectors as they are.
    return Tape(
        hidden=hidden,
        memory=rows(states, block.memory_size),
        inputs=inputs,
        gates=[rows(gates, size) for size in block.gate_sizes],
        spent=gates != "all",
    )


def _forward(
    call: Call, weights: Sequence[Weights], incoming: Sequence[State], tape: Tape, trace: bool
) -> list[State]:
    """The outgoing sides ``[faces, B, d]``; with ``trace``, then all blocks' ``[blocks, B, d]``."""
    block, plan = call.block, call.plan
    moves = make_moves(plan, incoming[0].hidden.device)
    outgoing = [_new_state(side, side.hidden.shape[0]) for side in incoming]
    blocks = [_new_state(side, plan.blocks) for side in incoming] if trace else []
    for s, step in enumerate(plan.steps):
        move(moves[s].enter, incoming, _split(block, tape.hidden.at(s), tape.memory.at(s)))
        new = _split(block, *forward_step(call, weights, tape, s))
        if s + 1 < len(plan.steps):
            following = _split(block, tape.hidden.at(s + 1), tape.memory.at(s + 1))
            move(moves[s].go, new, following)
        move(moves[s].leave, new, outgoing)
        if trace:
            here = Move(slice(None), slice(step.start, step.stop))
            move([here] * len(new), new, blocks)
    return [*outgoing, *blocks]


def _backward(
    call: Call, weights: Sequence[Weights], tape: Tape, grads: Sequence[State]
) -> list[Weights | State]:
    """The gradients of the weights and of the incoming sides: the way of ``_forward``, back."""
    block, plan, like = call.block, call.plan, tape.hidden.data
    moves = [step.back() for step in make_moves(plan, like.device)]
    workspace = Workspace()
    hidden, memory = (
        make_rows(workspace, plan, "two", call.batch, columns, like)
        for columns in (block.hidden_size, block.memory_size)
    )
    outgoing, blocks = grads[: len(block.transforms)], grads[len(block.transforms) :]
    empty = _split(block, *(like.new_empty(0, call.batch, r.data.shape[-1]) for r in (hidden, memory)))
    incoming = [_new_state(state, plan.faces(i)) for i, state in enumerate(empty)]
    grad_weights = GradWeights(weights, tape)
    for s, step in reversed(list(enumerate(plan.steps))):
        # Zero where no gradient comes back, because a side is not used.
        new_h, new_m = (torch.zeros_like(rows.at(s)) for rows in (hidden, memory))
        new = _split(block, new_h, new_m)
        if s + 1 < len(plan.steps):
            following = _split(block, hidden.at(s + 1), memory.at(s + 1))
            move(moves[s].go, following, new)
        move(moves[s].leave, outgoing, new)
        for state, traced in zip(new, blocks, strict=False):
            for vector, grad in zip(state, traced, strict=True):
                if vector is not None and grad is not None:
                    vector += grad[step.start : step.stop]
        if tape.spent:
            forward_step(call, weights, tape, s)
        h, m = backward_step(call, weights, tape, s, new_h, new_m)
        hidden.at(s).copy_(h)
        memory.at(s).copy_(m)
        move(moves[s].enter, _split(block, h, m), incoming)
        grad_weights.add(s)
    tape.spent = True
    return [*grad_weights.finish(), *incoming]


class GradWeights:
    """Collects the gradients of the weights from the gradients of the preactivations.

    Where those of all steps are kept there is one product at the end, else one a step.
    """

    def __init__(self, weights: Sequence[Weights], tape: Tape) -> None:
        self._weights = weights
        self._tape = tape
        self._all = tape.gates[0].keep == "all"
        self._sums = (
            []
            if self._all
            else [
                Weights(torch.zeros_like(w), None if b is None else torch.zeros_like(b))
                for w, b in weights
            ]
        )

    def add(self, s: int) -> None:
        """Takes in step ``s``."""
        for (weight, bias), gates, inputs in zip(
            self._sums, self._tape.gates, self._tape.inputs, strict=False
        ):
            grad, x = gates.at(s), inputs.at(s)
            for chosen, first, last in gates.plan.steps[s].groups:
                rows = grad[first:last].flatten(0, 1)
                weight[chosen].addmm_(rows.mT.to(x.dtype), x[first:last].flatten(0, 1))
                if bias is not None:
                    bias[chosen] += rows.sum(0)

    def finish(self) -> list[Weights]:
        """The gradients, one a phase."""
        if not self._all:
            return self._sums
        done = []
        for (weight, bias), gates, inputs in zip(
            self._weights, self._tape.gates, self._tape.inputs, strict=True
        ):
            grad, x = gates.data, inputs.data
            if len(weight) > 1:  # One set of weights after the other, blocks of a set together.
                by_set = torch.from_numpy(gates.plan.by_set()).to(grad.device)
                grad, x = grad[by_set].flatten(1, 2), x[by_set].flatten(1, 2)
            grad, x = (
                grad.reshape(len(weight), -1, grad.shape[-1]),
                x.reshape(len(weight), -1, x.shape[-1]),
            )
            done.append(Weights(grad.mT.to(x.dtype) @ x, None if bias is None else grad.sum(1)))
        return done


def _split(block: Block, hidden: Tensor, memory: Tensor) -> list[State]:
    """The columns of each dimension."""
    return [
        State(hidden[..., t.hidden], None if t.memory is None else memory[..., t.memory])
        for t in block.transforms
    ]


def _new_state(like: State, rows: int) -> State:
    hidden = like.hidden.new_empty(rows, *like.hidden.shape[1:])
    return State(hidden, None if like.memory is None else torch.empty_like(hidden))


Pair = TypeVar("Pair", State, Weights)


def _flatten(pairs: Sequence[State | Weights]) -> list[Tensor | None]:
    return [tensor for pair in pairs for tensor in pair]


def _pairs(kind: type[Pair], tensors: Sequence[Any]) -> list[Pair]:
    return [kind(*tensors[i : i + 2]) for i in range(0, len(tensors), 2)]
