"""A deep feed-forward network with LSTM cells along its depth: the 1-LSTM."""

from typing import get_args

from torch import Tensor, nn
from typing_extensions import Unpack

from gridlstm.checks import check_choice, check_options, check_positive, check_tensor
from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.projection import Projection, Readout, read, read_size
from gridlstm.sharing import Shareable

__all__ = ["DeepGridLSTM"]


class DeepGridLSTM(Shareable, nn.Module):
    """One-dimensional Grid LSTM: layers that pass on a memory as well as their activations.

    The input is projected into the hidden and memory vectors that enter the first of ``num_layers``
    blocks (section 1, and the appendix on parity). Apart from its cells it is a feed-forward network.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of blocks.
        tied: share one set of weights among the layers.
        readout: ``"hidden"``, or ``"both"`` for hidden and memory vectors side by side.
        options: any further argument of :class:`GridLSTM`.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a size is not positive or a choice is unknown.

    >>> import torch
    >>> net = DeepGridLSTM(20, 64, num_layers=12)
    >>> net(torch.zeros(7, 20)).shape
    torch.Size([7, 64])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        tied: bool = True,
        readout: Readout = "hidden",
        **options: Unpack[GridOptions],
    ) -> None:
        super().__init__()
        check_options(self, options, GridOptions.__annotations__)
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_choice("readout", readout, get_args(Readout))
        self.input_size = input_size
        self.readout = readout
        self.output_size = read_size(hidden_size, readout, memory=True)
        self.grid = GridLSTM([Dim("depth", size=num_layers, tied=tied)], hidden_size, **options)
        self.projection = Projection(
            input_size,
            hidden_size,
            memory=True,
            bias=options.get("bias", True),
            device=options.get("device"),
            dtype=options.get("dtype"),
        )

    def forward(self, x: Tensor) -> Tensor:
        """``[..., input_size]`` to ``[..., output_size]``.

        Raises:
            TypeError: if ``x`` is not of the parameters' dtype.
            ValueError: if the last axis of ``x`` is not ``input_size`` long.
        """
        check_tensor("x", x, ["...", self.input_size], self.projection.linear.weight)
        out = self.grid({"depth": self.projection(x.reshape(-1, self.input_size))})
        return read(out["depth"], self.readout).view(*x.shape[:-1], self.output_size)
