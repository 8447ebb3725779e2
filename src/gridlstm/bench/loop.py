"""The simplest implementation of a grid: a loop over blocks with ordinary autograd."""

from collections.abc import Mapping
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional as F

from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["run_loop"]

Vectors = dict[tuple[str, tuple[int, ...]], Tensor]
"""The newest vector of each row of blocks: by dimension, and position along the others."""


def run_loop(
    grid: GridLSTM, sides: Mapping[str, State], lengths: dict[str, Tensor] | None
) -> dict[str, State]:
    """The sides that leave, ``[batch, *sizes of the other dimensions, hidden]``.

    Supports LSTM and identity dimensions, tied along all but the last, without priorities.
    """
    names, sizes = [dim.name for dim in grid.dims], [dim.size or 1 for dim in grid.dims]
    ranges = [
        range(n)[::-1] if dim.reverse else range(n) for dim, n in zip(grid.dims, sizes, strict=True)
    ]
    like = next(iter(sides.values())).hidden
    zero = like.new_zeros(len(like), like.shape[-1])
    h, m = (_faces({name: state[k] for name, state in sides.items()}) for k in range(2))
    for position in product(*ranges):
        keys = [(name, position[:i] + position[i + 1 :]) for i, name in enumerate(names)]
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
    out = {}
    for i, dim in enumerate(grid.dims):
        others = (*sizes[:i], *sizes[i + 1 :])
        hidden = _joined(h, dim.name, others)
        out[dim.name] = State(hidden, _joined(m, dim.name, others) if dim.has_memory else None)
    return out


def _faces(sides: Mapping[str, Tensor | None]) -> Vectors:
    """The vectors of sides, ``[batch, hidden]`` each."""
    return {
        (name, place): side.movedim(0, -2)[place]
        for name, side in sides.items()
        if side is not None
        for place in product(*map(range, side.shape[1:-1]))
    }


def _joined(vectors: Vectors, name: str, sizes: tuple[int, ...]) -> Tensor:
    """The inverse, for one side."""
    faces = [vectors[name, place] for place in product(*map(range, sizes))]
    return torch.stack(faces, 1).view(len(faces[0]), *sizes, -1)
