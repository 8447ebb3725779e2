"""The Multidimensional LSTM, which sums the memories of all dimensions.

Letters: ``N`` dimensions, ``d`` the length of a vector, ``g_u g_f g_o g_c`` the update, forget, output
and content gates; there are N forget gates.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.cells.lstm import Output, read_memory
from gridlstm.checks import check_choice, check_forget_bias, check_positive, check_tensor
from gridlstm.fixed import FixedArguments
from gridlstm.geometry import Plan, make_plan
from gridlstm.state import State

__all__ = ["MultidimensionalLSTM"]


class MultidimensionalLSTM(FixedArguments):
    r"""Multidimensional LSTM over an N-dimensional array, one or more layers of it (section 2.3).

    The block at each position reads the input there and the vectors of its N predecessors, one along
    each dimension, and passes the same pair of vectors on along all dimensions:

    .. math::
        H = [I x; h_1; \dots; h_N]  \qquad  m = \sum_i^N g_i^f \odot m_i + g^u \odot g^c

    (Eq. 4), with the gates of Eq. 1. Outside the array all vectors are zero.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden and memory vectors.
        num_dims: the number N of dimensions of the array.
        num_layers: the number of layers; each reads the hidden vectors of the one below.
        directions: for each layer, N booleans: whether it travels from the last position to the first
            along each dimension. Default: all forwards.
        bias: add a bias to every preactivation.
        forget_bias: the initial bias of the forget gates. Default: 1. Requires ``bias``. The other
            biases start from 0, and the weights are Glorot-uniform.
        output: ``"paper"`` for ``h = tanh(g_o ⊙ m)`` (Eq. 1), ``"standard"`` for
            ``h = g_o ⊙ tanh(m)``, as in ``torch.nn.LSTM``.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Variables:
        layers.K.weight_input: the weights of layer K for its input, ``[(N + 3) · d, input]``, with the
            gates in the order ``u, f_1, ..., f_N, o, c``.
        layers.K.weight_hidden: the weights for ``h_1, ..., h_N``, ``[(N + 3) · d, N · d]``.
        layers.K.bias: ``[(N + 3) · d]``.

    Attributes:
        output_size: the length of an output vector, ``hidden_size``.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive, the directions do not match the layers, or a choice is
            unknown.

    Notes:
        - The matrix I of the input is multiplied into the weights that read it, as in
          ``torch.nn.LSTM``. With one dimension and ``output="standard"`` it is exactly that network.
        - The sum in Eq. 4 is not bounded: if the forget gates add up to more than 1, memories grow with
          the number of paths to a block. The paper gives this as the reason for the Grid LSTM. A lower
          ``forget_bias`` delays it.
        - All blocks at the same distance from the starting corner are computed at once.

    >>> corners = [(False, False), (True, True)]
    >>> net = MultidimensionalLSTM(3, 8, num_dims=2, num_layers=2, directions=corners)
    >>> net(torch.randn(5, 14, 14, 3)).hidden.shape
    torch.Size([5, 14, 14, 8])
    """

    fixed = frozenset(("num_dims", "num_layers", "directions", "bias", "forget_bias", "output"))

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_dims: int,
        *,
        num_layers: int = 1,
        directions: Sequence[Sequence[bool]] | None = None,
        bias: bool = True,
        forget_bias: float | None = None,
        output: Output = "paper",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_dims", num_dims)
        check_positive("num_layers", num_layers)
        check_choice("output", output, get_args(Output))
        check_forget_bias(forget_bias, bias)
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.num_dims = num_dims
        self.num_layers = num_layers
        self.directions = _check_directions(directions, num_layers, num_dims)
        self.bias = bias
        self.forget_bias = 1.0 if forget_bias is None and bias else forget_bias
        self.output = output
        self.layers = nn.ModuleList(
            _MultidimensionalLayer(
                hidden_size if layer else input_size,
                hidden_size,
                reverse,
                bias=bias,
                forget_bias=self.forget_bias,
                output=output,
                device=device,
                dtype=dtype,
            )
            for layer, reverse in enumerate(self.directions)
        )

    def reset_parameters(self) -> None:
        """Initialises the weights and resets the biases."""
        for module in self.modules():
            if isinstance(module, _MultidimensionalLayer):
                module.reset_parameters()

    def forward(self, x: Tensor) -> State:
        """Runs the layers over an array of any size.

        Args:
            x: the inputs, ``[batch, *sizes, input]``, with one size per dimension, each at least 1.

        Returns:
            The hidden and memory vectors of the last layer at all positions, each ``[batch, *sizes,
            hidden]``.

        Raises:
            TypeError: if ``x`` is not a tensor or has another dtype than the parameters.
            ValueError: if its shape is wrong or a size is zero.
        """
        axes = [f"size_{i + 1}" for i in range(self.num_dims)]
        check_tensor("x", x, ["batch", *axes, self.input_size], next(self.parameters()))
        sizes = x.shape[1:-1]
        if 0 in sizes:
            raise ValueError(f"x: expected sizes of at least 1, got {list(sizes)}")
        hidden = memory = x.flatten(1, -2)
        for layer in self.layers:
            hidden, memory = layer(hidden, sizes)
        shape = (*x.shape[:-1], self.hidden_size)
        return State(hidden.view(shape), memory.view(shape))

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        shown = [f"{self.input_size}, {self.hidden_size}, num_dims={self.num_dims}"]
        if self.num_layers != 1:
            shown.append(f"num_layers={self.num_layers}")
        if any(map(any, self.directions)):
            shown.append(f"directions={list(self.directions)}")
        if not self.bias:
            shown.append("bias=False")
        elif self.forget_bias != 1:
            shown.append(f"forget_bias={self.forget_bias}")
        if self.output != "paper":
            shown.append(f'output="{self.output}"')
        return ", ".join(shown)


class _MultidimensionalLayer(nn.Module):
    """The weights of one layer, and its sweep over the positions."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        reverse: tuple[bool, ...],
        *,
        bias: bool,
        forget_bias: float | None,
        output: Output,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        N = len(reverse)
        rows = (N + 3) * hidden_size
        self.hidden_size = hidden_size
        self.reverse = reverse
        self.forget_bias = forget_bias
        self.output = output
        self.weight_input = nn.Parameter(torch.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hidden = nn.Parameter(
            torch.empty(rows, N * hidden_size, device=device, dtype=dtype)
        )
        self.bias = nn.Parameter(torch.empty(rows, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises Glorot-uniform weights, with the length of H as fan-in, and resets the biases."""
        d, N = self.hidden_size, len(self.reverse)
        bound = sqrt(6 / (d + self.weight_input.shape[1] + N * d))
        self.weight_input.uniform_(-bound, bound)
        self.weight_hidden.uniform_(-bound, bound)
        if self.bias is not None and self.forget_bias is not None:
            self.bias.zero_()
            self.bias[d : (N + 1) * d] = self.forget_bias

    def forward(self, x: Tensor, sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Inputs to hidden and memory vectors, ``[batch, positions, ...]``, in lexicographic order."""
        batch, N, d = len(x), len(self.reverse), self.hidden_size
        plan = make_plan(tuple(sizes), self.reverse, (False,) * N)
        widths = [step.stop - step.start for step in plan.steps]
        position = torch.from_numpy(plan.position).to(x.device)
        predecessors = torch.split(torch.from_numpy(_predecessors(plan)).to(x.device), widths)
        # One matrix product for the inputs of all blocks, in the order in which they run. It is split
        # once, not sliced step by step, so that its gradient is gathered in one piece too.
        projected = F.linear(x.index_select(1, position), self.weight_input, self.bias)
        h = m = self.weight_input.new_zeros(batch, 0, d)
        states = []
        for from_x, before in zip(torch.split(projected, widths, 1), predecessors, strict=True):
            # Blocks without a predecessor read the row of zeros in front.
            h_before, m_before = (
                F.pad(vectors, (0, 0, 1, 0))
                .index_select(1, before.flatten())
                .view(batch, len(before), N, d)
                for vectors in (h, m)
            )
            from_h = F.linear(h_before.flatten(2), self.weight_hidden)
            h, m = _lstm(from_x + from_h, m_before, self.output)
            states.append((h, m))
        back = position.argsort()
        hidden, memory = (
            torch.cat(vectors, 1).index_select(1, back) for vectors in zip(*states, strict=True)
        )
        return hidden, memory


def _lstm(preactivation: Tensor, m: Tensor, output: Output) -> tuple[Tensor, Tensor]:
    """Eq. 4, from ``W H``, ``[..., (N + 3) · d]``, and memories ``[..., N, d]``."""
    N, d = m.shape[-2:]
    g_u, g_f, g_o, g_c = torch.split(preactivation, [d, N * d, d, d], -1)
    new_m = (torch.unflatten(g_f.sigmoid(), -1, (N, d)) * m).sum(-2) + g_u.sigmoid() * g_c.tanh()
    return read_memory(g_o.sigmoid(), new_m, output), new_m


@lru_cache(maxsize=256)
def _predecessors(plan: Plan) -> NDArray[np.int64]:
    """The places of each block's predecessors in their step, from 1; 0 for none. ``[blocks, N]``."""
    before = np.zeros((plan.blocks, len(plan.sizes)), np.int64)
    for last, step in pairwise(plan.steps):
        for i, successor in enumerate(plan.successor):
            following = successor[last.start : last.stop]
            stays = following >= 0
            before[step.start + following[stays], i] = np.flatnonzero(stays) + 1
    return before


def _check_directions(
    directions: Sequence[Sequence[bool]] | None, num_layers: int, num_dims: int
) -> tuple[tuple[bool, ...], ...]:
    if directions is None:
        return ((False,) * num_dims,) * num_layers
    if (
        not isinstance(directions, Sequence)
        or len(directions) != num_layers
        or any(not isinstance(layer, Sequence) or len(layer) != num_dims for layer in directions)
        or any(not isinstance(back, bool) for layer in directions for back in layer)
    ):
        raise ValueError(
            f"directions: expected {num_dims} booleans for each of {num_layers} layers, "
            f"got {directions!r}"
        )
    return tuple(tuple(layer) for layer in directions)
