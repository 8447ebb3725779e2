"""Regular connections (Eq. 8): a transfer function and no memory."""

from collections.abc import Callable

import torch
from torch import Tensor

from gridlstm.cells.base import Cell, CellGradients, Vectors
from gridlstm.state import State

__all__ = ["CONNECTIONS", "Connection", "Transfer"]

Transfer = Callable[[Tensor], Tensor]
"""A transfer function, the α of Eq. 8: ``[..., hidden]`` to ``[..., hidden]``."""


class Connection(Cell):
    """``h' = α(V H)`` (Eq. 8).

    Args:
        transfer: the function α.
        name: the name in messages.
        slope: its backward, ``(preactivation, grad of α) -> grad``. Default: autograd.
    """

    def __init__(
        self,
        transfer: Transfer,
        name: str = "function",
        slope: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        self.transfer = transfer
        self.name = name
        self.slope = slope

    def forward(self, preactivation: Tensor, old: State, vectors: Vectors) -> State:
        """Eq. 8."""
        return State(self.transfer(preactivation))

    def backward_(self, gates: Tensor, old: State, grad: State, vectors: Vectors) -> CellGradients:
        """The backward of α, from the preactivations, which :meth:`forward_` does not change."""
        if self.slope is None:
            return super().backward_(gates, old, grad, vectors)
        gates.copy_(self.slope(gates, grad.hidden))
        return CellGradients()

    def __repr__(self) -> str:
        return f"Connection({getattr(self.transfer, '__name__', self.transfer)})"


def _identity(x: Tensor) -> Tensor:
    return x


def _identity_slope(x: Tensor, grad: Tensor) -> Tensor:
    return grad


def _tanh_slope(x: Tensor, grad: Tensor) -> Tensor:
    return grad * (1 - torch.tanh(x).square())


def _relu_slope(x: Tensor, grad: Tensor) -> Tensor:
    return grad * (x > 0)


CONNECTIONS = {
    cell.name: cell
    for cell in (
        Connection(_identity, "identity", _identity_slope),
        Connection(torch.tanh, "tanh", _tanh_slope),
        Connection(torch.relu, "relu", _relu_slope),
    )
}
"""Connections by name."""
