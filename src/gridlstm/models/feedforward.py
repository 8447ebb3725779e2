"""The fully connected feed-forward network that the appendix compares with the 1-LSTM."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.cell import make_activation
from gridlstm.checks import check_positive, check_tensor
from gridlstm.dim import Transfer

__all__ = ["FeedForward", "check_activation", "init_weight"]


class FeedForward(nn.Module):
    r"""Hidden layers with a transfer function, tied or untied (appendix, parity).

    The input is projected to the width of the hidden layers; each of these computes

    .. math:: h' = \alpha(V h + b)

    (Eq. 8 in one dimension, with a bias).

    Args:
        input_size: the length of an input vector.
        hidden_size: the number of units of each layer.
        num_layers: the number of hidden layers, the projection not counted.
        activation: the transfer function α, ``"tanh"``, ``"relu"`` or a callable that keeps shapes.
        tied: share one V and b among all layers.
        bias: add biases, to the projection too.
        device: where the parameters live.
        dtype: the dtype of the parameters.

    Variables:
        projection.weight: ``[hidden, input]``.
        projection.bias: ``[hidden]``.
        weight: the V of each layer, ``[layers, hidden, hidden]``, one if tied.
        bias: the b of each layer, ``[layers, hidden]``.

    Attributes:
        output_size: the length of an output vector, ``hidden_size``.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive or the activation unknown.

    Notes:
        Weights start Glorot-uniform, and with ``"relu"`` He-uniform, whose larger variance makes up
        for the half of the signal that a ReLU drops. Biases start from 0.

    >>> net = FeedForward(30, 64, num_layers=5, tied=True)
    >>> net(torch.randn(15, 30)).shape
    torch.Size([15, 64])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        activation: str | Transfer = "tanh",
        tied: bool = False,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_activation(activation)
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.activation = activation
        self.tied = tied
        self.projection = nn.Linear(input_size, hidden_size, bias, device=device, dtype=dtype)
        V = torch.empty(1 if tied else num_layers, hidden_size, hidden_size, device=device, dtype=dtype)
        self.weight = nn.Parameter(V)
        self.bias = nn.Parameter(torch.empty_like(V[..., 0])) if bias else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws the weights anew and sets the biases to 0."""
        for matrix in self.weight:
            init_weight(matrix, self.activation)
        init_weight(self.projection.weight)
        for bias in (self.projection.bias, self.bias):
            if bias is not None:
                bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """``[..., input_size]`` to ``[..., hidden_size]``.

        Raises:
            TypeError: if ``x`` is no tensor or of another dtype than the parameters.
            ValueError: if its last axis is not ``input_size`` long.
        """
        check_tensor("x", x, ["...", self.input_size], self.projection.weight)
        alpha = make_activation(self.activation).forward
        # Taken apart once: an index into them in every layer would cost the backward pass a tensor of
        # zeros as large as all layers.
        weights = self.weight.unbind()
        biases = [None] * len(weights) if self.bias is None else self.bias.unbind()
        h: Tensor = self.projection(x)
        for layer in range(self.num_layers):
            k = 0 if self.tied else layer
            h = alpha(F.linear(h, weights[k], biases[k]))
        return h

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"activation={self.activation!r}, tied={self.tied}, bias={self.bias is not None}"
        )


def check_activation(activation: str | Transfer) -> None:
    """Checks a transfer function.

    Raises:
        TypeError: if it is neither a string nor a callable.
        ValueError: if it is an unknown string.
    """
    if isinstance(activation, str):
        if activation not in ("tanh", "relu"):
            raise ValueError(
                f"activation: expected one of tanh, relu or a callable, got {activation!r}"
            )
    elif not callable(activation):
        raise TypeError(f"activation: expected a string or a callable, got {activation!r}")


def init_weight(weight: Tensor, activation: str | Transfer = "tanh") -> None:
    """Draws He-uniform weights before a ReLU, Glorot-uniform ones elsewhere."""
    if activation == "relu":
        nn.init.kaiming_uniform_(weight, nonlinearity="relu")
    else:
        nn.init.xavier_uniform_(weight)
