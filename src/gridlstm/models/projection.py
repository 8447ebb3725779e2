"""How data enters a grid through a side, and how it is read from one."""

from typing import Literal

import torch
from torch import Tensor, nn

from gridlstm.state import State

__all__ = ["Projection", "Readout", "read", "read_size"]

Readout = Literal["hidden", "both"]
"""What is read from an outgoing side: hidden vectors, or hidden and memory vectors side by side."""


class Projection(nn.Module):
    """Projects data into the pair of vectors of an incoming side (section 3.1).

    Args:
        input_size: the length of a data vector.
        hidden_size: the length of the side's vectors.
        memory: whether the side has a memory, which has its own projection.
        bias: add a bias.

    Variables:
        linear.weight: ``[hidden, input]``, or ``[2 · hidden, input]``, hidden vectors first.
        linear.bias: the same without the last axis.

    >>> project = Projection(5, 8, memory=True)
    >>> project(torch.zeros(3, 7, 5)).memory.shape
    torch.Size([3, 7, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory: bool,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.memory = memory
        rows = 2 * hidden_size if memory else hidden_size
        self.linear = nn.Linear(input_size, rows, bias, device=device, dtype=dtype)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises Glorot-uniform weights for each vector, and sets the bias to zero."""
        for matrix in self.linear.weight.chunk(2 if self.memory else 1):
            nn.init.xavier_uniform_(matrix)
        if self.linear.bias is not None:
            self.linear.bias.zero_()

    def forward(self, x: Tensor) -> State:
        """``[..., input]`` to hidden (and memory) vectors ``[..., hidden]``."""
        projected = self.linear(x)
        return State(*projected.chunk(2, -1)) if self.memory else State(projected)


def read(state: State, readout: Readout) -> Tensor:
    """Reads an outgoing side: ``[..., hidden]`` or ``[..., 2 · hidden]``."""
    if readout == "both" and state.memory is not None:
        return torch.cat((state.hidden, state.memory), -1)
    return state.hidden


def read_size(hidden_size: int, readout: Readout, *, memory: bool) -> int:
    """The length of the vectors that :func:`read` returns."""
    return 2 * hidden_size if readout == "both" and memory else hidden_size
