"""The matrix products of a step, and of all steps: where the engine should spend its time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gridlstm.block import PhaseWeights
from gridlstm.engines.buffers import Buffers
from gridlstm.engines.moves import make_by_set
from gridlstm.engines.recording import is_recorded
from gridlstm.engines.workspace import pitch
from gridlstm.geometry import Step

__all__ = ["GradWeights", "Matrices", "TorchMatrices"]

_STRIP = 256
"""Rows that are converted to another dtype at a time."""


class Matrices(ABC):
    """The right operands of the products of a phase: a matrix A for each weight set."""

    @abstractmethod
    def multiply(self, x: Tensor, step: Step, out: Tensor) -> None:
        """``out = x A`` for ``x`` ``[n, batch, K]``, with the matrix of each block's weight set."""


class TorchMatrices(Matrices):
    """Matrices for the products of PyTorch.

    Args:
        matrices: one per weight set, ``[sets, K, N]``.
        copy: whether to copy them if they are transposed. A product is a few percent faster without,
            and the copy takes as long as the product of about 300 rows.
    """

    def __init__(self, matrices: Tensor, *, copy: bool) -> None:
        # A recorded graph must work for any number of rows.
        copied = copy and not is_recorded() and not matrices.is_contiguous()
        self._matrices = _new(matrices).copy_(matrices) if copied else matrices

    def multiply(self, x: Tensor, step: Step, out: Tensor) -> None:
        """See :meth:`Matrices.multiply`."""
        groups, matrices = step.groups, self._matrices
        first, last = groups[0][0], groups[-1][0]
        if len(groups) == 1:
            torch.mm(x.flatten(0, 1), matrices[first], out=out.flatten(0, 1))
        elif last - first == len(groups) - 1 and _are_even(groups):
            rows = (len(groups), -1)
            chosen = matrices[first : last + 1]
            torch.bmm(x.view(*rows, x.shape[-1]), chosen, out=out.view(*rows, out.shape[-1]))
        else:
            for number, start, stop in groups:
                target = out[start:stop].flatten(0, 1)
                torch.mm(x[start:stop].flatten(0, 1), matrices[number], out=target)


def _are_even(groups: Sequence[tuple[int, int, int]]) -> bool:
    """Whether all groups have as many blocks, one behind the other."""
    size = groups[0][2] - groups[0][1]
    return all((start, stop) == (i * size, (i + 1) * size) for i, (_, start, stop) in enumerate(groups))


def _sum_rows(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """The sum of all rows in this dtype.

    PyTorch converts all rows first if they have another one. On a CPU, a strip of them at a time, which
    stays in its cache, takes an eighth of the time.
    """
    if rows.dtype == dtype or rows.device.type != "cpu" or is_recorded():
        return rows.sum(0, dtype=dtype)
    strips = [strip.sum(0, dtype=dtype) for strip in rows.split(_STRIP)]
    return torch.stack(strips).sum(0)


def _new(matrices: Tensor) -> Tensor:
    """Uninitialised matrices of the same shape, with rows a :func:`pitch` apart."""
    *shape, columns = matrices.shape
    return matrices.new_empty(*shape, pitch(columns))[..., :columns]


class GradWeights:
    """Collects the gradients of the weights from those of the preactivations.

    One product covers all steps whose gates the buffers hold at the same time.

    Args:
        weights: one per phase.
        buffers: the rows of all steps.
        columns: see :class:`Call`.
        parts: these steps: all of them, or those of each piece.
        multiply: computes the products, see :meth:`Backend.multiply_transposed`.
    """

    def __init__(
        self,
        weights: Sequence[PhaseWeights],
        buffers: Buffers,
        columns: Sequence[slice],
        parts: Sequence[range],
        multiply: Callable[..., None],
    ) -> None:
        self._buffers, self._columns, self._multiply = buffers, columns, multiply
        plan, device = buffers.gates[0].plan, buffers.gates[0].data.device
        # Before the loop over the steps, which must not wait for copies to a device.
        self._by_set = {part: make_by_set(plan, device, part) for part in parts}
        self._sums = [
            PhaseWeights(_new(w.weight), None if w.bias is None else torch.zeros_like(w.bias))
            for w in weights
        ]
        for sums, used in zip(self._sums, columns, strict=True):
            if used != slice(0, sums.weight.shape[-1]):
                sums.weight.zero_()
        self._begun: set[int] = set()  # The weight sets whose sums are not just memory any more.

    def add(self, part: range) -> None:
        """Adds one of the parts."""
        for sums, gates, inputs, columns in zip(
            self._sums, self._buffers.gates, self._buffers.inputs, self._columns, strict=True
        ):
            read = sums._replace(weight=sums.weight[..., columns])
            grad, x = gates.of(part), inputs.of(part)[..., columns]
            self._add(read, grad, x, self._by_set[part])
        self._begun.update(number for number, _ in self._by_set[part])

    def finish(self) -> list[PhaseWeights]:
        """The gradients, one per phase."""
        return self._sums

    def _add(
        self, sums: PhaseWeights, grad: Tensor, x: Tensor, by_set: Sequence[tuple[int, Tensor | slice]]
    ) -> None:
        """Adds the contribution of some blocks.

        ``grad`` holds the gradients of their preactivations, ``[blocks, batch, gates]``, and ``x`` the
        inputs of the product, ``[blocks, batch, K]``. ``by_set`` has the blocks of each weight set.
        """
        for number, blocks in by_set:
            rows, columns = grad[blocks].flatten(0, 1), x[blocks].flatten(0, 1)
            self._multiply(rows, columns, sums.weight[number], adds=number in self._begun)
            if sums.bias is not None:
                sums.bias[number] += _sum_rows(rows, sums.bias.dtype)
