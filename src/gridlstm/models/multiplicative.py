"""The multiplicative recurrent network, whose transition matrix depends on the input."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Never

from gridlstm.checks import check_options, check_positive
from gridlstm.models.sequence_network import SequenceNetwork
from gridlstm.state import State

__all__ = ["MultiplicativeRNN"]


class MultiplicativeRNN(SequenceNetwork):
    r"""The multiplicative RNN, or MRNN, for text (Sutskever, Martens and Hinton, 2011).

    .. math::
        f_t = (W_{fx} x_t) \odot (W_{fh} h_{t-1})  \qquad
        h_t = \tanh(W_{hf} f_t + W_{hx} x_t + b)

    so that each input has a transition matrix :math:`W_{hf} \mathrm{diag}(W_{fx} x_t) W_{fh}`.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden vector.
        factor_size: the number of factors, the length of f. Default: ``hidden_size``.
        bias: add a bias.
        batch_first: inputs and outputs are ``[batch, time, ...]``; states stay as they are.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Variables:
        weight_input: W_fx and W_hx, stacked, ``[factors + hidden, input]``.
        weight_factor: W_fh, ``[factors, hidden]``.
        weight_hidden: W_hf, ``[hidden, factors]``.
        bias: ``[hidden]``.

    Attributes:
        output_size: the length of an output vector, ``hidden_size``.
        num_layers: 1. A state is ``[1, batch, hidden]`` without a memory.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a size is not positive.

    Notes:
        W_fx is initialised uniformly with variance 1, and the other weights Glorot-uniform. For the
        one-hot inputs of the paper, transition matrices are then as large as those of an ordinary
        network; a Glorot-uniform W_fx would make them tiny.

    >>> letters = torch.eye(5)[torch.randint(5, (7, 3))]
    >>> output, carried = MultiplicativeRNN(5, 8, factor_size=6)(letters)
    >>> carried.hidden.shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        factor_size: int | None = None,
        bias: bool = True,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **unknown: Never,
    ) -> None:
        check_options(self, unknown)
        super().__init__(input_size, hidden_size, 1, batch_first=batch_first)
        self.factor_size = hidden_size if factor_size is None else factor_size
        check_positive("factor_size", self.factor_size)
        empty = partial(torch.empty, device=device, dtype=dtype)
        self.weight_input = nn.Parameter(empty(self.factor_size + hidden_size, input_size))
        self.weight_factor = nn.Parameter(empty(self.factor_size, hidden_size))
        self.weight_hidden = nn.Parameter(empty(hidden_size, self.factor_size))
        self.bias = nn.Parameter(empty(hidden_size)) if bias else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights and sets the bias to 0."""
        to_factors, to_hidden = self.weight_input.split([self.factor_size, self.hidden_size])
        to_factors.uniform_(-sqrt(3), sqrt(3))
        for weight in (to_hidden, self.weight_factor, self.weight_hidden):
            nn.init.xavier_uniform_(weight)
        if self.bias is not None:
            self.bias.zero_()

    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Runs step by step; only products with the hidden vector and the factors are in the loop."""
        if state.memory is not None:
            raise ValueError(
                "state memory: expected None because the network has no memory, got a tensor"
            )
        bias = None if self.bias is None else F.pad(self.bias, (self.factor_size, 0))
        projected = F.linear(x, self.weight_input, bias).split([self.factor_size, self.hidden_size], -1)
        (h,) = state.hidden.unbind()
        hidden = []
        for scale, from_x in zip(*(part.unbind() for part in projected), strict=True):
            f = scale * F.linear(h, self.weight_factor)
            h = torch.addmm(from_x, f, self.weight_hidden.t()).tanh()
            hidden.append(h)
        return torch.stack(hidden), State(h.unsqueeze(0))

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        factors = [] if self.factor_size == self.hidden_size else [f"factor_size={self.factor_size}"]
        return self.describe(*factors)
