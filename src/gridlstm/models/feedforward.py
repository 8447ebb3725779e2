"""The fully connected network that the appendix compares with the 1-LSTM."""

import torch
from torch import Tensor

from gridlstm.cells import Transfer
from gridlstm.models.fully_connected import FullyConnected

__all__ = ["FeedForward"]


class FeedForward(FullyConnected):
    r"""Hidden layers with a transfer function, tied or untied (appendix, parity).

    The input is projected to the width of the hidden layers; each of these computes

    .. math:: h' = \alpha(V h + b)

    (Eq. 8 in one dimension, with a bias).

    Args:
        input_size: the length of an input vector.
        hidden_size: the number of units of each layer.
        num_layers: the number of hidden layers, without the projection.
        activation: the transfer function α: ``"tanh"``, ``"relu"`` or a callable that keeps shapes.
        tied: share one V and b among all layers.
        bias: add biases, to the projection too.
        device: the device of the parameters.
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
        ValueError: if a number is not positive, or the activation is unknown.

    Notes:
        Weights are initialised Glorot-uniform, or He-uniform with ``"relu"``, whose larger variance
        compensates for the half of the signal that a ReLU drops. Biases start from 0.

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
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            parts=1,
            activation=activation,
            tied=tied,
            bias=bias,
            device=device,
            dtype=dtype,
        )
        self.reset_parameters()

    def layer(self, alpha: Transfer, preactivation: Tensor, h: Tensor) -> Tensor:
        """``α(V h + b)``."""
        return alpha(preactivation)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{super().extra_repr()}, bias={self.bias is not None}"
