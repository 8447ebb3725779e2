"""The Highway Network, to which the paper relates the 1-LSTM."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.cell import make_activation
from gridlstm.checks import check_number, check_positive, check_tensor
from gridlstm.dim import Transfer
from gridlstm.models.feedforward import check_activation, init_weight

__all__ = ["Highway"]


class Highway(nn.Module):
    r"""Layers that pass on a gated part of what they read (Srivastava, Greff and Schmidhuber, 2015).

    The input is projected to the width of the hidden layers; each of these computes

    .. math:: h' = T \odot \alpha(W_H h + b_H) + (1 - T) \odot h
              \qquad  T = \sigma(W_T h + b_T)

    Args:
        input_size: the length of an input vector.
        hidden_size: the number of units of each layer.
        num_layers: the number of layers, the projection not counted.
        activation: the transfer function α, ``"tanh"``, ``"relu"`` or a callable that keeps shapes.
        tied: share one set of weights among all layers.
        transform_bias: what b_T starts from. Negative, so that layers pass on most of what they read
            until they have learnt to do better.
        device: where the parameters live.
        dtype: the dtype of the parameters.

    Variables:
        projection.weight: ``[hidden, input]``.
        projection.bias: ``[hidden]``.
        weight: W_H above W_T for each layer, ``[layers, 2 · hidden, hidden]``, one if tied.
        bias: b_H and b_T for each layer, ``[layers, 2 · hidden]``.

    Attributes:
        output_size: the length of an output vector, ``hidden_size``.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive or the activation unknown.

    Notes:
        W_T and the projection start Glorot-uniform. W_H does too, but He-uniform with ``"relu"``.
        Biases other than b_T start from 0.

    >>> net = Highway(30, 64, num_layers=50)
    >>> net(torch.randn(15, 30)).shape
    torch.Size([15, 64])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        activation: str | Transfer = "relu",
        tied: bool = False,
        transform_bias: float = -1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_activation(activation)
        check_number("transform_bias", transform_bias)
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.activation = activation
        self.tied = tied
        self.transform_bias = transform_bias
        self.projection = nn.Linear(input_size, hidden_size, device=device, dtype=dtype)
        W = torch.empty(
            1 if tied else num_layers, 2 * hidden_size, hidden_size, device=device, dtype=dtype
        )
        self.weight = nn.Parameter(W)
        self.bias = nn.Parameter(torch.empty_like(W[..., 0]))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws the weights anew and sets the biases back."""
        for matrix in self.weight:
            W_H, W_T = matrix.chunk(2)
            init_weight(W_H, self.activation)
            init_weight(W_T)
        self.bias.zero_()
        self.bias[:, self.hidden_size :] = self.transform_bias
        init_weight(self.projection.weight)
        self.projection.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """``[..., input_size]`` to ``[..., hidden_size]``.

        Raises:
            TypeError: if ``x`` is no tensor or of another dtype than the parameters.
            ValueError: if its last axis is not ``input_size`` long.
        """
        check_tensor("x", x, ["...", self.input_size], self.projection.weight)
        alpha = make_activation(self.activation).forward
        # Taken apart once, as in the feed-forward network.
        weights, biases = self.weight.unbind(), self.bias.unbind()
        h: Tensor = self.projection(x)
        for layer in range(self.num_layers):
            k = 0 if self.tied else layer
            content, gate = F.linear(h, weights[k], biases[k]).chunk(2, -1)
            T = gate.sigmoid()
            h = T * alpha(content) + (1 - T) * h
        return h

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"activation={self.activation!r}, tied={self.tied}, transform_bias={self.transform_bias}"
        )
