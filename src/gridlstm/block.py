"""The block of a grid (section 3.1): its transforms, their order, and where their vectors lie.

A block reads ``H = [h_1; ...; h_N]`` (Eq. 5) and computes N new pairs of vectors (Eq. 6). Its
transforms run in one or two *phases*: first the ordinary dimensions, then the priority dimensions,
which read the new hidden vectors of the others (Eq. 7).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from gridlstm.cells import Cell, Output, make_cell
from gridlstm.description import describe
from gridlstm.dim import Dim
from gridlstm.state import State

__all__ = ["Block", "Dropout", "PhaseWeights", "Transform", "apply_block", "draw_dropout", "make_block"]


class PhaseWeights(NamedTuple):
    """The weights of one phase, one set per combination of untied positions.

    ``weight`` is ``[sets, gates, H]``: the rows of all the phase's transforms, stacked.
    ``bias`` is ``[sets, gates]`` or ``None``. ``peephole`` is ``[sets, P]``, the diagonal weights of
    all the phase's transforms, or ``None`` without any.
    """

    weight: Tensor
    bias: Tensor | None
    peephole: Tensor | None = None


class Dropout(NamedTuple):
    """Dropout inside the blocks of a grid: the hidden values that each phase keeps, and their scale.

    ``kept`` is ``[phases, blocks, batch, H]``, with blocks in lexicographic order of their positions.
    """

    kept: Bool[Tensor, "phases blocks batch H"]
    scale: float


@dataclass(frozen=True)
class Transform:
    """One dimension's transform: its phase, its cell, and its columns.

    The slices are its columns in ``H``, in the memories (``None`` for a cell without one), and in the
    gates and peepholes of its phase.
    """

    name: str
    phase: int
    hidden: slice
    memory: slice | None
    gates: slice
    peephole: slice
    cell: Cell


@dataclass(frozen=True)
class Block:
    """What every block of a grid computes.

    Attributes:
        transforms: one per dimension.
        phases: the dimensions computed first, then (if any) those that read their results.
        hidden_size: the length of ``H``.
        memory_size: the length of all memories together.
        gate_sizes: for each phase, the number of preactivations.
        peephole_sizes: for each phase, the number of diagonal weights.
        description: what it was made from, see :mod:`gridlstm.description`.
    """

    transforms: tuple[Transform, ...]
    phases: tuple[tuple[int, ...], ...]
    hidden_size: int
    memory_size: int
    gate_sizes: tuple[int, ...]
    peephole_sizes: tuple[int, ...]
    description: str

    def width(self, dimension: int) -> int:
        """The length of a dimension's vectors."""
        columns = self.transforms[dimension].hidden
        return int(columns.stop - columns.start)


def make_block(dims: Sequence[Dim], output: Output) -> Block:
    """Lays out the block of a grid with these dimensions, all of which have a hidden size."""
    ordinary = tuple(i for i, dim in enumerate(dims) if not dim.priority)
    priority = tuple(i for i, dim in enumerate(dims) if dim.priority)
    phases = tuple(phase for phase in (ordinary, priority) if phase)
    gate_sizes, peephole_sizes = [0] * len(phases), [0] * len(phases)
    transforms = []
    hidden = memory = 0
    for i, dim in enumerate(dims):
        d = dim.hidden_size
        assert d is not None, "filled in by check_dims"
        phase = next(p for p, members in enumerate(phases) if i in members)
        cell = make_cell(dim.transform, output)
        rows, peepholes = d * cell.rows, d * cell.peepholes
        transforms.append(
            Transform(
                name=dim.name,
                phase=phase,
                hidden=slice(hidden, hidden + d),
                memory=slice(memory, memory + d) if cell.has_memory else None,
                gates=slice(gate_sizes[phase], gate_sizes[phase] + rows),
                peephole=slice(peephole_sizes[phase], peephole_sizes[phase] + peepholes),
                cell=cell,
            )
        )
        hidden += d
        memory += d if cell.has_memory else 0
        gate_sizes[phase] += rows
        peephole_sizes[phase] += peepholes
    sizes = tuple(gate_sizes), tuple(peephole_sizes)
    return Block(tuple(transforms), phases, hidden, memory, *sizes, describe(dims, output))


def draw_dropout(
    block: Block, blocks: int, batch: int, probability: float, device: torch.device
) -> Dropout | None:
    """Draws the dropout of all blocks at once, so that every engine drops the same values."""
    if probability == 0:
        return None
    shape = (len(block.phases), blocks, batch, block.hidden_size)
    kept = torch.empty(shape, dtype=torch.bool, device=device).bernoulli_(1 - probability)
    return Dropout(kept, 1 / (1 - probability))


def apply_block(
    block: Block,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    factor: Float[Tensor, "phases batch H"] | None = None,
) -> list[State]:
    """Computes one block: N incoming pairs ``[batch, d_i]`` to N outgoing pairs (Eq. 5 to 8).

    Args:
        block: the layout.
        weights: for each phase, the weights of this block, without the axis of sets.
        incoming: for each dimension, the incoming vectors.
        factor: dropout: each phase multiplies the hidden vectors it reads by this.
    """
    outgoing = list(incoming)
    for p, (phase, parameters) in enumerate(zip(block.phases, weights, strict=True)):
        H = torch.cat([state.hidden for state in outgoing], -1)  # In a second phase: H' of Eq. 7.
        if factor is not None:
            H = H * factor[p]
        # Under autocast only the product is in low precision: states keep their dtype.
        preactivation = F.linear(H, parameters.weight, parameters.bias).to(H.dtype)
        outgoing = list(outgoing)
        for i in phase:
            transform = block.transforms[i]
            peephole = None
            if parameters.peephole is not None and transform.cell.peepholes:
                peephole = parameters.peephole[transform.peephole]
            rows = preactivation[..., transform.gates]
            outgoing[i] = transform.cell.forward(rows, incoming[i], peephole)
    return outgoing
