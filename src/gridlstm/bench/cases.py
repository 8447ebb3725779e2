"""The cases that are timed: the shapes of the paper's experiments, and a few others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.models.grid_stack import GridStack
from gridlstm.state import State

__all__ = ["CASES", "Case", "Sides"]

Sides = list[dict[str, State]]
"""The sides that are given to each grid of a stack, or that leave it."""


@dataclass(frozen=True)
class Case:
    """A grid or a stack of grids, and the sizes of a call.

    Attributes:
        name: its name on the command line.
        dims: the dimensions; grids are stacked along the last one.
        sizes: blocks along each dimension.
        batch: number of samples.
        hidden: the hidden size.
        layers: grids on top of each other; every second one runs backwards along the first dimension.
        masked: dimensions along which samples have different lengths.
        train: whether to run forward and backward, or forward alone without gradients.
        enters: dimensions along which data enters the first grid and the result leaves the last one;
            empty for the last dimension.
        carried: dimensions along which every grid continues an earlier call.
    """

    name: str
    dims: tuple[Dim, ...]
    sizes: tuple[int, ...]
    batch: int
    hidden: int
    layers: int = 1
    masked: tuple[str, ...] = ()
    train: bool = True
    enters: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    def build(self, *, seed: int = 0, recompute: bool = False, device: str | None = None) -> GridStack:
        """The network of the case, with random weights from ``seed``."""
        torch.manual_seed(seed)
        grids = []
        for layer in range(self.layers):
            first = replace(self.dims[0], reverse=layer % 2 == 1)
            dims = [
                replace(dim, size=dim.size or size)
                for dim, size in zip((first, *self.dims[1:]), self.sizes, strict=True)
            ]
            grids.append(GridLSTM(dims, self.hidden, recompute=recompute, device=device))
        return GridStack(grids, self.dims[-1].name)

    def sides(self, *, seed: int = 1) -> Sides:
        """The states that enter each grid, ``[batch, *sizes of the other dimensions, hidden]``."""
        torch.manual_seed(seed)
        carried = [{name: self._side(name) for name in self.carried} for _ in range(self.layers)]
        return [{**carried[0], **{name: self._side(name) for name in self._enters}}, *carried[1:]]

    def lengths(self, *, seed: int = 2) -> dict[str, Tensor] | None:
        """The lengths of the samples along the masked dimensions; ``None`` if there are none."""
        torch.manual_seed(seed)
        sizes = {dim.name: size for dim, size in zip(self.dims, self.sizes, strict=True)}
        lengths = {
            name: torch.randint((sizes[name] + 1) // 2, sizes[name] + 1, (self.batch,))
            for name in self.masked
        }
        return lengths or None

    def upstream(self, *, seed: int = 3) -> list[Tensor]:
        """Gradients of what :meth:`leaving` returns."""
        torch.manual_seed(seed)
        states = [self._side(name) for name in (*self._enters, *self.layers * self.carried)]
        return [t for state in states for t in state if t is not None]

    def leaving(self, out: Sequence[dict[str, State]]) -> list[Tensor]:
        """What is used of the sides that leave: the result, and what a later call continues."""
        states = [out[-1][name] for name in self._enters]
        states += [layer[name] for layer in out for name in self.carried]
        return [t for state in states for t in state if t is not None]

    def flops(self) -> int:
        """Floating-point operations of the matrix products of one step.

        A side that is not given along a dimension of size 1 is all that blocks read along it: zeros,
        whose products are not counted.
        """
        total, blocks = 0, prod(self.sizes) * self.batch
        stack = self.build(device="meta")
        for layer, (grid, given) in enumerate(zip(stack.layers, self.sides(), strict=True)):
            there = {*given, *([stack.along] if layer > 0 else [])}
            named = zip(self.dims, self.sizes, strict=True)
            read = sum(size > 1 or dim.name in there for dim, size in named)
            total += 2 * blocks * sum(grid.block.gate_sizes) * read * self.hidden
        return total * (3 if self.train else 1)

    def smaller(self) -> "Case":
        """The same case with an eighth of the samples."""
        return replace(self, batch=max(1, self.batch // 8))

    @property
    def _enters(self) -> tuple[str, ...]:
        return self.enters or (self.dims[-1].name,)

    def _side(self, name: str) -> State:
        (place,) = (i for i, dim in enumerate(self.dims) if dim.name == name)
        shape = (self.batch, *self.sizes[:place], *self.sizes[place + 1 :], self.hidden)
        hidden = torch.randn(shape)
        return State(hidden, torch.randn(shape) if self.dims[place].has_memory else None)


_time, _depth = Dim("time"), Dim("depth")
_sentence = (Dim("source"), Dim("target"), Dim("depth", "identity"))


def _decoding(name: str, batch: int) -> Case:
    """The next word of a Reencoder, as its ``step`` runs it: one row of blocks in each grid.

    The previous word enters the first grid along the source, every grid carries its target side, and
    nothing enters along depth.
    """
    return Case(
        name,
        _sentence,
        (12, 1, 1),
        batch,
        450,
        layers=2,
        masked=("source",),
        train=False,
        enters=("source",),
        carried=("target",),
    )


CASES = {
    case.name: case
    for case in (
        Case("memorization", (_time, _depth), (42, 43), 15, 100),
        Case("memorization-untied", (_time, replace(_depth, size=43, tied=False)), (42, 43), 15, 100),
        Case("addition", (_time, _depth), (49, 18), 15, 400),
        Case("characters-256", (_time, _depth), (50, 6), 100, 256),
        Case("characters-1000", (_time, _depth), (50, 6), 100, 1000),
        Case("characters-priority", (_time, replace(_depth, priority=True)), (50, 6), 100, 256),
        Case("parity", (_depth,), (25,), 20, 500),
        Case("image", (Dim("row"), Dim("column"), _depth), (14, 14, 1), 128, 100),
        Case("reencoder", _sentence, (12, 12, 1), 64, 450, layers=2, masked=("source", "target")),
        *(_decoding(f"decoding-{batch}", batch) for batch in (1, 8, 64)),
        _decoding("decoding", 640),
        Case("cube", (Dim("a"), Dim("b"), Dim("c")), (8, 8, 8), 8, 64),
    )
}
