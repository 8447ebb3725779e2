"""The blocks of one step, all at once: forward, and backward under it.

``H`` and ``M`` are the columns of all hidden and of all memory vectors of a block, ``G`` those of the
preactivations of a phase, ``n`` the blocks of the step, ``B`` the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gridlstm.block import Block, Dropout, Weights
from gridlstm.cell import lstm_, lstm_backward_
from gridlstm.engines.rows import Rows
from gridlstm.geometry import Plan, Step

__all__ = ["Call", "Tape", "backward_step", "forward_step", "multiply"]


@dataclass(frozen=True)
class Call:
    """What does not change during a call; mask and dropout in the order of the plan."""

    block: Block
    plan: Plan
    batch: int
    mask: Tensor | None
    dropout: Dropout | None


@dataclass
class Tape:
    """What a step works on, and what the forward pass leaves for the backward pass.

    Attributes:
        hidden: the incoming hidden vectors, ``H`` columns.
        memory: the incoming memory vectors, ``M`` columns.
        inputs: for each phase, what it multiplies by its weights: the hidden vectors after dropout,
            in the type of the products, ``H`` columns.
        gates: for each phase, the activated gates, ``G`` columns.
        spent: whether the gates are no longer there, because a backward pass has overwritten them or
            because only one step's worth is kept.
    """

    hidden: Rows
    memory: Rows
    inputs: list[Rows]
    gates: list[Rows]
    spent: bool


def forward_step(call: Call, weights: Sequence[Weights], tape: Tape, s: int) -> tuple[Tensor, Tensor]:
    """The new hidden ``[n, B, H]`` and memory vectors ``[n, B, M]`` of step ``s`` (Eq. 5 to 8)."""
    block, step = call.block, call.plan.steps[s]
    h, m = tape.hidden.at(s), tape.memory.at(s)
    new_h, new_m = h.clone(), torch.empty_like(m)
    for p, (phase, (weight, bias)) in enumerate(zip(block.phases, weights, strict=True)):
        x, gates = tape.inputs[p].at(s), tape.gates[p].at(s)
        if tape.inputs[p] is not tape.hidden:
            # In a second phase new_h is H' of Eq. 7: new vectors for the dimensions computed so far.
            x.copy_(_drop(call.dropout, p, step, new_h))
        multiply(x, weight, step, gates)
        if bias is not None:
            _add_bias(gates, bias, step)
        for i in phase:
            transform = block.transforms[i]
            rows = gates[..., transform.gates]
            if transform.activation is not None:
                new_h[..., transform.hidden] = transform.activation.forward(rows)
            else:
                new_h[..., transform.hidden], new_m[..., transform.memory] = lstm_(
                    rows, m[..., transform.memory], block.output
                )
    if call.mask is not None:
        real = call.mask[step.start : step.stop]
        return torch.where(real, new_h, h), torch.where(real, new_m, m)
    return new_h, new_m


def backward_step(
    call: Call,
    weights: Sequence[Weights],
    tape: Tape,
    s: int,
    grad_h: Tensor,
    grad_m: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients of the incoming vectors, given those of the new ones.

    Leaves the gradients of the preactivations in the place of the gates.
    """
    block, step = call.block, call.plan.steps[s]
    passed_h = passed_m = None
    if call.mask is not None:
        real = call.mask[step.start : step.stop]
        passed_h, passed_m = grad_h * ~real, grad_m * ~real
        grad_h, grad_m = grad_h * real, grad_m * real
    m = tape.memory.at(s)
    grad_old_m = torch.empty_like(m)
    for p in reversed(range(len(block.phases))):
        gates = tape.gates[p].at(s)
        for i in block.phases[p]:
            transform = block.transforms[i]
            rows, grad = gates[..., transform.gates], grad_h[..., transform.hidden]
            if transform.activation is not None:
                rows.copy_(transform.activation.backward(rows, grad))
            else:
                memory = transform.memory
                grad_old_m[..., memory] = lstm_backward_(
                    rows, m[..., memory], grad, grad_m[..., memory], block.output
                )
        grad_read = gates.new_empty(grad_h.shape)
        multiply(gates.to(weights[p].weight.dtype), weights[p].weight.mT, step, grad_read)
        grad_read = _drop(call.dropout, p, step, grad_read)
        # The phase replaced its own dimensions' vectors; the others it only read.
        for i, transform in enumerate(block.transforms):
            if i not in block.phases[p]:
                grad_read[..., transform.hidden] += grad_h[..., transform.hidden]
        grad_h = grad_read
    if passed_h is not None and passed_m is not None:
        return grad_h + passed_h, grad_old_m + passed_m
    return grad_h, grad_old_m


def multiply(x: Tensor, weight: Tensor, step: Step, out: Tensor) -> None:
    """``out = x W^T`` for ``x`` ``[n, B, columns]``, each block with its own set of weights.

    The product is computed in the type of ``x`` and ``weight``, and converted to that of ``out``.
    """
    product = out if out.dtype == x.dtype else torch.empty_like(out, dtype=x.dtype)
    sets, sizes = len(step.groups), {last - first for _, first, last in step.groups}
    if sets == 1:
        torch.mm(x.flatten(0, 1), weight[step.groups[0][0]].mT, out=product.flatten(0, 1))
    elif len(sizes) == 1 and step.groups[-1][0] - step.groups[0][0] == sets - 1:
        chosen = weight[step.groups[0][0] : step.groups[-1][0] + 1]
        rows = (sets, -1)
        torch.bmm(x.view(*rows, x.shape[-1]), chosen.mT, out=product.view(*rows, product.shape[-1]))
    else:
        for number, first, last in step.groups:
            torch.mm(
                x[first:last].flatten(0, 1),
                weight[number].mT,
                out=product[first:last].flatten(0, 1),
            )
    if product is not out:
        out.copy_(product)


def _add_bias(gates: Tensor, bias: Tensor, step: Step) -> None:
    for chosen, first, last in step.groups:
        gates[first:last] += bias[chosen]


def _drop(dropout: Dropout | None, phase: int, step: Step, vectors: Tensor) -> Tensor:
    if dropout is None:
        return vectors
    return vectors * dropout.kept[phase, step.start : step.stop] * dropout.scale
