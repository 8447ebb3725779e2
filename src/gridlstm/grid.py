"""The Grid LSTM as a module: parameters, checks of arguments, and the call of an engine."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Literal, NoReturn, get_args, overload

import torch
from torch import Tensor, nn

from gridlstm.block import PhaseWeights, draw_dropout, make_block
from gridlstm.cells import Output
from gridlstm.checks import check_choice, check_dropout, check_forget_bias
from gridlstm.dim import Dim, check_dims
from gridlstm.engines import ENGINES, Engine, explain
from gridlstm.engines.recording import uncompiled
from gridlstm.fixed import FixedArguments
from gridlstm.geometry import GridShape
from gridlstm.grid_options import Init
from gridlstm.sides import check_sides, from_faces, make_incoming, make_mask
from gridlstm.state import State
from gridlstm.transfer import check_transform

__all__ = ["GridLSTM"]


class GridLSTM(FixedArguments):
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
        dropout: the probability with which a block drops each value of the hidden vectors it reads
            (section 4.4), in training mode. The vectors that it passes on are not dropped.
        engine: ``"wavefront"`` is fast; ``"reference"`` is the specification and supports second and
            forward-mode derivatives. Both give the same results.
        recompute: keep only the vectors between blocks for the backward pass, which recomputes the
            gates. Takes less memory and more time. No effect with the reference engine.
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

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if dimensions are missing, repeated or share incompatible weights, or an argument
            is out of range.

    Notes:
        - Equation 1 squashes the product of output gate and memory; nearly every other LSTM squashes
          the memory first. ``output`` chooses.
        - With several priority dimensions, all of them read the new vectors of the ordinary dimensions,
          and none reads those of another priority dimension.
        - Each phase of a block (ordinary, then priority dimensions) draws its own dropout.
        - Every parameter and side that a call uses has a gradient; it is zero if the loss does not
          depend on it.
        - Weights along an untied reversed dimension belong to positions, not to the order of travel.
        - ``dropout``, ``engine`` and ``recompute`` can be changed later, the other arguments cannot.

    >>> grid = GridLSTM(["time", Dim("depth", size=3)], hidden_size=8)
    >>> x = torch.randn(2, 5, 8)
    >>> out = grid({"depth": State(x, x)})
    >>> out["depth"].hidden.shape, out["time"].memory.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 3, 8]))
    """

    fixed = frozenset(("dims", "hidden_size", "bias", "output", "forget_bias", "init", "block"))

    def __init__(
        self,
        dims: Sequence[Dim | str],
        hidden_size: int | None = None,
        *,
        bias: bool = True,
        output: Output = "paper",
        forget_bias: float | None = None,
        init: Init = nn.init.xavier_uniform_,
        dropout: float = 0.0,
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
        self.dropout = dropout
        self.engine = engine
        self.recompute = recompute
        self.block = make_block(self.dims, output)
        untied = [dim.size or 0 for dim in self.dims if not dim.tied]
        for dim, transform in zip(self.dims, self.block.transforms, strict=True):
            if dim.shares_weights_with is not None:
                continue
            d, cell = dim.hidden_size or 0, transform.cell
            shapes: dict[str, tuple[int, ...]] = {"weight": (d * cell.gates, self.block.hidden_size)}
            if bias:
                shapes["bias"] = (d * cell.rows,)
            if cell.peepholes:
                shapes["peephole"] = (d * cell.peepholes,)
            for kind, shape in shapes.items():
                values = torch.empty(*untied, *shape, device=device, dtype=dtype)
                self.register_parameter(f"{kind}_{dim.name}", nn.Parameter(values))
        self.reset_parameters()
        for dim in self.dims:
            check_transform(dim, self.weights_of(dim.name)[0])

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights with ``init``, and resets biases and peepholes."""
        for dim, transform in zip(self.dims, self.block.transforms, strict=True):
            if dim.shares_weights_with is not None:
                continue
            weight, bias = self.weights_of(dim.name)
            for matrix in weight.view(-1, dim.hidden_size or 0, weight.shape[-1]):
                self.init(matrix)
            if bias is not None:
                transform.cell.reset_bias_(bias, self.forget_bias or 0.0)
            if transform.cell.peepholes:
                self.get_parameter(f"peephole_{dim.name}").zero_()

    def weights_of(self, name: str) -> tuple[nn.Parameter, nn.Parameter | None]:
        """The weight and bias that a dimension uses, its own or shared ones."""
        owner = self._owner(name)
        return getattr(self, f"weight_{owner}"), getattr(self, f"bias_{owner}", None)

    def _owner(self, name: str) -> str:
        """The dimension whose weights a dimension uses: itself, or the one it shares them with."""
        for dim in self.dims:
            if dim.name == name:
                return dim.shares_weights_with or name
        names = ", ".join(dim.name for dim in self.dims)
        raise ValueError(f"name: expected one of {names}, got {name!r}")

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
        p = self.dropout if self.training else 0.0
        outgoing, blocks = ENGINES[self.engine](
            self.block,
            shape,
            self.phase_weights(),
            make_incoming(self.dims, extent, sides, like),
            mask=make_mask(self.dims, extent, lengths, mask, like.device),
            dropout=draw_dropout(self.block, prod(extent.sizes), extent.batch, p, like.device),
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

    def phase_weights(self) -> list[PhaseWeights]:
        """The weights of each phase: the rows of its dimensions, stacked."""
        return [self._weights(phase) for phase in self.block.phases]

    def _weights(self, phase: Sequence[int]) -> PhaseWeights:
        parts: dict[str, list[Tensor]] = {"weight": [], "bias": [], "peephole": []}
        for i in phase:
            owner, transform = self._owner(self.dims[i].name), self.block.transforms[i]
            for kind, stacked in parts.items():
                part: Tensor | None = getattr(self, f"{kind}_{owner}", None)
                if part is not None:
                    if kind == "weight":
                        part = transform.cell.expand(part, transform.hidden)
                    stacked.append(part)
        weight = torch.cat(parts["weight"], -2)
        vectors = (torch.cat(v, -1) if v else None for v in (parts["bias"], parts["peephole"]))
        bias, peephole = (None if v is None else v.view(-1, v.shape[-1]) for v in vectors)
        return PhaseWeights(weight.view(-1, *weight.shape[-2:]), bias, peephole)

    def explain(self) -> str:
        """Which engine and backend a call would use now, and why not the others.

        It depends on the engine, cells, dtype and device of the grid, on autocast, and on whether the
        kernel can be compiled.

        >>> print(GridLSTM([Dim("depth", "peephole")], 4).explain())
        engine: wavefront
        backend: PyTorch
          compiled kernel is not used: it does not implement these cells: peephole
        """
        return explain(self.engine, self.block, self.weights_of(self.dims[0].name)[0])

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        shown = [repr(list(self.dims))]
        defaults = {"output": "paper", "dropout": 0.0, "engine": "wavefront", "recompute": False}
        if not self.bias:
            shown.append("bias=False")
        elif self.forget_bias != 1:
            shown.append(f"forget_bias={self.forget_bias}")
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown.append(f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}")
        return ", ".join(shown)
