"""Grid LSTM as a replacement for ``torch.nn.LSTM``: the same call, and weights that convert."""

import torch
from torch import nn

from gridlstm import SequenceGridLSTM, from_torch

x = torch.randn(20, 4, 32)  # time, batch, input

lstm = nn.LSTM(32, 64, num_layers=3)
output, (h, c) = lstm(x)

# LSTM cells along depth too, and one set of weights for all layers.
grid = SequenceGridLSTM(32, 64, num_layers=3)
output, (h, c) = grid(x)
output, (h, c) = grid(x, (h, c))  # Continues with the state.
print("2-LSTM:", tuple(output.shape), "state", tuple(h.shape))

# A trained nn.LSTM is a grid without cells along depth.
same, _ = from_torch(lstm)(x)
print("from nn.LSTM: largest difference", f"{(same - lstm(x)[0]).abs().max().item():.1e}")
