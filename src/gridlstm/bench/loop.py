"""The simplest implementation of a grid: a loop over blocks with ordinary autograd."""

from itertools import product

import torch
from torch import Tensor
from torch.nn import functional as F

from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["run_loop"]


def run_loop(grid: GridLSTM, entering: State, lengths: dict[str, Tensor] | None) -> State:
    """The state that leaves along the last dimension, ``[batch, *sizes, hidden]``.

    Supports LSTM and identity dimensions, tied along all but the last, without priorities.
    """
    names = [dim.name for dim in grid.dims]
    sizes = [*entering.hidden.shape[1:-1], grid.dims[-1].size or 1]
    zero = entering.hidden.new_zeros(len(entering.hidden), entering.hidden.shape[-1])
    # Batch behind the positions, so that a position is an index.
    first_h = entering.hidden.movedim(0, -2)
    first_m = torch.zeros_like(first_h) if entering.memory is None else entering.memory.movedim(0, -2)
    ranges = [
        range(n)[::-1] if dim.reverse else range(n) for dim, n in zip(grid.dims, sizes, strict=True)
    ]
    h: dict[tuple[str, tuple[int, ...]], Tensor] = {}
    m: dict[tuple[str, tuple[int, ...]], Tensor] = {}
    for position in product(*ranges):
        keys = [(name, position[:i] + position[i + 1 :]) for i, name in enumerate(names)]
        if position[-1] == 0:
            h[keys[-1]], m[keys[-1]] = (t[position[:-1]] for t in (first_h, first_m))
        old = [(h.get(key, zero), m.get(key, zero)) for key in keys]
        H = torch.cat([hidden for hidden, _ in old], -1)
        for dim, key, (old_h, old_m) in zip(grid.dims, keys, old, strict=True):
            weight, bias = grid.weights_of(dim.name)
            layer = ... if grid.dims[-1].tied else position[-1]
            gates = F.linear(H, weight[layer], None if bias is None else bias[layer])
            if dim.has_memory:
                g_u, g_f, g_o, g_c = gates.chunk(4, -1)
                new_m = torch.sigmoid(g_f) * old_m + torch.sigmoid(g_u) * torch.tanh(g_c)
                new_h = torch.tanh(torch.sigmoid(g_o) * new_m)
            else:
                new_h, new_m = gates, old_m
            if lengths is not None:
                real = torch.stack(
                    [length > position[names.index(name)] for name, length in lengths.items()]
                )
                real = real.all(0).unsqueeze(-1)
                new_h, new_m = torch.where(real, new_h, old_h), torch.where(real, new_m, old_m)
            h[key], m[key] = new_h, new_m
    places = list(product(*(range(n) for n in sizes[:-1])))
    shape = (len(zero), *sizes[:-1], zero.shape[-1])
    hidden, memory = (
        torch.stack([vectors[names[-1], place] for place in places], 1).view(shape)
        for vectors in (h, m)
    )
    return State(hidden, memory if grid.dims[-1].has_memory else None)
