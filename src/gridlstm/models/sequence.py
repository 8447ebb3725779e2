"""The 2-LSTM: a Grid LSTM for sequences, called like ``torch.nn.LSTM``."""

from collections.abc import Sequence
from typing import Final, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from typing_extensions import Unpack

from gridlstm.cells import Cell, Transfer
from gridlstm.checks import (
    check_choice,
    check_dropout,
    check_lengths,
    check_options,
    check_positive,
    check_tensor,
    lengths_tensor,
)
from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.projection import Projection, Readout, read, read_size
from gridlstm.models.sequence_state import Pair, check_pair, join_directions, split_directions, swap
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
        bidirectional: run a second grid from the end of the sequence to its beginning, and put its
            output beside that of the first.
        options: any further argument of :class:`GridLSTM`.

    Variables:
        grid, projection: the grid and the projection of the input, see :class:`GridLSTM`.
        grid_reverse, projection_reverse: those of the second direction; ``None`` in a network with one.

    Attributes:
        output_size: the length of an element of the output.
        proj_size: always 0, for code that reads it from a ``torch.nn.LSTM``.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a size is not positive, a choice is unknown, or both ``reverse`` and
            ``bidirectional`` are set.

    Notes:
        - The two directions of a bidirectional network are two grids side by side, each with its own
          weights; their outputs are concatenated at the top only. In ``torch.nn.LSTM`` each layer
          reads both directions of the layer below. In a grid, vectors travel along depth together with
          their memories, and the two directions would have to share them.
        - ``dropout`` is that of :class:`GridLSTM`: each block drops values of all the hidden vectors
          it reads, along time as well as depth. ``torch.nn.LSTM`` drops values between layers only,
          and nothing in a network of one layer: ``dropout_between=["depth"]`` does the same here.
          ``dropout_tied=["time"]`` drops the same values at all elements of a sequence.

    >>> net = SequenceGridLSTM(5, 8, num_layers=3)
    >>> output, (h, m) = net(torch.zeros(7, 2, 5))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 8]), torch.Size([3, 2, 8]))
    """

    proj_size: Final = 0

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
        bidirectional: bool = False,
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
        if not isinstance(bidirectional, bool):
            raise TypeError(f"bidirectional: expected True or False, got {bidirectional!r}")
        if bidirectional and reverse:
            raise ValueError("reverse: expected False because bidirectional is True, got True")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.readout = readout
        self.batch_first = batch_first
        self.bidirectional = bidirectional
        along_depth = Dim(
            "depth",
            depth,
            size=num_layers,
            tied=tied,
            priority=priority,
            shares_weights_with="time" if shared else None,
            hidden_size=depth_size,
        )

        def make_direction(reverse: bool) -> tuple[GridLSTM, Projection]:
            grid = GridLSTM([Dim("time", reverse=reverse), along_depth], hidden_size, **options)
            projection = Projection(
                input_size,
                depth_size,
                memory=along_depth.has_memory,
                bias=grid.bias,
                device=options.get("device"),
                dtype=options.get("dtype"),
            )
            return grid, projection

        self.grid, self.projection = make_direction(reverse)
        self.grid_reverse: GridLSTM | None = None
        self.projection_reverse: Projection | None = None
        if bidirectional:
            self.grid_reverse, self.projection_reverse = make_direction(True)
        directions = 2 if bidirectional else 1
        self.output_size = directions * read_size(hidden_size, readout, memory=along_depth.has_memory)

    @property
    def directions(self) -> list[tuple[GridLSTM, Projection]]:
        """The grid and the projection of each direction: one, or two if bidirectional."""
        first = (self.grid, self.projection)
        if self.grid_reverse is None or self.projection_reverse is None:
            return [first]
        return [first, (self.grid_reverse, self.projection_reverse)]

    @property
    def bias(self) -> bool:
        """Whether there are biases."""
        return self.grid.bias

    @property
    def dropout(self) -> float:
        """The dropout probability of the blocks. It can be changed."""
        return self.grid.dropout

    @dropout.setter
    def dropout(self, probability: float) -> None:
        check_dropout(probability)
        for grid, _ in self.directions:
            grid.dropout = probability

    @property
    def all_weights(self) -> list[list[nn.Parameter]]:
        """The parameters, one list per direction: those of the grid, then those of the projection.

        A parameter holds the weights of all layers, so there is not one list per layer.
        """
        return [[*grid.parameters(), *projection.parameters()] for grid, projection in self.directions]

    def reset_parameters(self) -> None:
        """Initialises all parameters anew. After the same seed, they equal those of a new network."""
        for grid, projection in self.directions:
            grid.reset_parameters()
            projection.linear.reset_parameters()  # Its constructor has drawn numbers as well.
            projection.reset_parameters()

    def flatten_parameters(self) -> None:
        """Does nothing; for code that calls it on a ``torch.nn.LSTM``."""

    def forward(
        self,
        x: Tensor | PackedSequence,
        state: Pair | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        hx: Pair | None = None,
    ) -> tuple[Tensor | PackedSequence, State]:
        """Runs over a batch of sequences.

        Args:
            x: the sequences, ``[time, batch, input]``, or ``[batch, time, input]`` with
                ``batch_first``; one sequence ``[time, input]``; or a ``PackedSequence``.
            state: the hidden and memory vectors that enter along time, ``[num_layers, batch,
                hidden]`` each (no batch axis for one sequence). Default: zero. If bidirectional,
                ``[2 · num_layers, batch, hidden]``: layer 0 forward, layer 0 backward, layer 1 forward
                and so on.
            lengths: the lengths of the sequences, ``[batch]``, or as a list. Default: all elements are
                real.
            hx: ``state`` by the name that it has in ``torch.nn.LSTM``.

        Returns:
            The output, laid out as ``x`` and zero beyond the lengths, and the state that leaves along
            time, to be passed to the next call. If bidirectional, the features of an element are those
            of the forward and then those of the backward direction. A ``PackedSequence`` keeps its
            order: row k of the output's ``data`` belongs to row k of the input's. States are in the
            order of the sequences before they were packed, as in ``torch.nn.LSTM``.

        Raises:
            TypeError: if ``x`` or the state does not have the parameters' dtype, or the state is not a
                pair of tensors.
            ValueError: if a shape is wrong, a length is out of range, or both ``state`` and ``hx`` are
                given.
        """
        if hx is not None:
            if state is not None:
                raise ValueError("hx: expected None because state is given, got both")
            state = hx
        if isinstance(x, PackedSequence):
            if lengths is not None:
                raise ValueError("lengths: expected None because x is a PackedSequence, got some")
            return self._packed(x, state)
        if isinstance(x, Tensor) and x.dim() == 2:
            if lengths is not None:
                raise ValueError("lengths: expected None because x is a single sequence, got some")
            return self._single(x, state)
        axes = ["batch", "time"] if self.batch_first else ["time", "batch"]
        check_tensor("x", x, [*axes, self.input_size], self.projection.linear.weight)
        x = x if self.batch_first else x.transpose(0, 1)
        beyond = None
        if lengths is not None:
            lengths = lengths_tensor("lengths", lengths)
            check_lengths("lengths", lengths, x.shape[0], 0, x.shape[1])
            time = torch.arange(x.shape[1], device=x.device)
            beyond = (time >= lengths.to(x.device).unsqueeze(-1)).unsqueeze(-1)
            x = x.masked_fill(beyond, 0)  # Padding, even NaN, must not reach a product.
        entering: list[State | None] = [None] * len(self.directions)
        if state is not None:
            entering[:] = split_directions(self._check_state(state, x.shape[0]), len(entering))
        outputs, leaving = [], []
        for (grid, projection), start in zip(self.directions, entering, strict=True):
            sides = {"depth": projection(x)}
            if start is not None:
                sides["time"] = swap(start)
            out = grid(sides, lengths=None if lengths is None else {"time": lengths})
            # Time first, as the grid lays it out: contiguous without a copy unless depth is wider.
            top = swap(out["depth"]).map(lambda t: t[..., : self.hidden_size])
            outputs.append(read(top, self.readout))
            leaving.append(swap(out["time"]))
        output = (torch.cat(outputs, -1) if len(outputs) > 1 else outputs[0]).contiguous()
        if beyond is not None:
            output = output.masked_fill(beyond.transpose(0, 1), 0)
        return output.transpose(0, 1) if self.batch_first else output, join_directions(leaving)

    def _check_state(self, state: Pair, batch: int | None) -> State:
        """Checks a state; ``batch`` is ``None`` for a single sequence."""
        layers = "2 · num_layers" if self.bidirectional else "num_layers"
        sizes = {layers: self.num_layers * len(self.directions)}
        if batch is not None:
            sizes["batch"] = batch
        sizes["hidden"] = self.hidden_size
        return check_pair(state, sizes, self.projection.linear.weight)

    def _single(self, x: Tensor, state: Pair | None) -> tuple[Tensor, State]:
        batch = 0 if self.batch_first else 1
        if state is not None:
            state = self._check_state(state, None).map(lambda t: t.unsqueeze(1))
        output, out = self(x.unsqueeze(batch), state)
        return output.squeeze(batch), out.map(lambda t: t.squeeze(1))

    def _packed(self, x: PackedSequence, state: Pair | None) -> tuple[PackedSequence, State]:
        padded, lengths = pad_packed_sequence(x, batch_first=self.batch_first)
        output, out = self(padded, state, lengths=lengths)
        # In the order of ``x``: sorting again would permute sequences of equal length.
        if x.sorted_indices is not None:
            output = output.index_select(0 if self.batch_first else 1, x.sorted_indices)
            lengths = lengths[x.sorted_indices.to(lengths.device)]
        packed = pack_padded_sequence(output, lengths, batch_first=self.batch_first)
        return x._replace(data=packed.data), out

    def extra_repr(self) -> str:
        """The sizes, and the arguments that differ from their defaults and that no grid shows."""
        shown = [f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"]
        if self.readout != "hidden":
            shown.append(f'readout="{self.readout}"')
        if self.batch_first:
            shown.append("batch_first=True")
        if self.bidirectional:
            shown.append("bidirectional=True")
        return ", ".join(shown)
