"""The matrix products of a step, and of all steps: what the engine's time should be spent on."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.block import Weights
from gridlstm.engines.buffers import Buffers
from gridlstm.geometry import Step

__all__ = ["GradWeights", "multiply", "pack"]


def pack(weight: Tensor, rows: int) -> Tensor:
    """``W^T`` for each set, ``[sets, H, gates]``, laid out for products with ``rows`` rows in all.

    A product is faster if no operand is transposed. For few rows the copy is not worth it.
    """
    return weight.mT.contiguous() if rows > 512 else weight.mT


def multiply(x: Tensor, matrix: Tensor, step: Step, out: Tensor) -> None:
    """``out = x A`` for ``x`` ``[n, batch, columns]``, each block with its own set's A."""
    groups = step.groups
    first, last = groups[0][0], groups[-1][0]
    if len(groups) == 1:
        torch.mm(x.flatten(0, 1), matrix[first], out=out.flatten(0, 1))
    elif last - first == len(groups) - 1 and len({stop - start for _, start, stop in groups}) == 1:
        rows = (len(groups), -1)
        chosen = matrix[first : last + 1]
        torch.bmm(x.view(*rows, x.shape[-1]), chosen, out=out.view(*rows, out.shape[-1]))
    else:
        for number, start, stop in groups:
            target = out[start:stop].flatten(0, 1)
            torch.mm(x[start:stop].flatten(0, 1), matrix[number], out=target)


class GradWeights:
    """Collects the gradients of the weights from those of the preactivations.

    One product for all steps whose gates the buffers keep at the same time: for the whole grid, or
    for each of its parts.
    """

    def __init__(self, weights: Sequence[Weights], buffers: Buffers) -> None:
        self._weights = weights
        self._buffers = buffers
        self._sums: list[Weights] = []

    def add(self, s: int) -> None:
        """Takes in step ``s``; steps come from the last to the first."""
        steps = self._buffers.gates[0].part(s)
        if s > steps[0]:
            return
        found = [
            _gradients(pair, gates.of(steps), inputs.of(steps), gates.plan.by_set(steps))
            for pair, gates, inputs in zip(
                self._weights, self._buffers.gates, self._buffers.inputs, strict=True
            )
        ]
        self._sums = (
            [_plus(*pair) for pair in zip(self._sums, found, strict=True)] if self._sums else found
        )

    def finish(self) -> list[Weights]:
        """The gradients, one a phase."""
        return self._sums


def _gradients(
    weights: Weights, grad: Tensor, x: Tensor, by_set: Sequence[NDArray[np.int64]]
) -> Weights:
    """From those of preactivations ``[blocks, batch, gates]``, and what these were made of."""
    weight, bias = weights
    grad_weight = torch.empty_like(weight)
    grad_bias = None if bias is None else torch.empty_like(bias)
    for number, numbers in enumerate(by_set):
        rows, columns = grad, x
        if len(by_set) > 1:  # The blocks of a set together.
            blocks = torch.from_numpy(numbers).to(grad.device)
            rows, columns = grad[blocks], x[blocks]
        rows, columns = rows.flatten(0, 1), columns.flatten(0, 1)
        torch.mm(rows.mT, columns, out=grad_weight[number])
        if grad_bias is not None:
            torch.sum(rows, 0, dtype=grad_bias.dtype, out=grad_bias[number])
    return Weights(grad_weight, grad_bias)


def _plus(one: Weights, other: Weights) -> Weights:
    bias = None if one.bias is None or other.bias is None else one.bias + other.bias
    return Weights(one.weight + other.weight, bias)
