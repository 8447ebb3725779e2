"""The Grid LSTM as a module: parameters, checks of arguments, and the call of an engine."""

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from math import prod
from typing import Literal, NoReturn, get_args, overload

import torch
from torch import Tensor, nn

from gridlstm.block import make_block
from gridlstm.cells import Output
from gridlstm.checks import check_choice, check_dropout, check_forget_bias
from gridlstm.dim import Dim, check_dims
from gridlstm.drawing import Drawable
from gridlstm.engines import ENGINES, Engine, explain
from gridlstm.engines.recording import uncompiled
from gridlstm.geometry import GridShape
from gridlstm.grid_options import Init
from gridlstm.parameters import GridParameters
from gridlstm.regularisation import (
    Probabilities,
    check_layer_norm,
    check_names,
    check_zoneout,
    draw_dropout,
    draw_zoneout,
    expand_zoneout,
)
from gridlstm.sharing import Shareable
from gridlstm.sides import check_sides, from_faces, make_incoming, make_mask
from gridlstm.state import State
from gridlstm.transfer import check_transform

__all__ = ["GridLSTM"]


class GridLSTM(Shareable, GridParameters, Drawable):
    r"""A grid of LSTM blocks in any number of dimensions (section 3).

    The block at each position concatenates the hidden vectors that reach it along all dimensions,

    .. math:: H = [h_1; \dots; h_N]  \qquad (h_i', m_i') = \mathrm{LSTM}(H, m_i, W_i)

    (Eq. 5 and 6), and passes each new pair on along its dimension. Data enters and leaves only through
    the sides of the grid.

    Args:
        dims: the dimensions, by name or as :class:`Dim`.
        hidden_size: the length of the hidden and memory vectors, for each dimension without a
            ``hidden_size`` of its own.
        bias: add a bias to every preactivation. ``False`` gives the equations as in the paper.
        output: ``"paper"`` for ``h' = tanh(g_o ⊙ m')`` (Eq. 1), ``"standard"`` for
            ``h' = g_o ⊙ tanh(m')``, as in ``torch.nn.LSTM``.
        forget_bias: the initial bias of the forget gates. Default: 1. Requires ``bias``. The other
            biases start from 0.
        init: fills a weight matrix in place; called for each gate of each weight set,
            ``[hidden, H]``. Default: Glorot-uniform.
        layer_norm: normalise the preactivations of every gate, and the memories where they are read
            (Ba et al., 2016; see :class:`gridlstm.cells.LayerNorm`): ``True`` along all dimensions, or
            the names of some.
        dropout: the probability with which a block drops each value of the hidden vectors it reads
            (section 4.4), in training mode. The vectors that it passes on are not dropped.
        dropout_tied: the names of dimensions along which all blocks drop the same values. With
            ``["time"]``, each sequence has one mask per layer ("variational" dropout, Gal and
            Ghahramani, 2016). Default: each block drops its own.
        dropout_between: drop only values that pass from block to block along these dimensions: nothing
            that travels along others, and nothing where it enters the grid. With ``["depth"]``, values
            are dropped between layers only, as by ``torch.nn.LSTM``. Default: everything that a block
            reads.
        zoneout: the probability with which a block keeps each old value of a vector instead of the new
            one, in training mode (Krueger et al., 2016). In evaluation mode it passes on the
            expectation. A pair gives the probabilities for hidden and memory vectors; a mapping from
            names gives those of some dimensions: ``{"time": (0.05, 0.5)}``.
        engine: ``"wavefront"`` is fast; ``"reference"`` is the specification and supports second and
            forward-mode derivatives. Both give the same results.
        recompute: keep only the last of a few pieces along the first dimension for the backward pass,
            which runs the others again: less memory, more time. Not with the reference engine.
        device: the device of the parameters.
        dtype: the dtype of the parameters, and of all vectors.

    Variables:
        weight_NAME: the weights of dimension NAME, ``[*untied sizes, gates · hidden, H]``: one leading
            axis for each untied dimension; ``gates`` is 4 for LSTM dimensions, in the order
            ``u, f, o, c`` (Eq. 1), 3 for GRU dimensions, in the order ``r, z, n``, and 1 for non-LSTM
            dimensions (the V of Eq. 8). Absent if the dimension shares the weights of another.
        bias_NAME: the same without the last axis. A GRU has one vector more, for ``W_n h``.
        peephole_NAME: the diagonal weights of an LSTM with peepholes, ``[*untied sizes, 3 · hidden]``,
            in the order ``u, f, o``. They start from 0.
        gain_NAME: with layer normalisation, the gains of the preactivations, in the shape of the
            biases, which are added afterwards. They start from 1.
        memory_gain_NAME, memory_bias_NAME: the same for the normalised memory of an LSTM,
            ``[*untied sizes, hidden]``.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if dimensions are missing, repeated or share incompatible weights, or an argument
            is out of range or names an unknown dimension.

    Notes:
        - Equation 1 squashes the product of output gate and memory; nearly every other LSTM squashes
          the memory first. ``output`` chooses.
        - Priority dimensions read the new vectors of all ordinary dimensions, and not of each other.
        - Each phase of a block (ordinary, then priority dimensions) draws its own dropout. Every call
          draws anew, also if it continues the sequences of the last.
        - Priority dimensions read what the others pass on, after zoneout.
        - Layer normalisation and zoneout run without the compiled kernel (:meth:`explain`).
        - Every parameter and side that a call uses has a gradient, perhaps of zeros.
        - Weights along an untied reversed dimension belong to positions, not to the order of travel.
        - Without gradients, weights are prepared for products once, until a parameter changes. Changes
          through ``.data``, which PyTorch does not count, are seen after ``train()`` or ``eval()``.
        - ``dropout``, ``engine`` and ``recompute`` can be changed later, the other arguments cannot.

    >>> grid = GridLSTM(["time", Dim("depth", size=3)], hidden_size=8)
    >>> x = torch.randn(2, 5, 8)
    >>> out = grid({"depth": State(x, x)})
    >>> out["depth"].hidden.shape, out["time"].memory.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 3, 8]))
    """

    fixed = frozenset(
        (
            *("dims", "hidden_size", "bias", "output", "forget_bias", "init", "block"),
            *("layer_norm", "dropout_tied", "dropout_between", "zoneout"),
        )
    )

    def __init__(
        self,
        dims: Sequence[Dim | str],
        hidden_size: int | None = None,
        *,
        bias: bool = True,
        output: Output = "paper",
        forget_bias: float | None = None,
        init: Init = nn.init.xavier_uniform_,
        layer_norm: bool | Sequence[str] = False,
        dropout: float = 0.0,
        dropout_tied: Sequence[str] = (),
        dropout_between: Sequence[str] | None = None,
        zoneout: Probabilities | Mapping[str, Probabilities] = 0.0,
        engine: Engine = "wavefront",
        recompute: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_choice("output", output, get_args(Output))
        check_choice("engine", engine, get_args(Engine))
        check_dropout(dropout)
        check_forget_bias(forget_bias, bias)
        if not callable(init):
            raise TypeError(f"init: expected a function that fills a tensor, got {init!r}")
        for name, value in (("bias", bias), ("recompute", recompute)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: expected True or False, got {value!r}")
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise TypeError(f"dtype: expected a floating torch.dtype, got {dtype!r}")
        self.dims = check_dims(dims, hidden_size)
        self.hidden_size = hidden_size
        self.bias = bias
        self.output = output
        self.forget_bias = 1.0 if forget_bias is None and bias else forget_bias
        self.init = init
        normalised = check_layer_norm(layer_norm, self.dims)
        self.layer_norm = layer_norm if isinstance(layer_norm, bool) else normalised or False
        self.dropout = dropout
        self.dropout_tied = check_names("dropout_tied", dropout_tied, self.dims)
        self.dropout_between = (
            None
            if dropout_between is None
            else check_names("dropout_between", dropout_between, self.dims)
        )
        self.zoneout = check_zoneout(zoneout, self.dims)
        self.engine = engine
        self.recompute = recompute
        self.block = make_block(
            self.dims,
            output,
            layer_norm=normalised,
            zoneout=expand_zoneout(self.zoneout, self.dims),
        )
        self._make_parameters(device, dtype)
        self.reset_parameters()
        for dim in self.dims:
            check_transform(dim, self.weights_of(dim.name)[0])

    @overload
    def forward(
        self,
        sides: Mapping[str, State],
        *,
        lengths: Mapping[str, Tensor] | None = None,
        mask: Tensor | None = None,
        trace: Literal[False] = False,
    ) -> dict[str, State]: ...

    @overload
    def forward(
        self,
        sides: Mapping[str, State],
        *,
        lengths: Mapping[str, Tensor] | None = None,
        mask: Tensor | None = None,
        trace: Literal[True],
    ) -> tuple[dict[str, State], dict[str, State]]: ...

    @uncompiled
    def forward(
        self,
        sides: Mapping[str, State],
        *,
        lengths: Mapping[str, Tensor] | None = None,
        mask: Tensor | None = None,
        trace: bool = False,
    ) -> dict[str, State] | tuple[dict[str, State], dict[str, State]]:
        """Runs the grid.

        Args:
            sides: for some dimensions, the vectors that enter along them, hidden and memory
                ``[batch, *sizes of the other dimensions, hidden]``. Missing sides and memories are
                zero. Sizes that are not given in :class:`Dim` are taken from here.
            lengths: for some dimensions, how many positions of each sample are real, ``[batch]``.
            mask: which blocks are real, ``[batch, *sizes]``. A masked block passes its incoming vectors
                on unchanged, so padding does not change the result of a sample.
            trace: also return the outgoing vectors of every block.

        Returns:
            For every dimension, the vectors that leave along it, in the shape of its incoming side.
            Passed to the next call as that side, they continue the grid. With ``trace``, a pair: these,
            and for every dimension the outgoing vectors of all blocks, ``[batch, *sizes, hidden]``.

        Raises:
            TypeError: if a side, a length or the mask is of the wrong type or dtype.
            ValueError: if a side is unknown or has the wrong shape, a size is unknown or zero, or a
                length is out of range.
            RuntimeError: inside a PyTorch transform that the engine does not support.
        """
        check_choice("engine", self.engine, get_args(Engine))
        like = self.weights_of(self.dims[0].name)[0]
        extent = check_sides(self.dims, sides, like)
        shape = GridShape(
            extent.sizes,
            tuple(dim.reverse for dim in self.dims),
            tuple(not dim.tied for dim in self.dims),
        )
        outgoing, blocks = ENGINES[self.engine](
            self.block,
            shape,
            self.phase_weights(),
            make_incoming(self.dims, extent, sides, like),
            mask=make_mask(self.dims, extent, lengths, mask, like.device),
            dropout=draw_dropout(
                self.block,
                shape,
                extent.batch,
                self.dropout if self.training else 0.0,
                like,
                tied=self.dropout_tied,
                between=self.dropout_between,
            ),
            zoneout=draw_zoneout(self.block, prod(extent.sizes), extent.batch, like.device)
            if self.training
            else None,
            trace=trace,
            recompute=self.recompute,
        )
        others = [
            [size for j, size in enumerate(extent.sizes) if j != i] for i in range(len(self.dims))
        ]
        out = self._named(outgoing, others)
        if blocks is None:
            return out
        return out, self._named(blocks, [extent.sizes] * len(self.dims))

    def _named(self, states: Sequence[State], sizes: Sequence[Sequence[int]]) -> dict[str, State]:
        return {
            dim.name: state.map(partial(from_faces, sizes=shape))
            for dim, state, shape in zip(self.dims, states, sizes, strict=True)
        }

    def __prepare_scriptable__(self) -> NoReturn:
        """Called by ``torch.jit.script``.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "GridLSTM does not support torch.jit.script: use torch.export, or torch.jit.trace with "
            'engine="reference"'
        )

    def explain(self) -> str:
        """Which engine and backend a call would use now, and why not the others.

        It depends on the engine, cells, dtype and device of the grid, on autocast, and on whether the
        kernel can be compiled and Triton is installed.

        >>> print(GridLSTM([Dim("depth", "peephole")], 4).explain())
        engine: wavefront
        backend: PyTorch
          compiled kernel is not used: it does not implement these cells: peephole
          Triton is not used: it runs on CUDA and ROCm, not on cpu
        """
        return explain(self.engine, self.block, self.weights_of(self.dims[0].name)[0])

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        shown = [repr(list(self.dims))]
        parameters = signature(GridLSTM).parameters
        if not self.bias:
            shown.append("bias=False")
        elif self.forget_bias != 1:
            shown.append(f"forget_bias={self.forget_bias}")
        for name in list(parameters)[list(parameters).index("output") :]:
            value = getattr(self, name, parameters[name].default)
            if name not in ("forget_bias", "init") and value != parameters[name].default:
                shown.append(f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}")
        return ", ".join(shown)
