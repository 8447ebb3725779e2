"""Two inputs on two sides of one grid (section 3.4), with sentences of different lengths.

Rows are the words of one sentence and columns those of another, so every block reads a pair of words.
The paper's translation model has this shape.
"""

import torch

from gridlstm import Dim, GridLSTM, State

grid = GridLSTM([Dim("source"), Dim("target"), Dim("depth", "identity", size=1)], hidden_size=32)
source = torch.randn(2, 6, 1, 32)  # batch, source words, depth: enter along the target dimension
target = torch.randn(2, 9, 1, 32)  # batch, target words, depth: enter along the source dimension
lengths = {"source": torch.tensor([6, 4]), "target": torch.tensor([5, 9])}

sides = {"target": State(source, source), "source": State(target, target)}
out, blocks = grid(sides, lengths=lengths, trace=True)
print("vectors that leave with the target words:", tuple(out["source"].hidden.shape))
print("memory of every block:", tuple(blocks["source"].memory.shape))

# Without padding, the vectors are the same.
alone = grid({"target": State(source[1:, :4], source[1:, :4]), "source": State(target[1:], target[1:])})
difference = (alone["source"].hidden[0] - out["source"].hidden[1]).abs().max().item()
print(f"the second pair alone: largest difference {difference:.0e}")
