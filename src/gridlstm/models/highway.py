"""The Highway Network, to which the paper relates the 1-LSTM."""

import torch
from torch import Tensor

from gridlstm.cells import Transfer
from gridlstm.models.fully_connected import FullyConnected
from gridlstm.ranges import check_number

__all__ = ["Highway"]


class Highway(FullyConnected):
    r"""Layers that pass on a gated part of their input (Srivastava, Greff and Schmidhuber, 2015).

    The input is projected to the width of the hidden layers; each of these computes

    .. math:: h' = T \odot \alpha(W_H h + b_H) + (1 - T) \odot h
              \qquad  T = \sigma(W_T h + b_T)

    Args:
        input_size: the length of an input vector.
        hidden_size: the number of units of each layer.
        num_layers: the number of layers, without the projection.
        activation: the transfer function α: ``"tanh"``, ``"relu"`` or a callable that keeps shapes.
        tied: share one set of weights among all layers.
        transform_bias: the initial value of b_T. Negative, so that at first layers pass on most of
            their input.
        device: the device of the parameters.
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
        ValueError: if a number is not positive, or the activation is unknown.

    Notes:
        Weights are initialised Glorot-uniform, except for W_H with ``"relu"``, which is He-uniform.
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
        check_number("transform_bias", transform_bias)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            parts=2,
            activation=activation,
            tied=tied,
            bias=True,
            device=device,
            dtype=dtype,
        )
        self.transform_bias = transform_bias
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights and resets the biases."""
        super().reset_parameters()
        if self.bias is not None:
            self.bias[:, self.hidden_size :] = self.transform_bias

    def layer(self, alpha: Transfer, preactivation: Tensor, h: Tensor) -> Tensor:
        """``T ⊙ α(W_H h + b_H) + (1 - T) ⊙ h``."""
        content, gate = preactivation.chunk(2, -1)
        T = gate.sigmoid()
        return T * alpha(content) + (1 - T) * h

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{super().extra_repr()}, transform_bias={self.transform_bias}"
