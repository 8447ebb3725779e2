"""The specification: one block after the other, with ordinary autograd.

Slow and plain. Every other engine equals this one, forward and every gradient. It is also the one
with second derivatives.
"""

from collections.abc import Sequence
from math import prod
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept, PhaseWeights, apply_block
from gridlstm.geometry import GridShape, face_number, position_number, set_number, travel
from gridlstm.state import State, where_real

__all__ = ["run"]


def run(
    block: Block,
    shape: GridShape,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    *,
    mask: Bool[Tensor, "blocks batch"] | None = None,
    dropout: Dropout | None = None,
    zoneout: Kept | None = None,
    trace: bool = False,
    recompute: bool = False,
) -> tuple[list[State], list[State] | None]:
    """Runs a grid.

    Args:
        block: what each block computes.
        shape: the sizes and directions of the grid.
        weights: one per phase.
        incoming: for each dimension, the vectors on its faces, ``[faces, batch, d]``.
        mask: which blocks are real, in lexicographic order of their positions; the others hand
            their incoming vectors on unchanged.
        dropout: what the blocks drop of the hidden vectors they read.
        zoneout: which old values the blocks keep. Default: the expectation, as in evaluation mode.
        trace: also return the outgoing vectors of every block.
        recompute: no effect here; autograd keeps what it needs.

    Returns:
        For each dimension the vectors that leave through its faces, ``[faces, batch, d]``. Then, for
        each dimension, those of all blocks, ``[blocks, batch, d]``, or ``None`` without ``trace``.
    """
    sizes = tuple(int(size) for size in shape.sizes)
    # travelling[i][face]: the vectors now on that face of dimension i. Each block replaces its own.
    travelling = [_unbind(side) for side in incoming]
    dtype = incoming[0].hidden.dtype
    blocks: list[list[State]] = [[] for _ in range(prod(sizes))]
    for position in travel(sizes, shape.reverse):
        number = position_number(position, sizes)
        faces = [face_number(position, sizes, i) for i in range(len(sizes))]
        arriving = [side[face] for side, face in zip(travelling, faces, strict=True)]
        real = None if mask is None else mask[number].unsqueeze(-1)
        weight_set = set_number(position, sizes, shape.untied)
        leaving = apply_block(
            block,
            [_at(phase, weight_set) for phase in weights],
            # A NaN that a masked block receives must not reach the gradient of the weights.
            arriving
            if real is None
            else [where_real(real, s, s.map(torch.zeros_like)) for s in arriving],
            None if dropout is None else _factor(dropout, number, dtype),
            None if zoneout is None else Kept(*(t if t is None else t[number] for t in zoneout)),
        )
        if real is not None:
            leaving = [where_real(real, new, old) for new, old in zip(leaving, arriving, strict=True)]
        for side, face, state in zip(travelling, faces, leaving, strict=True):
            side[face] = state
        blocks[number] = leaving
    # A zero that depends on every input: so inputs that do not reach a result have a gradient of zeros.
    zero = sum(t.flatten()[:0].sum() for pair in (*weights, *incoming) for t in pair if t is not None)
    outgoing = [_stack(side, zero) for side in travelling]
    if not trace:
        return outgoing, None
    by_dimension = zip(*blocks, strict=True)
    return outgoing, [_stack(states, zero) for states in by_dimension]


def _at(weights: PhaseWeights, weight_set: int) -> PhaseWeights:
    """One set of the weights of a phase."""
    vectors = (None if t is None else t[weight_set] for t in weights[1:])
    return PhaseWeights(weights.weight[weight_set], *vectors)


def _factor(dropout: Dropout, number: int, dtype: torch.dtype) -> Tensor:
    """What a block multiplies the hidden vectors by that it reads, ``[phases, batch, H]``."""
    return dropout.kept[:, number].to(dtype) * dropout.scale[:, number].unsqueeze(1)


def _unbind(side: State) -> list[State]:
    if side.memory is None:
        return [State(h) for h in side.hidden.unbind()]
    return [State(h, m) for h, m in zip(side.hidden.unbind(), side.memory.unbind(), strict=True)]


def _stack(states: Sequence[State], zero: Tensor | Literal[0]) -> State:
    memories = [state.memory for state in states if state.memory is not None]
    hidden = torch.stack([state.hidden for state in states])
    return State(hidden, torch.stack(memories) if memories else None).map(lambda t: t + zero)
