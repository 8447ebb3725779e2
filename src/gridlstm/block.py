"""The block of a grid (section 3.1): its transforms, their order, and where their vectors lie.

A block reads ``H = [h_1; ...; h_N]`` (Eq. 5) and gives N new pairs of vectors (Eq. 6). Its transforms
run in one or two *phases*: first the ordinary dimensions, then the priority dimensions, which read
the new hidden vectors of the others (Eq. 7).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from gridlstm.cell import GATES, Activation, Output, lstm, make_activation
from gridlstm.dim import Dim
from gridlstm.state import State

__all__ = ["Block", "Dropout", "Transform", "Weights", "apply_block", "draw_dropout", "make_block"]


class Weights(NamedTuple):
    """The weights of one phase, one set for each combination of untied positions.

    ``weight`` is ``[sets, gates, H]``: the rows of all the phase's transforms, one below the other.
    ``bias`` is ``[sets, gates]`` or ``None``.
    """

    weight: Tensor
    bias: Tensor | None


class Dropout(NamedTuple):
    """Dropout inside the blocks of a grid: which hidden values a phase reads, and their scale.

    ``kept`` is ``[phases, blocks, batch, H]``, blocks in lexicographic order of their positions.
    """

    kept: Bool[Tensor, "phases blocks batch H"]
    scale: float


@dataclass(frozen=True)
class Transform:
    """One dimension's transform: its phase, its columns in ``H``, in the memories and in the gates.

    ``activation`` and ``memory`` tell the two kinds apart: an LSTM has a memory and no activation.
    """

    name: str
    phase: int
    hidden: slice
    memory: slice | None
    gates: slice
    activation: Activation | None


@dataclass(frozen=True)
class Block:
    """What every block of a grid computes.

    Attributes:
        transforms: one a dimension.
        phases: the dimensions computed first, then (if any) those that read the results.
        hidden_size: the length of ``H``.
        memory_size: the length of all memories together.
        gate_sizes: for each phase, the number of preactivations.
        output: how an LSTM reads its memory.
    """

    transforms: tuple[Transform, ...]
    phases: tuple[tuple[int, ...], ...]
    hidden_size: int
    memory_size: int
    gate_sizes: tuple[int, ...]
    output: Output

    def width(self, dimension: int) -> int:
        """The length of a dimension's vectors."""
        columns = self.transforms[dimension].hidden
        return int(columns.stop - columns.start)


def make_block(dims: Sequence[Dim], output: Output) -> Block:
    """Lays out the block of a grid with these dimensions, all of which have a hidden size."""
    ordinary = tuple(i for i, dim in enumerate(dims) if not dim.priority)
    priority = tuple(i for i, dim in enumerate(dims) if dim.priority)
    phases = tuple(phase for phase in (ordinary, priority) if phase)
    gate_sizes = [0] * len(phases)
    transforms = []
    hidden = memory = 0
    for i, dim in enumerate(dims):
        d = dim.hidden_size
        assert d is not None, "filled in by check_dims"
        phase = next(p for p, members in enumerate(phases) if i in members)
        rows = d * len(GATES) if dim.has_memory else d
        transforms.append(
            Transform(
                name=dim.name,
                phase=phase,
                hidden=slice(hidden, hidden + d),
                memory=slice(memory, memory + d) if dim.has_memory else None,
                gates=slice(gate_sizes[phase], gate_sizes[phase] + rows),
                activation=None if dim.has_memory else make_activation(dim.transform),
            )
        )
        hidden += d
        memory += d if dim.has_memory else 0
        gate_sizes[phase] += rows
    return Block(tuple(transforms), phases, hidden, memory, tuple(gate_sizes), output)


def draw_dropout(
    block: Block, blocks: int, batch: int, probability: float, device: torch.device
) -> Dropout | None:
    """What the blocks of a grid drop: drawn at once, so that every engine drops the same."""
    if probability == 0:
        return None
    shape = (len(block.phases), blocks, batch, block.hidden_size)
    kept = torch.empty(shape, dtype=torch.bool, device=device).bernoulli_(1 - probability)
    return Dropout(kept, 1 / (1 - probability))


def apply_block(
    block: Block,
    weights: Sequence[tuple[Tensor, Tensor | None]],
    incoming: Sequence[State],
    factor: Float[Tensor, "phases batch H"] | None = None,
) -> list[State]:
    """One block: N incoming pairs ``[batch, d_i]`` to N outgoing pairs (Eq. 5 to 8).

    Args:
        block: the layout.
        weights: for each phase, the weight ``[gates, H]`` and bias ``[gates]`` of this block.
        incoming: for each dimension, the incoming vectors.
        factor: what the hidden vectors are multiplied by when a phase reads them, for dropout.
    """
    outgoing = list(incoming)
    for p, (phase, (weight, bias)) in enumerate(zip(block.phases, weights, strict=True)):
        H = torch.cat([state.hidden for state in outgoing], -1)  # In a second phase: H' of Eq. 7.
        if factor is not None:
            H = H * factor[p]
        # Under autocast only the product is in low precision: states keep their type.
        preactivation = F.linear(H, weight, bias).to(H.dtype)
        new = {i: _transform(block, i, preactivation, incoming[i].memory) for i in phase}
        outgoing = [new.get(i, state) for i, state in enumerate(outgoing)]
    return outgoing


def _transform(block: Block, i: int, preactivation: Tensor, m: Tensor | None) -> State:
    transform = block.transforms[i]
    rows = preactivation[..., transform.gates]
    if transform.activation is not None:
        return State(transform.activation.forward(rows))
    assert m is not None, "an LSTM dimension always has a memory here"
    return State(*lstm(rows, m, block.output))
