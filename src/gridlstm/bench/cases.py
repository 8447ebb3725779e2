"""The cases that are timed: the shapes of the paper's experiments, and a few others."""

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.models.grid_stack import GridStack
from gridlstm.state import State

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A grid or a stack of grids, and the sizes of a call.

    Attributes:
        name: its name on the command line.
        dims: the dimensions; data enters along the last one.
        sizes: blocks along each dimension.
        batch: number of samples.
        hidden: the hidden size.
        layers: grids on top of each other; every second one runs backwards along the first dimension.
        masked: whether samples have different lengths along all dimensions but the last.
        train: whether to run forward and backward, or forward alone without gradients.
    """

    name: str
    dims: tuple[Dim, ...]
    sizes: tuple[int, ...]
    batch: int
    hidden: int
    layers: int = 1
    masked: bool = False
    train: bool = True

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

    def inputs(self, *, seed: int = 1) -> tuple[State, dict[str, Tensor] | None]:
        """The state that enters along the last dimension, and the lengths of the samples, if masked."""
        torch.manual_seed(seed)
        shape = (self.batch, *self.sizes[:-1], self.hidden)
        memory = torch.randn(shape) if self.dims[-1].has_memory else None
        lengths = None
        if self.masked:
            lengths = {
                dim.name: torch.randint((size + 1) // 2, size + 1, (self.batch,))
                for dim, size in zip(self.dims[:-1], self.sizes[:-1], strict=True)
            }
        return State(torch.randn(shape), memory), lengths

    def flops(self) -> int:
        """Floating-point operations of the matrix products of one step."""
        total = 0
        for grid in self.build(device="meta").layers:
            block = grid.block
            total += 2 * prod(self.sizes) * self.batch * sum(block.gate_sizes) * block.hidden_size
        return total * (3 if self.train else 1)

    def smaller(self) -> "Case":
        """The same case with an eighth of the samples."""
        return replace(self, batch=max(1, self.batch // 8))


_time, _depth = Dim("time"), Dim("depth")
_sentence = (Dim("source"), Dim("target"), Dim("depth", "identity"))

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
        Case("reencoder", _sentence, (12, 12, 1), 64, 450, layers=2, masked=True),
        Case("decoding", _sentence, (12, 1, 1), 640, 450, layers=2, train=False),
        Case("cube", (Dim("a"), Dim("b"), Dim("c")), (8, 8, 8), 8, 64),
    )
}
