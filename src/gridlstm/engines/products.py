"""The matrix products of a step, and of all steps: what the engine's time should be spent on."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.block import Weights
from gridlstm.engines.buffers import Buffers
from gridlstm.geometry import Step

__all__ = ["GradWeights", "multiply"]


def multiply(x: Tensor, weight: Tensor, step: Step, out: Tensor) -> None:
    """``out = x W^T`` for ``x`` ``[n, batch, columns]``, each block with its own set of weights."""
    groups = step.groups
    first, last = groups[0][0], groups[-1][0]
    if len(groups) == 1:
        torch.mm(x.flatten(0, 1), weight[first].mT, out=out.flatten(0, 1))
    elif last - first == len(groups) - 1 and len({stop - start for _, start, stop in groups}) == 1:
        rows = (len(groups), -1)
        chosen = weight[first : last + 1].mT
        torch.bmm(x.view(*rows, x.shape[-1]), chosen, out=out.view(*rows, out.shape[-1]))
    else:
        for number, start, stop in groups:
            target = out[start:stop].flatten(0, 1)
            torch.mm(x[start:stop].flatten(0, 1), weight[number].mT, out=target)


class GradWeights:
    """Collects the gradients of the weights from those of the preactivations.

    Where the buffers keep all steps there is one product at the end, else one a step.
    """

    def __init__(self, weights: Sequence[Weights], buffers: Buffers) -> None:
        self._weights = weights
        self._buffers = buffers
        self._at_end = buffers.gates[0].keep == "all"
        self._sums = [] if self._at_end else [_zeros(pair) for pair in weights]

    def add(self, s: int) -> None:
        """Takes in step ``s``."""
        for (weight, bias), gates, inputs in zip(
            self._sums, self._buffers.gates, self._buffers.inputs, strict=False
        ):
            grad, x = gates.at(s), inputs.at(s)
            for number, first, last in gates.plan.steps[s].groups:
                rows = grad[first:last].flatten(0, 1)
                weight[number] += rows.mT @ x[first:last].flatten(0, 1)
                if bias is not None:
                    bias[number] += rows.sum(0, dtype=bias.dtype)

    def finish(self) -> list[Weights]:
        """The gradients, one a phase."""
        if not self._at_end:
            return self._sums
        return [
            _grad_of_all(*pair, gates.data, inputs.data, gates.plan.by_set())
            for pair, gates, inputs in zip(
                self._weights, self._buffers.gates, self._buffers.inputs, strict=True
            )
        ]


def _grad_of_all(
    weight: Tensor, bias: Tensor | None, grad: Tensor, x: Tensor, by_set: NDArray[np.int64]
) -> Weights:
    if len(weight) > 1:  # The blocks of a set together.
        blocks = torch.from_numpy(by_set).to(grad.device)
        grad, x = grad[blocks], x[blocks]
    grad, x = (t.reshape(len(weight), -1, t.shape[-1]) for t in (grad, x))
    return Weights(grad.mT @ x, None if bias is None else grad.sum(1, dtype=bias.dtype))


def _zeros(like: Weights) -> Weights:
    weight, bias = like
    return Weights(torch.zeros_like(weight), None if bias is None else torch.zeros_like(bias))
