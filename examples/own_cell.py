"""A custom cell: a minimal gated unit (Zhou et al., 2016) along time, LSTM cells along depth."""

import torch
from torch import Tensor

from gridlstm import Cell, Dim, GridLSTM, State
from gridlstm.cells import Vectors


class MinimalGatedUnit(Cell):
    """``h' = (1 - f) ⊙ h + f ⊙ tanh(V H)`` with a single gate ``f = σ(W H)``."""

    name = "minimal gated unit"
    gates = 2  # The number of matrices in its weight: for the gate and for the content.
    reads_hidden = True  # The new hidden vector depends directly on the old one.

    def forward(self, preactivation: Tensor, old: State, vectors: Vectors) -> State:
        """The only method a cell needs. Gradients come from autograd, in the fast engine too."""
        gate, content = preactivation.chunk(2, -1)
        return State(torch.lerp(old.hidden, content.tanh(), gate.sigmoid()))


if __name__ == "__main__":
    torch.manual_seed(0)
    grid = GridLSTM([Dim("time", MinimalGatedUnit()), Dim("depth", size=3)], hidden_size=16)
    x = torch.randn(4, 20, 16, requires_grad=True)
    gradients = {}
    for grid.engine in ("reference", "wavefront"):
        out = grid({"depth": State(x, x)})["depth"].hidden
        gradients[grid.engine] = torch.autograd.grad(out.square().sum(), [x, *grid.parameters()])
    pairs = zip(gradients["reference"], gradients["wavefront"], strict=True)
    difference = max(float((a - b).abs().max()) for a, b in pairs)
    print(grid.explain())
    print(f"largest difference between the gradients of the engines: {difference:.0e}")
