"""The 2-LSTM: a Grid LSTM for sequences, called like ``torch.nn.LSTM``."""

from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from typing_extensions import Unpack

from gridlstm.cells import Cell, Transfer
from gridlstm.checks import check_choice, check_lengths, check_options, check_positive, check_tensor
from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.projection import Projection, Readout, read, read_size
from gridlstm.state import State

__all__ = ["SequenceGridLSTM"]


class SequenceGridLSTM(nn.Module):
    """Two-dimensional Grid LSTM over time and depth, with the calling convention of ``torch.nn.LSTM``.

    Each element of the sequence is projected into the hidden and memory vectors that enter the depth
    dimension at its time step (section 4.3); the output is read where they leave it. The state is what
    travels along time, one pair of vectors per layer.

    Args:
        input_size: the length of an element of the sequence.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of blocks along depth.
        tied: share one set of weights along depth. Along time weights are always tied.
        depth: the transform along depth, as in :class:`Dim`. With a non-LSTM transform the grid
            corresponds to a Stacked LSTM (section 3.3).
        priority: whether depth is a priority dimension (Eq. 7).
        shared: whether depth uses the weights of time as well, which halves the parameters.
        depth_size: the length of the vectors along depth, at least ``hidden_size``. The output is read
            from the first ``hidden_size`` values. Default: ``hidden_size``.
        readout: ``"hidden"``, or ``"both"`` for hidden and memory vectors side by side, as in the
            paper.
        batch_first: whether input and output are ``[batch, time, ...]``.
        reverse: travel from the end of the sequence to its beginning.
        options: any further argument of :class:`GridLSTM`.

    Attributes:
        output_size: the length of an element of the output.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a size is not positive or a choice is unknown.

    >>> net = SequenceGridLSTM(5, 8, num_layers=3)
    >>> output, (h, m) = net(torch.zeros(7, 2, 5))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 8]), torch.Size([3, 2, 8]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        tied: bool = True,
        depth: str | Cell | Transfer = "lstm",
        priority: bool = False,
        shared: bool = False,
        depth_size: int | None = None,
        readout: Readout = "hidden",
        batch_first: bool = False,
        reverse: bool = False,
        **options: Unpack[GridOptions],
    ) -> None:
        super().__init__()
        check_options(self, options, GridOptions.__annotations__)
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_choice("readout", readout, get_args(Readout))
        depth_size = hidden_size if depth_size is None else depth_size
        check_positive("depth_size", depth_size)
        if depth_size < hidden_size:
            raise ValueError(
                f"depth_size: expected at least hidden_size {hidden_size}, got {depth_size}"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.readout = readout
        self.batch_first = batch_first
        along_depth = Dim(
            "depth",
            depth,
            size=num_layers,
            tied=tied,
            priority=priority,
            shares_weights_with="time" if shared else None,
            hidden_size=depth_size,
        )
        self.grid = GridLSTM([Dim("time", reverse=reverse), along_depth], hidden_size, **options)
        self.output_size = read_size(hidden_size, readout, memory=along_depth.has_memory)
        self.projection = Projection(
            input_size,
            depth_size,
            memory=along_depth.has_memory,
            bias=options.get("bias", True),
            device=options.get("device"),
            dtype=options.get("dtype"),
        )

    def forward(
        self,
        x: Tensor | PackedSequence,
        state: tuple[Tensor, Tensor | None] | None = None,
        *,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor | PackedSequence, State]:
        """Runs over a batch of sequences.

        Args:
            x: the sequences, ``[time, batch, input]``, or ``[batch, time, input]`` with
                ``batch_first``; one sequence ``[time, input]``; or a ``PackedSequence``.
            state: the hidden and memory vectors that enter along time, ``[num_layers, batch,
                hidden]`` each (no batch axis for one sequence). Default: zero.
            lengths: the lengths of the sequences, ``[batch]``. Default: all elements are real.

        Returns:
            The output, laid out as ``x`` and zero beyond the lengths, and the state that leaves along
            time, to be passed to the next call. A ``PackedSequence`` keeps its order: row k of the
            output's ``data`` belongs to row k of the input's. States are in the order of the
            sequences before they were packed, as in ``torch.nn.LSTM``.

        Raises:
            TypeError: if ``x`` does not have the parameters' dtype, or the state is not a pair of
                tensors.
            ValueError: if a shape is wrong or a length is out of range.
        """
        if isinstance(x, PackedSequence):
            if lengths is not None:
                raise ValueError("lengths: expected None because x is a PackedSequence, got a tensor")
            return self._packed(x, state)
        if isinstance(x, Tensor) and x.dim() == 2:
            return self._single(x, state, lengths)
        axes = ["batch", "time"] if self.batch_first else ["time", "batch"]
        check_tensor("x", x, [*axes, self.input_size], self.projection.linear.weight)
        x = x if self.batch_first else x.transpose(0, 1)
        beyond = None
        if lengths is not None:
            check_lengths("lengths", lengths, x.shape[0], 0, x.shape[1])
            time = torch.arange(x.shape[1], device=x.device)
            beyond = (time >= lengths.to(x.device).unsqueeze(-1)).unsqueeze(-1)
            x = x.masked_fill(beyond, 0)  # Padding, even NaN, must not reach a product.
        side = self.projection(x)
        sides = {"depth": side}
        if state is not None:
            sides["time"] = _swap(self._check_state(state, side.hidden.shape[0]))
        out = self.grid(sides, lengths=None if lengths is None else {"time": lengths})
        # Time first, as the grid lays it out: contiguous without a copy unless depth is wider.
        leaving = _swap(out["depth"]).map(lambda t: t[..., : self.hidden_size])
        output = read(leaving, self.readout).contiguous()
        if beyond is not None:
            output = output.masked_fill(beyond.transpose(0, 1), 0)
        return output.transpose(0, 1) if self.batch_first else output, _swap(out["time"])

    def _check_state(self, state: tuple[Tensor, Tensor | None], batch: int | None) -> State:
        """The state as a side of the grid; ``batch`` is ``None`` for a single sequence."""
        if not isinstance(state, tuple | list) or len(state) != 2:
            raise TypeError(f"state: expected a State or a pair (h, m), got {type(state).__name__}")
        hidden, memory = state
        axes = ["num_layers", *([] if batch is None else ["batch"]), "hidden"]
        expected = [self.num_layers, *([] if batch is None else [batch]), self.hidden_size]
        for name, tensor in (("hidden", hidden), ("memory", memory)):
            if tensor is None and name == "memory":
                continue
            if not isinstance(tensor, Tensor):
                raise TypeError(f"state: expected {name} to be a tensor, got {type(tensor).__name__}")
            if list(tensor.shape) != expected:
                raise ValueError(
                    f"state: expected {name} {expected} ({', '.join(axes)}), got {list(tensor.shape)}"
                )
        return State(hidden, memory)

    def _single(
        self, x: Tensor, state: tuple[Tensor, Tensor | None] | None, lengths: Tensor | None
    ) -> tuple[Tensor, State]:
        if lengths is not None:
            raise ValueError("lengths: expected None because x is a single sequence, got a tensor")
        batch = 0 if self.batch_first else 1
        if state is not None:
            state = self._check_state(state, None).map(lambda t: t.unsqueeze(1))
        output, out = self(x.unsqueeze(batch), state)
        return output.squeeze(batch), out.map(lambda t: t.squeeze(1))

    def _packed(
        self, x: PackedSequence, state: tuple[Tensor, Tensor | None] | None
    ) -> tuple[PackedSequence, State]:
        padded, lengths = pad_packed_sequence(x, batch_first=self.batch_first)
        output, out = self(padded, state, lengths=lengths)
        # In the order of ``x``: sorting again would permute sequences of equal length.
        if x.sorted_indices is not None:
            output = output.index_select(0 if self.batch_first else 1, x.sorted_indices)
            lengths = lengths[x.sorted_indices.to(lengths.device)]
        packed = pack_padded_sequence(output, lengths, batch_first=self.batch_first)
        return x._replace(data=packed.data), out


def _swap(state: State) -> State:
    """``[time or layers, batch, hidden]`` to and from ``[batch, time or layers, hidden]``."""
    return state.map(lambda t: t.transpose(0, 1))
