"""LSTM layers whose memories may be connected by depth gates."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.cells.lstm import GATES
from gridlstm.state import State, where_real

__all__ = ["DepthGatedLSTM"]


class _DepthGatedLayer(nn.Module):
    """One layer; ``gated`` if it reads the memory of a layer below it."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        gated: bool,
        forget_bias: float,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.gated = gated
        self.forget_bias = forget_bias
        rows = (len(GATES) + gated) * hidden_size
        self.input = nn.Linear(input_size, rows, device=device, dtype=dtype)
        self.recurrent = nn.Linear(
            hidden_size, len(GATES) * hidden_size, False, device=device, dtype=dtype
        )
        if gated:
            self.before, self.below = (
                nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype)) for _ in range(2)
            )
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Glorot-uniform matrices; biases 0 except for the forget gate; peepholes 0."""
        for linear in (self.input, self.recurrent):
            for matrix in linear.weight.split(self.hidden_size):
                nn.init.xavier_uniform_(matrix)
        self.input.bias.zero_()
        self.input.bias.split(self.hidden_size)[GATES.index("f")].fill_(self.forget_bias)
        if self.gated:
            self.before.zero_()
            self.below.zero_()

    def step(self, projected: Tensor, state: State, below: Tensor | None) -> State:
        """The new state, from ``W_x x + b``, the old state and the memory of the layer below."""
        rows = len(GATES) * self.hidden_size
        gates, depth = projected[..., :rows], projected[..., rows:]
        m = state.memory
        assert m is not None, "an LSTM has a memory"
        g_u, g_f, g_o, g_c = (gates + self.recurrent(state.hidden)).chunk(len(GATES), -1)
        new = torch.sigmoid(g_f) * m + torch.sigmoid(g_u) * torch.tanh(g_c)
        if self.gated:
            assert below is not None, "only the first layer has none below it"
            new = new + torch.sigmoid(depth + self.before * m + self.below * below) * below
        return State(torch.sigmoid(g_o) * torch.tanh(new), new)


class DepthGatedLSTM(nn.Module):
    r"""LSTM layers with a gate from each memory to that of the layer above (Yao et al., 2015).

    .. math::
        d_t &= \sigma(W_d x_t + w_c \odot m_{t-1} + w_l \odot m^{\mathrm{below}}_t + b_d) \\
        m_t &= g_f \odot m_{t-1} + g_u \odot g_c + d_t \odot m^{\mathrm{below}}_t

    where x are the hidden vectors of the layer below. Everything else is as in ``torch.nn.LSTM``.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of layers. The first has no memory below it and so no depth gate.
        gated: whether there are depth gates.
        forget_bias: the initial bias of the forget gates.
        dropout: on the hidden vectors between layers, in training mode.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Notes:
        Unlike in the paper that introduced depth gates, the other gates have no peepholes.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        gated: bool = True,
        forget_bias: float = 1.0,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.layers = nn.ModuleList(
            _DepthGatedLayer(
                hidden_size if layer else input_size,
                hidden_size,
                gated=gated and layer > 0,
                forget_bias=forget_bias,
                device=device,
                dtype=dtype,
            )
            for layer in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Initialises all weights."""
        for layer in self._layers():
            layer.reset_parameters()

    def forward(self, x: Tensor, lengths: Tensor, *, reverse: bool = False) -> Tensor:
        """Runs over sentences, starting from zero.

        Args:
            x: ``[batch, time, input]``.
            lengths: the lengths of the sentences, ``[batch]``; beyond them the state does not change.
            reverse: run from the last element to the first.

        Returns:
            The hidden vectors of the last layer, ``[batch, time, hidden]``.
        """
        real = torch.arange(x.shape[1], device=x.device).unsqueeze(-1) < lengths  # [time, batch]
        order = range(x.shape[1])[::-1] if reverse else range(x.shape[1])
        below: list[Tensor | None] = [None] * x.shape[1]
        for number, layer in enumerate(self._layers()):
            projected = layer.input(self._drop(x, number)).unbind(1)
            state = State(*projected[0].new_zeros(2, len(x), self.hidden_size))
            states: list[State | None] = [None] * x.shape[1]
            for t in order:
                new = layer.step(projected[t], state, below[t])
                state = states[t] = where_real(real[t].unsqueeze(-1), new, state)
            x = torch.stack([s.hidden for s in states if s is not None], 1)
            below = [s.memory for s in states if s is not None]
        return x

    def step(self, x: Tensor, states: Sequence[State]) -> list[State]:
        """The new states, from one element ``[batch, input]`` and the state of each layer."""
        new: list[State] = []
        below: Tensor | None = None
        for number, (layer, state) in enumerate(zip(self._layers(), states, strict=True)):
            new.append(layer.step(layer.input(self._drop(x, number)), state, below))
            x, below = new[-1]
        return new

    def _drop(self, x: Tensor, layer: int) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if layer else x

    def _layers(self) -> list[_DepthGatedLayer]:
        return [layer for layer in self.layers if isinstance(layer, _DepthGatedLayer)]
