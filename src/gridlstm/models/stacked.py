"""The standard LSTM and the Stacked LSTM, with cells along time but not along depth."""

from math import sqrt
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from typing_extensions import Never

from gridlstm.checks import check_forget_bias, check_lengths, check_options, check_positive
from gridlstm.models.sequence_network import check_state, time_first
from gridlstm.state import State

__all__ = ["StackedLSTM"]

Inputs = TypeVar("Inputs", Tensor, PackedSequence)


class StackedLSTM(nn.Module):
    r"""LSTM layers on top of each other (sections 2.1 and 2.2), for batches of sequences.

    A layer reads the hidden vectors of the layer below in place of the projected input,

    .. math:: H = [h^{below}_i; h]  \qquad (h', m') = \mathrm{LSTM}(H, m, W)

    (Eq. 2 and 3). One layer is the standard LSTM.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of layers.
        tied: share one set of weights among all layers. The input is then projected to
            ``hidden_size``, the I of Eq. 2. An untied first layer has its own input matrix.
        bias: add biases to the preactivations.
        forget_bias: the initial bias of the forget gates. The weights are then
            Glorot-uniform, as in :class:`GridLSTM`, and the other biases 0. ``None`` keeps PyTorch's
            initialisation.
        batch_first: inputs and outputs are ``[batch, time, ...]``; states stay as they are.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Variables:
        lstm: the ``torch.nn.LSTM`` of all layers, or of the one that they share if tied.
        input_projection: the I of Eq. 2, ``[hidden, input]`` without a bias; ``None`` if untied.

    Attributes:
        output_size: the length of an output vector, ``hidden_size``.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a size is not positive, or ``forget_bias`` is given without ``bias``.

    Notes:
        - The output is ``h' = g_o ⊙ tanh(m')``, as PyTorch's kernel computes it. For the
          ``tanh(g_o ⊙ m')`` of Eq. 1 use a :class:`MultidimensionalLSTM` with one dimension.
        - PyTorch adds two biases, ``b_ih`` and ``b_hh``; ``forget_bias`` sets the first.
        - Glorot's fan-in is the length of H, because the matrices of Eq. 1 act on all of H.

    >>> net = StackedLSTM(5, 8, num_layers=2)
    >>> output, (h, m) = net(torch.randn(7, 3, 5), lengths=torch.tensor([7, 2, 4]))
    >>> output.shape, h.shape
    (torch.Size([7, 3, 8]), torch.Size([2, 3, 8]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        tied: bool = False,
        bias: bool = True,
        forget_bias: float | None = None,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **unknown: Never,
    ) -> None:
        check_options(self, unknown)
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_forget_bias(forget_bias, bias)
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.tied = tied
        self.bias = bias
        self.forget_bias = forget_bias
        self.batch_first = batch_first
        self.input_projection = (
            nn.Linear(input_size, hidden_size, bias=False, device=device, dtype=dtype) if tied else None
        )
        self.lstm = nn.LSTM(
            hidden_size if tied else input_size,
            hidden_size,
            1 if tied else num_layers,
            bias=bias,
            device=device,
            dtype=dtype,
        )
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights and resets the biases."""
        if self.input_projection is not None:
            self.input_projection.reset_parameters()
        self.lstm.reset_parameters()
        if self.forget_bias is None:
            return
        if self.input_projection is not None:
            nn.init.xavier_uniform_(self.input_projection.weight)
        for weight_ih, weight_hh, bias_ih, bias_hh in self.lstm.all_weights:
            bound = sqrt(6 / (self.hidden_size + weight_ih.shape[1] + weight_hh.shape[1]))
            weight_ih.uniform_(-bound, bound)
            weight_hh.uniform_(-bound, bound)
            bias_hh.zero_()
            # The order of the gates in PyTorch: update, forget, content, output.
            bias_ih.zero_().chunk(4)[1].fill_(self.forget_bias)

    def forward(
        self,
        x: Tensor,
        state: tuple[Tensor, Tensor | None] | None = None,
        *,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """Runs the network over a batch of sequences.

        Args:
            x: the inputs, ``[time, batch, input]``.
            state: the initial hidden and memory vectors, each ``[layers, batch, hidden]``. Default:
                zero.
            lengths: the lengths of the samples, ``[batch]``, at least 1. Padding does not change the
                result of a sample.

        Returns:
            The hidden vectors of the last layer, ``[time, batch, hidden]``, zero where padded, and the
            state after each sample's last real step, to be passed to the next call.

        Raises:
            TypeError: if an argument is of the wrong type or dtype.
            ValueError: if a shape is wrong, there are no time steps, or a length is out of range.
        """
        like = self.lstm.all_weights[0][0]
        x = time_first(x, self.input_size, self.batch_first, like)
        time, batch, _ = x.shape
        if lengths is not None:
            check_lengths("lengths", lengths, batch, 1, time)
        hidden, memory = check_state(state, (self.num_layers, batch, self.hidden_size), like)
        memory = like.new_zeros(hidden.shape) if memory is None else memory

        # An empty batch has nothing to pack.
        if lengths is None or batch == 0:
            output, new_state = self._layers(x, hidden, memory)
        else:
            packed = pack_padded_sequence(x, lengths.to("cpu", torch.int64), enforce_sorted=False)
            packed, new_state = self._layers(packed, hidden, memory)
            output, _ = pad_packed_sequence(packed, total_length=time)
        return (output.transpose(0, 1) if self.batch_first else output), new_state

    def _layers(self, x: Inputs, hidden: Tensor, memory: Tensor) -> tuple[Inputs, State]:
        """Runs all layers: one call of PyTorch's kernel or, if tied, one per layer."""
        if self.input_projection is not None:
            # After the packing, so that no padding reaches the gradient of the projection.
            if isinstance(x, PackedSequence):
                x = x._replace(data=self.input_projection(x.data))
            else:
                x = self.input_projection(x)
        device = hidden.device.type
        at_once = self.lstm.num_layers
        states = []
        for h, m in zip(torch.split(hidden, at_once), torch.split(memory, at_once), strict=True):
            if torch.is_autocast_enabled(device):
                # On a CPU, PyTorch's kernel fails under autocast while the input is float32.
                x = x.to(torch.get_autocast_dtype(device))
            x, new_state = self.lstm(x, (h, m))
            states.append(new_state)
        new_hidden, new_memory = (torch.cat(vectors) for vectors in zip(*states, strict=True))
        return x, State(new_hidden, new_memory)

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        shown = [f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"]
        if self.tied:
            shown.append("tied=True")
        if not self.bias:
            shown.append("bias=False")
        if self.forget_bias is not None:
            shown.append(f"forget_bias={self.forget_bias}")
        if self.batch_first:
            shown.append("batch_first=True")
        return ", ".join(shown)
