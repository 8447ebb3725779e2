"""A 3-LSTM over an image: four layers, each from a different corner (appendix, Figure 11)."""

import torch
from torch import nn

from gridlstm import Dim, GridLSTM, GridStack, State

CORNERS = [(False, False), (False, True), (True, True), (True, False)]

patches = torch.rand(8, 7, 7, 16)  # batch, rows, columns, pixels of a 4 × 4 patch
project = nn.Linear(16, 2 * 24)
layers = [
    GridLSTM(
        [Dim("row", reverse=up), Dim("column", reverse=left), Dim("depth", size=1)], hidden_size=24
    )
    for up, left in CORNERS
]
stack = GridStack(layers, along="depth")

hidden, memory = project(patches).chunk(2, -1)
top = stack([{"depth": State(hidden, memory)}])[-1]["depth"]
features = torch.cat([top.hidden, top.memory], -1).flatten(1)
print("features of each image:", features.shape[1])
features.square().mean().backward()
print("every layer has a gradient:", all(p.grad is not None for p in stack.parameters()))
