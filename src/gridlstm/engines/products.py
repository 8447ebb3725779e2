"""The matrix products of a step, and of all steps: what the engine's time should be spent on."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.block import Weights
from gridlstm.engines.buffers import Buffers
from gridlstm.engines.tracing import is_recorded
from gridlstm.engines.workspace import pitch
from gridlstm.geometry import Step

__all__ = ["GradWeights", "multiply", "pack"]


def pack(weight: Tensor, rows: int) -> Tensor:
    """``W^T`` for each set, ``[sets, H, gates]``, laid out for products with ``rows`` rows in all.

    A product is a few percent faster if no operand is transposed. The copy takes as long as the
    product of some 300 rows, so it has to serve many. A recorded graph is to serve any number.
    """
    return weight.mT.contiguous() if not is_recorded() and rows > 8192 else weight.mT


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
        self._buffers = buffers
        self._sums = [
            Weights(_zeros(own.weight), None if own.bias is None else torch.zeros_like(own.bias))
            for own in weights
        ]

    def add(self, s: int) -> None:
        """Takes in step ``s``; steps come from the last to the first."""
        steps = self._buffers.gates[0].part(s)
        if s == steps[0]:
            for sums, gates, inputs in zip(
                self._sums, self._buffers.gates, self._buffers.inputs, strict=True
            ):
                _add(sums, gates.of(steps), inputs.of(steps), gates.plan.by_set(steps))

    def finish(self) -> list[Weights]:
        """The gradients, one a phase."""
        return self._sums


def _zeros(weight: Tensor) -> Tensor:
    *shape, columns = weight.shape
    return weight.new_zeros(*shape, pitch(columns))[..., :columns]


def _add(sums: Weights, grad: Tensor, x: Tensor, by_set: Sequence[NDArray[np.int64]]) -> None:
    """Adds what some blocks give, from their preactivations' gradients ``[blocks, batch, gates]``.

    ``x`` is what these were made of, ``[blocks, batch, H]``.
    """
    for number, numbers in enumerate(by_set):
        rows, columns = grad, x
        if len(by_set) > 1:  # The blocks of a set together.
            blocks = torch.from_numpy(numbers).to(grad.device)
            rows, columns = grad[blocks], x[blocks]
        rows, columns = rows.flatten(0, 1), columns.flatten(0, 1)
        target = sums.weight[number]
        torch.addmm(target, rows.mT, columns, out=target)
        if sums.bias is not None:
            sums.bias[number] += rows.sum(0, dtype=sums.bias.dtype)
