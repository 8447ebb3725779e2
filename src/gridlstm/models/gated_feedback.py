"""The gated-feedback LSTM, whose layers read all layers at the previous step.

Letters: ``L`` layers, ``d`` the length of a vector, ``i`` the layer that is read, ``j`` the one that
reads, ``g_u g_f g_o g_c`` the update, forget, output and content gates.
"""

from functools import partial
from math import sqrt
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Never

from gridlstm.cells.lstm import read_memory
from gridlstm.checks import check_choice, check_forget_bias, check_options
from gridlstm.models.sequence_network import SequenceNetwork
from gridlstm.state import State

__all__ = ["GatedFeedbackLSTM"]

Readout = Literal["top", "all"]
"""The layers whose hidden vectors are the output."""


class GatedFeedbackLSTM(SequenceNetwork):
    r"""LSTM layers with gated feedback between all of them (Chung, Gulcehre, Cho and Bengio, 2015).

    The content gate of layer j reads each layer i at the previous step through a global reset gate,
    one number per pair of layers:

    .. math::
        g^{i \to j} = \sigma(w^j \cdot h^{j-1}_t + u^{i \to j} \cdot [h^1_{t-1}; \dots; h^L_{t-1}])

        g_c^j = \tanh(W_c^j h^{j-1}_t + \sum_i g^{i \to j} U_c^{i \to j} h^i_{t-1} + b_c^j)

    where :math:`h^0_t` is the input. The other gates are those of a stacked LSTM, :math:`\sigma(W^j
    h^{j-1}_t + U^j h^j_{t-1} + b^j)`, as are :math:`m = g_f \odot m + g_u \odot g_c` and
    :math:`h = g_o \odot \tanh(m)`.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of layers.
        readout: the output is the hidden vector of the ``"top"`` layer, or those of ``"all"`` layers
            side by side.
        bias: add biases to all gates except the reset gates.
        forget_bias: the initial bias of the forget gates. The weights are then
            Glorot-uniform and the other biases from 0. ``None`` starts all parameters as
            ``torch.nn.LSTM`` does.
        batch_first: inputs and outputs are ``[batch, time, ...]``; states stay as they are.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Variables:
        weight_input.j: the weights for the layer below or the input, ``[4 · d + 1, below]``: the gates
            in the order ``u, f, o, c``, then w.
        weight_hidden: the U of the gates u, f and o, ``[L, 3 · d, d]``.
        weight_feedback: the U_c, ``[L (i), L (j), d, d]``.
        weight_reset: the u, ``[L (j), L (i), L · d]``.
        bias: ``[L, 4 · d]``.

    Attributes:
        output_size: the length of an output vector, ``hidden_size`` times the layers read.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a size is not positive, ``forget_bias`` is given without ``bias``, or the readout
            is unknown.

    Notes:
        One layer is not a standard LSTM: its content gate reads the layer itself through a reset gate.

    >>> net = GatedFeedbackLSTM(5, 8, num_layers=3, readout="all")
    >>> net(torch.randn(7, 2, 5))[0].shape
    torch.Size([7, 2, 24])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        readout: Readout = "top",
        batch_first: bool = False,
        bias: bool = True,
        forget_bias: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **unknown: Never,
    ) -> None:
        check_options(self, unknown)
        super().__init__(input_size, hidden_size, num_layers, batch_first=batch_first)
        check_choice("readout", readout, get_args(Readout))
        check_forget_bias(forget_bias, bias)
        self.readout = readout
        self.forget_bias = forget_bias
        L, d = num_layers, hidden_size
        self.output_size = L * d if readout == "all" else d
        empty = partial(torch.empty, device=device, dtype=dtype)
        self.weight_input = nn.ParameterList(
            nn.Parameter(empty(4 * d + 1, d if j else input_size)) for j in range(L)
        )
        self.weight_hidden = nn.Parameter(empty(L, 3 * d, d))
        self.weight_feedback = nn.Parameter(empty(L, L, d, d))
        self.weight_reset = nn.Parameter(empty(L, L, L * d))
        self.bias = nn.Parameter(empty(L, 4 * d)) if bias else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights and resets the biases."""
        L, d = self.num_layers, self.hidden_size
        if self.forget_bias is None or self.bias is None:
            for parameter in self.parameters():
                parameter.uniform_(-1 / sqrt(d), 1 / sqrt(d))
            return
        for j, weight in enumerate(self.weight_input):
            gates, content = weight.split([3 * d, d + 1])
            # Glorot's fan-in is the length of everything that is read.
            for read, weights in (
                (d, (gates, self.weight_hidden[j])),
                (L * d, (content, self.weight_feedback[:, j], self.weight_reset[j])),
            ):
                bound = sqrt(6 / (d + weight.shape[1] + read))
                for part in weights:
                    part.uniform_(-bound, bound)
        self.bias.zero_()[:, d : 2 * d] = self.forget_bias

    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Runs step by step. All products with the previous step are one batched product."""
        L, d = self.num_layers, self.hidden_size
        # By the layer that is read, and side by side: [L (i), d, 3 · d + L · d + L · L].
        weight = torch.cat(
            (
                self.weight_hidden,
                self.weight_feedback.flatten(1, 2),
                self.weight_reset.view(L * L, L, d).transpose(0, 1),
            ),
            1,
        ).transpose(1, 2)
        inputs = list(self.weight_input)
        # The reset gates have no bias.
        biases = [None] * L if self.bias is None else F.pad(self.bias, (0, 1)).unbind()
        h = state.hidden
        memories = (torch.zeros_like(h) if state.memory is None else state.memory).unbind()
        outputs = []
        for from_x in F.linear(x, inputs[0], biases[0]).unbind():
            gates, feedback, resets = torch.bmm(h, weight).split([3 * d, L * d, L * L], -1)
            before = zip(
                gates.unbind(),
                feedback.unflatten(-1, (L, d)).unbind(2),
                resets.sum(0).unflatten(-1, (L, L)).unbind(1),
                memories,
                strict=True,
            )
            states: list[tuple[Tensor, Tensor]] = []
            for j, parts in enumerate(before):
                below = F.linear(states[-1][0], inputs[j], biases[j]) if j else from_x
                states.append(_layer(below, *parts))
            hidden, memories = zip(*states, strict=True)
            h = torch.stack(hidden)
            outputs.append(torch.cat(hidden, -1) if self.readout == "all" else hidden[-1])
        return torch.stack(outputs), State(h, torch.stack(memories))

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        shown = [f"num_layers={self.num_layers}"]
        if self.readout != "top":
            shown.append(f'readout="{self.readout}"')
        if self.forget_bias is not None:
            shown.append(f"forget_bias={self.forget_bias}")
        return self.describe(*shown)


def _layer(
    below: Tensor, gates: Tensor, feedback: Tensor, resets: Tensor, m: Tensor
) -> tuple[Tensor, Tensor]:
    """The new hidden and memory vectors of a layer, from the products with its weights.

    Args:
        below: from the layer below, ``[batch, 4 · d + 1]``.
        gates: from the layer itself at the previous step, ``[batch, 3 · d]``.
        feedback: from each layer at the previous step, ``[L, batch, d]``.
        resets: from all layers at the previous step, ``[batch, L]``.
        m: the old memory, ``[batch, d]``.
    """
    d = m.shape[-1]
    below_gates, below_content, below_reset = below.split([3 * d, d, 1], -1)
    reset = torch.sigmoid(below_reset + resets)
    g_c = torch.tanh(below_content + (reset.t().unsqueeze(-1) * feedback).sum(0))
    g_u, g_f, g_o = torch.sigmoid(below_gates + gates).chunk(3, -1)
    new_m = g_f * m + g_u * g_c
    return read_memory(g_o, new_m, "standard"), new_m
