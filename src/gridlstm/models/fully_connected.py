"""The base class of fully connected networks: a projection of the input, and layers of one width."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.cells import CONNECTIONS, Transfer
from gridlstm.checks import check_positive, check_tensor

__all__ = ["FullyConnected"]


class FullyConnected(nn.Module, ABC):
    """Layers ``h' = f(W h + b, h)`` on top of a projection, tied or untied.

    Args:
        input_size: the length of an input vector.
        hidden_size: the number of units of each layer.
        num_layers: the number of layers, without the projection.
        parts: the number of matrices ``[hidden, hidden]`` per layer, stacked in W.
        activation: the transfer function α: ``"tanh"``, ``"relu"`` or a callable that keeps shapes.
        tied: share one W and b among all layers.
        bias: add biases, to the projection too.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        parts: int,
        activation: str | Transfer,
        tied: bool,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        if isinstance(activation, str):
            if activation not in ("tanh", "relu"):
                raise ValueError(
                    f"activation: expected one of tanh, relu or a callable, got {activation!r}"
                )
        elif not callable(activation) or isinstance(activation, type):
            raise TypeError(f"activation: expected a string or a callable, got {activation!r}")
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.parts = parts
        self.activation = activation
        self.tied = tied
        self.projection = nn.Linear(input_size, hidden_size, bias, device=device, dtype=dtype)
        shape = (1 if tied else num_layers, parts * hidden_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty_like(self.weight[..., 0])) if bias else None

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights and sets the biases to 0.

        He-uniform before a ReLU, whose larger variance compensates for the half of the signal that a
        ReLU drops; Glorot-uniform elsewhere.
        """
        nn.init.xavier_uniform_(self.projection.weight)
        for matrix in self.weight:
            first, *others = matrix.chunk(self.parts)
            if self.activation == "relu":
                nn.init.kaiming_uniform_(first, nonlinearity="relu")
            else:
                nn.init.xavier_uniform_(first)
            for other in others:
                nn.init.xavier_uniform_(other)
        for bias in (self.projection.bias, self.bias):
            if bias is not None:
                bias.zero_()

    @abstractmethod
    def layer(self, alpha: Transfer, preactivation: Tensor, h: Tensor) -> Tensor:
        """The output of a layer, from its preactivation ``W h + b`` and its input."""

    def forward(self, x: Tensor) -> Tensor:
        """``[..., input_size]`` to ``[..., hidden_size]``.

        Raises:
            TypeError: if ``x`` is not a tensor or has another dtype than the parameters.
            ValueError: if its last axis is not ``input_size`` long.
        """
        check_tensor("x", x, ["...", self.input_size], self.projection.weight)
        alpha = self.activation
        if isinstance(alpha, str):
            alpha = CONNECTIONS[alpha].transfer
        # Unbound once: indexing in every layer would cost the backward pass a tensor of zeros as large
        # as all layers.
        weights = self.weight.unbind()
        biases = [None] * len(weights) if self.bias is None else self.bias.unbind()
        h: Tensor = self.projection(x)
        for number in range(self.num_layers):
            k = 0 if self.tied else number
            h = self.layer(alpha, F.linear(h, weights[k], biases[k]), h)
        return h

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"activation={self.activation!r}, tied={self.tied}"
        )
