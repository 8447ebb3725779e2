"""The operators ``gridlstm::wavefront`` and ``gridlstm::wavefront_backward``.

Their arguments say all that they compute, so a saved graph can be loaded by any process that has
imported the package. What the backward needs is a result of the forward: neither operator changes its
arguments or remembers anything.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept, PhaseWeights, Zoneout, make_block
from gridlstm.description import read_description
from gridlstm.engines.buffers import Span, kept_tensors, make_buffers, restore_buffers
from gridlstm.engines.moves import make_order
from gridlstm.engines.passes import (
    backward_pass,
    forward_pass,
    grouped,
    make_call,
    new_state,
    present,
    spread,
)
from gridlstm.engines.pieces import boundary_faces, choose_cut, cut_dimension
from gridlstm.engines.recording import inside_operator
from gridlstm.engines.wavefront import SECOND_DERIVATIVES
from gridlstm.engines.workspace import Workspace, pitch
from gridlstm.geometry import GridShape
from gridlstm.state import State

__all__ = [
    "OPTIONS",
    "differentiate",
    "refuse",
    "run_backward",
    "run_forward",
    "save",
]

OPTIONS = 11
"""The number of arguments of :func:`run_forward` before its ``tensors``."""

_SPANS: dict[str, tuple[Span, Span]] = {
    "nothing": ("two_steps", "one_step"),
    "boundary": ("two_steps", "one_step"),
    "gates": ("all_steps", "all_steps"),
}
"""The spans of states and gates, by what is kept for the backward."""


@torch.library.custom_op("gridlstm::wavefront", mutates_args=())
def run_forward(
    description: str,
    sizes: Sequence[int],
    weights_given: Sequence[bool],
    sides_given: Sequence[bool],
    trace: bool,
    keep: str,
    mask: Tensor | None,
    kept: Tensor | None,
    scale: Tensor | None,
    old_hidden: Tensor | None,
    old_memory: Tensor | None,
    tensors: Sequence[Tensor],
) -> list[Tensor]:
    """Runs a grid.

    Args:
        description: the dimensions, see :mod:`gridlstm.description`.
        sizes: blocks along each dimension.
        weights_given: for each field of the :class:`PhaseWeights` of each phase, whether ``tensors``
            has it.
        sides_given: the same for the :class:`State` of each incoming side.
        trace: whether the outgoing vectors of all blocks are results as well.
        keep: what is kept for the backward: ``"nothing"``, ``"boundary"`` (the vectors between a few
            pieces of the grid) or ``"gates"``.
        mask: which blocks are real, ``[blocks, batch]``, in lexicographic order.
        kept: the dropout, ``[phases, blocks, batch, H]``, in lexicographic order.
        scale: that of the dropout, ``[phases, blocks, H]``.
        old_hidden: the zoneout of hidden vectors, ``[blocks, batch, H]``.
        old_memory: that of memories, ``[blocks, batch, M]``.
        tensors: the weights and the incoming sides, ``[faces, batch, d]``.

    Returns:
        The outgoing sides; with ``trace``, the vectors of all blocks, ``[blocks, batch, d]``; what is
        kept, ``[blocks, batch, columns]`` in the order of the plan.
    """
    block, shape = _read(description, sizes)
    weights, incoming = _split(weights_given, sides_given, tensors)
    like = incoming[0].hidden
    with inside_operator(like):
        plan = shape.plan(choose_cut(shape, weights, like, recompute=keep == "boundary"))
        call = make_call(block, plan, weights, like, mask, *_drawn(kept, scale, old_hidden, old_memory))
        workspace = Workspace(reuse=keep == "nothing")
        states, gates = _SPANS[keep]
        buffers = make_buffers(call, like, workspace, states=states, gates=gates)
        results = present(forward_pass(call, weights, incoming, buffers, trace))
        if trace:
            half, (_, back) = len(results) // 2, make_order(call.plan, like.device)
            results[half:] = [t[back] for t in results[half:]]
    return results if keep == "nothing" else [*results, *kept_tensors(buffers)]


@run_forward.register_fake
def _(
    description: str,
    sizes: Sequence[int],
    weights_given: Sequence[bool],
    sides_given: Sequence[bool],
    trace: bool,
    keep: str,
    mask: Tensor | None,
    kept: Tensor | None,
    scale: Tensor | None,
    old_hidden: Tensor | None,
    old_memory: Tensor | None,
    tensors: Sequence[Tensor],
) -> list[Tensor]:
    block, shape = _read(description, sizes)
    weights, incoming = _split(weights_given, sides_given, tensors)
    like, product, blocks = incoming[0].hidden, weights[0].weight.dtype, prod(sizes)
    states = [new_state(side, side.hidden.shape[0]) for side in incoming]
    if trace:
        states += [new_state(side, blocks) for side in incoming]
    if keep == "boundary":
        i = cut_dimension(shape, weights, like, recompute=True)
        assert i is not None, "a grid whose gates are recomputed is cut"
        states.append(new_state(incoming[i], boundary_faces(shape, i)))
    columns: list[tuple[int, torch.dtype]] = []
    if keep == "gates":
        columns += [(size, like.dtype) for size in (block.hidden_size, block.memory_size)]
        plain = kept is None and product == like.dtype
        columns += [(block.hidden_size, product)] * (len(block.phases) - plain)
        columns += [(size, product) for size in block.gate_sizes]
    workspace, batch = Workspace(reuse=False), like.shape[1]
    return [*present(states), *(workspace.take((blocks, batch, n), like, d) for n, d in columns)]


@torch.library.custom_op("gridlstm::wavefront_backward", mutates_args=())
def run_backward(
    description: str,
    sizes: Sequence[int],
    weights_given: Sequence[bool],
    sides_given: Sequence[bool],
    keep: str,
    mask: Tensor | None,
    kept: Tensor | None,
    scale: Tensor | None,
    old_hidden: Tensor | None,
    old_memory: Tensor | None,
    tensors: Sequence[Tensor],
    saved: Sequence[Tensor],
    grads: Sequence[Tensor | None],
) -> list[Tensor]:
    """The backward of :func:`run_forward`: the gradients of its ``tensors``.

    Args:
        description: as there, like the other arguments of the same name.
        sizes: the same.
        weights_given: the same.
        sides_given: the same.
        keep: the same.
        mask: the same.
        kept: the same.
        scale: the same.
        old_hidden: the same.
        old_memory: the same.
        tensors: the same.
        saved: what it kept.
        grads: the gradients of its other results.
    """
    block, shape = _read(description, sizes)
    weights, incoming = _split(weights_given, sides_given, tensors)
    like, count, recompute = saved[0], sum(sides_given), keep == "boundary"
    with inside_operator(like):
        plan = shape.plan(choose_cut(shape, weights, like, recompute=recompute))
        call = make_call(block, plan, weights, like, mask, *_drawn(kept, scale, old_hidden, old_memory))
        upstream = grouped(State, spread(sides_given, grads[:count]))
        if len(grads) > count:
            order, _ = make_order(call.plan, like.device)
            traced = [None if t is None else t[order] for t in grads[count:]]
            upstream += grouped(State, spread(sides_given, traced))
        workspace = Workspace()
        buffers = restore_buffers(call, saved, workspace, recompute=recompute, copy=True)
        gradients = backward_pass(call, weights, incoming, buffers, upstream)
        del workspace
    return present(gradients)


@run_backward.register_fake
def _(
    description: str,
    sizes: Sequence[int],
    weights_given: Sequence[bool],
    sides_given: Sequence[bool],
    keep: str,
    mask: Tensor | None,
    kept: Tensor | None,
    scale: Tensor | None,
    old_hidden: Tensor | None,
    old_memory: Tensor | None,
    tensors: Sequence[Tensor],
    saved: Sequence[Tensor],
    grads: Sequence[Tensor | None],
) -> list[Tensor]:
    block, _ = _read(description, sizes)
    weights, _ = _split(weights_given, sides_given, tensors)
    results = []
    for phase in weights:
        weight = phase.weight
        padded = weight.new_empty(*weight.shape[:-1], pitch(weight.shape[-1]))
        rest = [
            torch.empty_like(t, memory_format=torch.contiguous_format) for t in present([phase])[1:]
        ]
        results += [padded[..., : weight.shape[-1]], *rest]
    batch = saved[0].shape[1]
    for i, transform in enumerate(block.transforms):
        faces = prod(size for j, size in enumerate(sizes) if j != i)
        vectors = 1 if transform.memory is None else 2
        results += [saved[0].new_empty(faces, batch, block.width(i)) for _ in range(vectors)]
    return results


def save(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
    """Saves for the backward; ``inputs`` are the arguments of :func:`run_forward`."""
    *which, trace, keep, mask, kept, scale, old_hidden, old_memory, tensors = inputs
    states = sum(which[-1]) * (2 if trace else 1)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(mask, kept, scale, old_hidden, old_memory, *tensors, *output[states:])
    ctx.arguments, ctx.counts = (*which, keep), (len(tensors), states)


def differentiate(ctx: Any, grads: Sequence[Tensor | None], backward: Any) -> Any:
    """The gradients of ``tensors``, by :func:`run_backward` or something that calls it."""
    count, states = ctx.counts
    every = ctx.saved_tensors  # Once: a hook may not be able to restore them again.
    drawn, saved = every[:5], every[5:]
    lists = list(saved[:count]), list(saved[count:]), list(grads[:states])
    return backward(*ctx.arguments, *drawn, *lists)


def refuse(ctx: Any, *grads: Any) -> Any:
    """The backward of :func:`run_backward`.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(SECOND_DERIVATIVES)


run_forward.register_autograd(
    lambda ctx, grads: (*[None] * OPTIONS, differentiate(ctx, grads, run_backward)), setup_context=save
)
run_backward.register_autograd(refuse)


@lru_cache(maxsize=256)
def _read_block(description: str) -> tuple[Block, tuple[bool, ...], tuple[bool, ...]]:
    dims, output, layer_norm, pairs = read_description(description)
    reverse, untied = tuple(dim.reverse for dim in dims), tuple(not dim.tied for dim in dims)
    zoneout = {name: Zoneout(*pair) for name, pair in pairs.items()}
    return make_block(dims, output, layer_norm=layer_norm, zoneout=zoneout), reverse, untied


def _read(description: str, sizes: Sequence[int]) -> tuple[Block, GridShape]:
    block, reverse, untied = _read_block(description)
    return block, GridShape(tuple(sizes), reverse, untied)


def _split(
    weights_given: Sequence[bool], sides_given: Sequence[bool], tensors: Sequence[Tensor]
) -> tuple[list[PhaseWeights], list[State]]:
    """The weights and the incoming sides."""
    flat, count = spread([*weights_given, *sides_given], tensors), len(weights_given)
    return grouped(PhaseWeights, flat[:count]), grouped(State, flat[count:])


def _drawn(
    kept: Tensor | None,
    scale: Tensor | None,
    old_hidden: Tensor | None,
    old_memory: Tensor | None,
) -> tuple[Dropout | None, Kept | None]:
    zoneout = None if old_hidden is None and old_memory is None else Kept(old_hidden, old_memory)
    return None if kept is None or scale is None else Dropout(kept, scale), zoneout
