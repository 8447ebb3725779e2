"""What a backend of the wavefront engine is: the products of a step, and the work between them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from gridlstm.block import Block
from gridlstm.cells import Cell
from gridlstm.engines.buffers import Buffers, Call, Gradients
from gridlstm.engines.products import Matrices, TorchMatrices
from gridlstm.engines.recording import is_recorded
from gridlstm.state import State

__all__ = ["Backend", "Boundary", "kernel_reasons"]


@dataclass(frozen=True)
class Boundary:
    """The vectors that cross the boundary of a grid or, in a backward pass, their gradients.

    Each has one entry per dimension.

    Attributes:
        incoming: the incoming sides, ``[faces, batch, d]``.
        outgoing: the outgoing sides, ``[faces, batch, d]``. Missing vectors are not needed; a missing
            gradient means zero.
        blocks: the outgoing vectors of every block, in the order of the plan, ``[blocks, batch, d]``;
            empty if blocks are not traced.
    """

    incoming: Sequence[State]
    outgoing: Sequence[State]
    blocks: Sequence[State]


class Backend(ABC):
    """Computes the steps of a call, in its buffers.

    :meth:`run` runs a step ``s`` as::

        enter(s)                                copy the incoming sides into the rows of the step
        read(s, p), product, forward(s, p)      for each phase p

    and :meth:`run_back` its backward as::

        backward(s, p), product                 for each phase p, the last one first
        finish(s)                               the gradients of the step's incoming vectors

    Args:
        call: what is computed.
        buffers: the rows of all steps.
        gradients: the rows of the backward pass; ``None`` in a forward pass.
        boundary: where vectors enter and leave.

    Attributes:
        name: the name in messages.
    """

    name: ClassVar[str]

    def __init__(
        self, call: Call, buffers: Buffers, gradients: Gradients | None, boundary: Boundary
    ) -> None:
        self.call = call
        self.buffers = buffers
        self.gradients = gradients
        self.boundary = boundary

    @staticmethod
    @abstractmethod
    def not_supported_reasons(block: Block, like: Tensor, product: torch.dtype) -> list[str]:
        """Why this backend cannot run a call; empty if it can.

        Args:
            block: what each block computes.
            like: a tensor with the dtype and device of the states.
            product: the dtype of matrix products.
        """

    @staticmethod
    def pack(matrices: Tensor, call: Call) -> Matrices:
        """Prepares the right operands of a phase's products.

        Args:
            matrices: one per weight set, ``[sets, K, N]``, in the dtype of products.
            call: the call whose products these are.
        """
        return TorchMatrices(matrices, copy=call.has_many_rows)

    @staticmethod
    def multiply_transposed(left: Tensor, right: Tensor, out: Tensor, *, adds: bool) -> None:
        """``out = left^T right``, or added to ``out``: the gradient of weights.

        Args:
            left: the gradients of preactivations, ``[rows, gates]``.
            right: what was multiplied by the weights, ``[rows, K]``.
            out: ``[gates, K]``.
            adds: whether to add.
        """
        torch.addmm(out, left.mT, right, beta=adds, out=out)

    def run(self, steps: range, products: Sequence[Matrices]) -> None:
        """Runs successive steps.

        Args:
            steps: their numbers.
            products: for each phase, ``W^T``.
        """
        for s in steps:
            self.enter(s)
            for p, matrices in enumerate(products):
                if self.buffers.inputs[p] is not self.buffers.hidden:
                    self.read(s, p)
                x = self.buffers.inputs[p].at(s)[..., self.call.columns[p]]
                matrices.multiply(x, self.call.plan.steps[s], self.buffers.gates[p].at(s))
                self.forward(s, p)

    def run_back(self, steps: range, products: Sequence[Matrices]) -> None:
        """Runs the backward of successive steps, the last one first.

        Args:
            steps: their numbers.
            products: for each phase, ``W``.
        """
        assert self.gradients is not None, "a backward pass has gradients"
        for s in reversed(steps):
            for p in reversed(range(len(products))):
                self.backward(s, p)
                grad = self.gradients.inputs[p].at(s)[..., self.call.columns[p]]
                products[p].multiply(self.buffers.gates[p].at(s), self.call.plan.steps[s], grad)
            self.finish(s)

    @abstractmethod
    def enter(self, s: int) -> None:
        """Copies the incoming sides into the rows of a step."""

    @abstractmethod
    def read(self, s: int, p: int) -> None:
        """Prepares the input of a phase's product. Results of an earlier phase are there (Eq. 7)."""

    @abstractmethod
    def forward(self, s: int, p: int) -> None:
        """Runs a phase after its product. New vectors are written where the next step reads them."""

    @abstractmethod
    def backward(self, s: int, p: int) -> None:
        """Runs the backward of :meth:`forward`: gradients of new vectors to those of preactivations."""

    @abstractmethod
    def finish(self, s: int) -> None:
        """Completes the gradients of the incoming vectors, after the products of all phases."""


def kernel_reasons(
    block: Block,
    like: Tensor,
    product: torch.dtype,
    dtypes: Collection[tuple[torch.dtype, torch.dtype]],
    implements: Callable[[Cell], object],
) -> list[str]:
    """Why kernels outside of PyTorch cannot run a call; see :meth:`Backend.not_supported_reasons`.

    Args:
        dtypes: the pairs of dtypes, of states and products, that the kernels support.
        implements: whether the kernels implement a cell.
    """
    reasons = []
    if type(like) not in (Tensor, nn.Parameter) or is_recorded():
        reasons.append("operations are being recorded, and it is not a PyTorch operation")
    if (like.dtype, product) not in dtypes:
        supported = ", ".join(_describe(*pair) for pair in dtypes)
        reasons.append(f"it supports {supported}, not {_describe(like.dtype, product)}")
    unknown = dict.fromkeys(t.cell.name for t in block.transforms if not implements(t.cell))
    if unknown:
        reasons.append(f"it does not implement these cells: {', '.join(unknown)}")
    if block.has_zoneout:
        reasons.append("it does not implement zoneout")
    return reasons


def _describe(states: torch.dtype, products: torch.dtype) -> str:
    return str(states) if states == products else f"{states} with products in {products}"
