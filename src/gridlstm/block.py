"""The block of a grid (section 3.1): its transforms, their order, and where their vectors lie.

A block reads ``H = [h_1; ...; h_N]`` (Eq. 5) and computes N new pairs of vectors (Eq. 6). Its
transforms run in one or two *phases*: first the ordinary dimensions, then the priority dimensions,
which read the new hidden vectors of the others (Eq. 7).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from gridlstm.cells import Cell, Output, make_cell
from gridlstm.description import describe
from gridlstm.dim import Dim
from gridlstm.state import State

__all__ = [
    "Block",
    "Dropout",
    "Kept",
    "PhaseWeights",
    "Transform",
    "Zoneout",
    "apply_block",
    "keep",
    "make_block",
]


class PhaseWeights(NamedTuple):
    """The weights of one phase, one set per combination of untied positions.

    ``weight`` is ``[sets, gates, H]``: the rows of all the phase's transforms, stacked.
    ``bias`` is ``[sets, gates]`` or ``None``; it is zero for cells that add their biases themselves.
    ``vectors`` is ``[sets, V]``, the learned vectors of all the phase's cells side by side, or ``None``
    without any.
    """

    weight: Tensor
    bias: Tensor | None
    vectors: Tensor | None = None


class Dropout(NamedTuple):
    """Dropout inside the blocks of a grid: the hidden values that each phase keeps, and their scale.

    Blocks are in lexicographic order of their positions.
    """

    kept: Bool[Tensor, "phases blocks batch H"]
    scale: Float[Tensor, "phases blocks H"]


class Kept(NamedTuple):
    """Zoneout in training mode: the old values that blocks pass on in place of new ones.

    ``None`` for vectors of which none is kept. Blocks are in lexicographic order of their positions.
    """

    hidden: Bool[Tensor, "blocks batch H"] | None
    memory: Bool[Tensor, "blocks batch M"] | None


class Zoneout(NamedTuple):
    """The probabilities with which a dimension keeps old values of its vectors."""

    hidden: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True)
class Transform:
    """One dimension's transform: its phase, its cell, and its columns.

    The slices are its columns in ``H``, in the memories (``None`` for a cell without one), and in the
    gates and learned vectors of its phase.
    """

    name: str
    phase: int
    hidden: slice
    memory: slice | None
    gates: slice
    vectors: slice
    cell: Cell
    zoneout: Zoneout

    @property
    def reads_hidden(self) -> bool:
        """Whether its new hidden vector depends on the old one directly, not only by way of ``H``."""
        return self.cell.reads_hidden or self.zoneout.hidden > 0

    def kept(self, kept: Kept | None) -> tuple[Tensor | float, Tensor | float]:
        """The share of old values in its hidden and memory vectors: of each in training, or expected.

        Args:
            kept: what some blocks keep, all dimensions side by side; ``None`` in evaluation mode.
        """
        if kept is None:
            return self.zoneout
        hidden, memory = kept
        return (
            0.0 if hidden is None or not self.zoneout.hidden else hidden[..., self.hidden],
            0.0 if memory is None or not self.zoneout.memory else memory[..., self.memory],
        )


@dataclass(frozen=True)
class Block:
    """What every block of a grid computes.

    Attributes:
        transforms: one per dimension.
        phases: the dimensions computed first, then (if any) those that read their results.
        hidden_size: the length of ``H``.
        memory_size: the length of all memories together.
        gate_sizes: for each phase, the number of preactivations.
        vector_sizes: for each phase, the length of all its learned vectors together.
        description: what it was made from, see :mod:`gridlstm.description`.
    """

    transforms: tuple[Transform, ...]
    phases: tuple[tuple[int, ...], ...]
    hidden_size: int
    memory_size: int
    gate_sizes: tuple[int, ...]
    vector_sizes: tuple[int, ...]
    description: str

    @property
    def has_zoneout(self) -> bool:
        """Whether some dimension keeps old values."""
        return any(any(transform.zoneout) for transform in self.transforms)

    def width(self, dimension: int) -> int:
        """The length of a dimension's vectors."""
        columns = self.transforms[dimension].hidden
        return int(columns.stop - columns.start)


def make_block(
    dims: Sequence[Dim],
    output: Output,
    *,
    layer_norm: Collection[str] = (),
    zoneout: Mapping[str, Zoneout] = MappingProxyType({}),
) -> Block:
    """Lays out the block of a grid with these dimensions, all of which have a hidden size.

    Args:
        dims: the dimensions.
        output: how LSTM cells read their memories.
        layer_norm: the names of the dimensions with layer normalisation.
        zoneout: by name, the probabilities of the dimensions with zoneout.
    """
    ordinary = tuple(i for i, dim in enumerate(dims) if not dim.priority)
    priority = tuple(i for i, dim in enumerate(dims) if dim.priority)
    phases = tuple(phase for phase in (ordinary, priority) if phase)
    gate_sizes, vector_sizes = [0] * len(phases), [0] * len(phases)
    transforms = []
    hidden = memory = 0
    for i, dim in enumerate(dims):
        d = dim.hidden_size
        assert d is not None, "filled in by check_dims"
        phase = next(p for p, members in enumerate(phases) if i in members)
        cell = make_cell(dim.transform, output, layer_norm=dim.name in layer_norm)
        rows, vectors = d * cell.rows, d * sum(cell.vectors.values())
        kept = zoneout.get(dim.name, Zoneout())
        transforms.append(
            Transform(
                name=dim.name,
                phase=phase,
                hidden=slice(hidden, hidden + d),
                memory=slice(memory, memory + d) if cell.has_memory else None,
                gates=slice(gate_sizes[phase], gate_sizes[phase] + rows),
                vectors=slice(vector_sizes[phase], vector_sizes[phase] + vectors),
                cell=cell,
                zoneout=kept if cell.has_memory else kept._replace(memory=0.0),
            )
        )
        hidden += d
        memory += d if cell.has_memory else 0
        gate_sizes[phase] += rows
        vector_sizes[phase] += vectors
    sizes = tuple(gate_sizes), tuple(vector_sizes)
    description = describe(dims, output, list(layer_norm), dict(zoneout))
    return Block(tuple(transforms), phases, hidden, memory, *sizes, description)


def apply_block(
    block: Block,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    factor: Float[Tensor, "phases batch H"] | None = None,
    kept: Kept | None = None,
) -> list[State]:
    """Computes one block: N incoming pairs ``[batch, d_i]`` to N outgoing pairs (Eq. 5 to 8).

    Args:
        block: the layout.
        weights: for each phase, the weights of this block, without the axis of sets.
        incoming: for each dimension, the incoming vectors.
        factor: dropout: each phase multiplies the hidden vectors it reads by this.
        kept: zoneout: the old values that this block keeps, without the axis of blocks. Default: the
            expectation, as in evaluation mode.
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
            joined = parameters.vectors
            vectors = transform.cell.split_vectors(
                None if joined is None else joined[transform.vectors]
            )
            rows = preactivation[..., transform.gates]
            new = transform.cell.forward(rows, incoming[i], vectors)
            outgoing[i] = keep(transform.kept(kept), new, incoming[i])
    return outgoing


def keep(shares: tuple[Tensor | float, Tensor | float], new: State, old: State) -> State:
    """Zoneout (Krueger et al., 2016): new vectors, in which a share of each value is the old one.

    Args:
        shares: the shares of the hidden and memory vectors, see :meth:`Transform.kept`.
        new: the vectors that a cell has computed.
        old: those that it started from.
    """
    hidden = _mix(shares[0], new.hidden, old.hidden)
    if new.memory is None or old.memory is None:
        return State(hidden)
    return State(hidden, _mix(shares[1], new.memory, old.memory))


def _mix(share: Tensor | float, new: Tensor, old: Tensor) -> Tensor:
    if isinstance(share, Tensor):
        return torch.where(share, old, new)
    return torch.lerp(new, old, share) if share else new
