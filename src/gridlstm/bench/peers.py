"""2-LSTMs in the layouts of published PyTorch implementations, written anew, to be timed beside ours.

Both compute what :class:`GridLSTM` computes, with its parameters and ordinary autograd:

- :func:`run_gates`: one module per block, one matrix product per gate, time step after time step;
- :func:`run_layers`: one layer after the other over all time steps; depth states are a list.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["run_gates", "run_layers"]

Pair = tuple[Tensor, Tensor]


def run_gates(grid: GridLSTM, entering: State) -> State:
    """The state that leaves along depth, ``[batch, time, hidden]``."""
    below = _by_time(entering)
    zero = torch.zeros_like(below[0][0])
    layers = _layers(grid)
    state: list[Pair] = [(zero, zero)] * len(layers)
    leaving: list[Pair] = []
    for pair in below:
        for k, weights in enumerate(layers):
            H = torch.cat((state[k][0], pair[0]), -1)
            gates = [
                [F.linear(H, w, b) for w, b in zip(weight.chunk(4), bias.chunk(4), strict=True)]
                for weight, bias in weights
            ]
            state[k], pair = _lstm(gates[0], state[k][1]), _lstm(gates[1], pair[1])
        leaving.append(pair)
    return _stacked(leaving)


def run_layers(grid: GridLSTM, entering: State) -> State:
    """The state that leaves along depth, ``[batch, time, hidden]``."""
    pairs = _by_time(entering)
    zero = torch.zeros_like(pairs[0][0])
    for weights in _layers(grid):
        state, above = (zero, zero), []
        for pair in pairs:
            H = torch.cat((state[0], pair[0]), -1)
            gates = [F.linear(H, weight, bias).chunk(4, -1) for weight, bias in weights]
            state = _lstm(gates[0], state[1])
            above.append(_lstm(gates[1], pair[1]))
        pairs = above
    return _stacked(pairs)


def _by_time(entering: State) -> list[Pair]:
    assert entering.memory is not None, "depth has cells"
    return list(zip(entering.hidden.unbind(1), entering.memory.unbind(1), strict=True))


def _layers(grid: GridLSTM) -> list[list[Pair]]:
    """For each layer, the weights and biases of time and depth."""
    depth = grid.dims[1]
    assert depth.size is not None, "as a case has it"
    parameters = [grid.weights_of(dim.name) for dim in grid.dims]
    pairs: list[Pair] = [(weight, bias) for weight, bias in parameters if bias is not None]
    if depth.tied:
        return [pairs] * depth.size
    return [[(weight[k], bias[k]) for weight, bias in pairs] for k in range(depth.size)]


def _lstm(gates: list[Tensor] | tuple[Tensor, ...], m: Tensor) -> Pair:
    g_u, g_f, g_o, g_c = gates
    m = torch.sigmoid(g_f) * m + torch.sigmoid(g_u) * torch.tanh(g_c)
    return torch.tanh(torch.sigmoid(g_o) * m), m


def _stacked(pairs: list[Pair]) -> State:
    hidden, memory = zip(*pairs, strict=True)
    return State(torch.stack(hidden, 1), torch.stack(memory, 1))
