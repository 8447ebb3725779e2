"""A grid as nested scans, one per dimension, so that a recorded graph fits any lengths.

The engines loop over positions in Python: a graph that records them is as long as the grid, and fits
only its sizes. Here each dimension is one ``scan`` whose body is the grid of the remaining dimensions,
and the innermost body is :func:`~gridlstm.block.apply_block`, the specification. So every cell can be
recorded, and the graph has one block, whatever the sizes.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from gridlstm.block import Block, PhaseWeights, apply_block
from gridlstm.dim import Dim
from gridlstm.errors import ExpectedError
from gridlstm.grid import GridLSTM
from gridlstm.state import State, where_real

__all__ = ["ExportError", "use_scan"]

Tree = TypeVar("Tree")


class ExportError(ExpectedError):
    """A module cannot be exported."""


def use_scan(module: nn.Module) -> nn.Module:
    """A copy of a module, on the CPU and in evaluation mode, whose grids are nested scans.

    It is meant for ``torch.export.export`` with ``strict=False``; its results are those of the module.

    Raises:
        ExportError: if a grid in it has a ``forward`` of its own.

    >>> from gridlstm import SequenceGridLSTM
    >>> x, time = torch.randn(4, 2, 3), torch.export.Dim("time")
    >>> program = torch.export.export(
    ...     use_scan(SequenceGridLSTM(3, 8, 2)), (x,), dynamic_shapes=({0: time},), strict=False
    ... )
    >>> program.module()(torch.randn(9, 2, 3))[0].shape
    torch.Size([9, 2, 8])
    """
    copied = deepcopy(module).cpu().eval().requires_grad_(False)
    for grid in copied.modules():
        if isinstance(grid, GridLSTM):
            if type(grid).forward is not GridLSTM.forward:
                kind = type(grid).__name__
                raise ExportError(f"{kind} cannot be exported: its forward is not that of GridLSTM")
            setattr(grid, "forward", partial(_forward, grid))  # noqa: B010 # Mypy knows it as a method.
    return copied


def _forward(
    grid: GridLSTM,
    sides: Mapping[str, State],
    *,
    lengths: Mapping[str, Tensor] | None = None,
    mask: Tensor | None = None,
    trace: bool = False,
) -> dict[str, State]:
    """In place of :meth:`GridLSTM.forward`, which has checked such arguments before."""
    if trace:
        raise ExportError("a call of GridLSTM with trace=True cannot be exported")
    sizes: dict[str, Any] = {dim.name: dim.size for dim in grid.dims}
    for name, (hidden, _) in sides.items():
        others = [dim.name for dim in grid.dims if dim.name != name]
        # A size that is known stays a number, so that the scan over it has a known length, too.
        found = dict(zip(others, hidden.shape[1:-1], strict=True))
        sizes = {key: found.get(key) if size is None else size for key, size in sizes.items()}
        batch = hidden.shape[0]
    like = grid.weights_of(grid.dims[0].name)[0]

    def enter(dim: Dim) -> State:
        others = [sizes[other.name] for other in grid.dims if other is not dim]
        shape = (*others, batch, dim.hidden_size or 0)
        hidden, memory = (  # Each with zeros of its own, because a scan does not allow aliases.
            like.new_zeros(shape) if t is None else t.movedim(0, -2).contiguous()
            for t in sides.get(dim.name, (None, None))
        )
        return State(hidden, memory if dim.has_memory else None)

    untied = [dim.size or 0 for dim in grid.dims if not dim.tied]
    weights = [_map(lambda t: t.reshape(*untied, *t.shape[1:]), w) for w in grid.phase_weights()]
    real = _real([sizes[dim.name] for dim in grid.dims], grid.dims, lengths, mask)
    scans = _Scans(grid.block, grid.dims, [sizes[dim.name] for dim in grid.dims])
    leaving = scans.run(0, [enter(dim) for dim in grid.dims], weights, real)
    named = zip(grid.dims, leaving, strict=True)
    return {dim.name: state.map(lambda t: t.movedim(-2, 0)) for dim, state in named}


def _real(
    sizes: Sequence[int],
    dims: Sequence[Dim],
    lengths: Mapping[str, Tensor] | None,
    mask: Tensor | None,
) -> Tensor | None:
    """Which blocks are real, ``[*sizes, batch]``; ``None`` if all are."""
    real = None if mask is None else mask.movedim(0, -1)
    for i, dim in enumerate(dims):
        if lengths and dim.name in lengths:
            length = lengths[dim.name]
            inside = torch.arange(sizes[i]).unsqueeze(-1) < length
            inside = inside.view(*(size if j == i else 1 for j, size in enumerate(sizes)), -1)
            real = inside.expand(*sizes, -1) if real is None else real & inside
    return real


class _Along(NamedTuple):
    """What has one part per position along a dimension: everything but its own vectors."""

    others: list[State]
    weights: list[PhaseWeights] | None
    real: Tensor | None


class _Scans(NamedTuple):
    """The nested scans of a grid.

    Attributes:
        block: what each block computes.
        dims: the dimensions, from the outermost scan to the innermost.
        sizes: the number of blocks along each.
    """

    block: Block
    dims: Sequence[Dim]
    sizes: Sequence[int]

    def run(
        self,
        level: int,
        states: Sequence[State],
        weights: list[PhaseWeights],
        real: Tensor | None,
    ) -> list[State]:
        """Runs the grid of the dimensions from ``level`` on.

        Args:
            level: the first of the dimensions.
            states: for each dimension of the whole grid its incoming vectors, with one axis for each of
                the dimensions from ``level`` on except its own, ``[*others, batch, d]``.
            weights: one per phase, with an axis for each of the untied dimensions from ``level`` on.
            real: which blocks are real, ``[*sizes, batch]``.

        Returns:
            The outgoing vectors, in the shapes of ``states``.
        """
        if level == len(self.dims):
            leaving = apply_block(self.block, weights, states)
            if real is None:
                return leaving
            mask = real.unsqueeze(-1)
            return [where_real(mask, new, old) for new, old in zip(leaving, states, strict=True)]
        dim, size = self.dims[level], self.sizes[level]
        others = [state for i, state in enumerate(states) if i != level]
        along = _Along(others, None if dim.tied else weights, real)

        def step(carried: State, at: _Along, shared: list[PhaseWeights]) -> tuple[State, list[State]]:
            arriving = [*at.others[:level], carried, *at.others[level:]]
            leaving = self.run(level + 1, arriving, at.weights or shared, at.real)
            return leaving[level], [state for i, state in enumerate(leaving) if i != level]

        if isinstance(size, int) and size == 1:
            new, passed = step(states[level], _map(lambda t: t[0], along), weights)
            passed = _map(lambda t: t.unsqueeze(0), passed)
        else:
            if dim.reverse:
                along = _map(lambda t: t.flip(0), along)
            new, passed = _scan(step, states[level], along, weights, size)
            if dim.reverse:
                passed = _map(lambda t: t.flip(0), passed)
        return [*passed[:level], new, *passed[level:]]


def _scan(
    step: Any, carried: State, along: _Along, weights: list[PhaseWeights], size: int
) -> tuple[State, list[State]]:
    """``torch.scan`` with the weights as explicit arguments, so that it needs no compiler."""
    from torch._higher_order_ops.scan import scan_op  # Private: only an export should depend on it.

    first, sliced = _tensors(carried), _tensors(along)
    if not sliced:  # In one tied dimension nothing but the number of steps is left.
        sliced = [carried.hidden.new_zeros(size)]
    shared = _tensors(weights) if along.weights is None else []

    def body(*tensors: Tensor) -> list[Tensor]:
        left = iter(tensors)
        carried_now = _fill(carried, left)
        at = _fill(along, left)
        if not _tensors(along):
            next(left)
        result = step(carried_now, at, _fill(weights, left) if shared else weights)
        # A scan does not allow results that are views of its arguments.
        return [t.clone(memory_format=torch.contiguous_format) for t in _tensors(result)]

    results = iter(scan_op(body, first, sliced, tuple(shared)))
    return _fill(carried, results), _fill(along.others, results)


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if leaf is not None]


def _fill(tree: Tree, tensors: Iterator[Tensor]) -> Tree:
    """The same structure with other tensors."""
    return _map(lambda _: next(tensors), tree)


def _map(function: Any, tree: Tree) -> Tree:
    mapped: Tree = tree_map(lambda leaf: None if leaf is None else function(leaf), tree)
    return mapped
