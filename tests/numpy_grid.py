"""The grid once more, in NumPy: the paper's equations, one sample and one block after the other.

Shares no code with the package: it only reads the dimensions, the parameters and ``output`` of a
module. The letters are the paper's. A dimension without memory has one of length 0 here.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from gridlstm import Dim, GridLSTM, State

Array = NDArray[np.float64]
Pair = tuple[Array, Array]

TRANSFER = {
    "identity": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    F.softsign: lambda x: x / (1 + np.abs(x)),
}
"""The α of Eq. 8 for each transform in use."""


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(H: Array, m: Array, W: Array, b: Array, output: str) -> Pair:
    """Eq. 1, with a bias for each gate."""
    W_u, W_f, W_o, W_c = np.split(W, 4)
    b_u, b_f, b_o, b_c = np.split(b, 4)
    g_u = sigmoid(W_u @ H + b_u)
    g_f = sigmoid(W_f @ H + b_f)
    g_o = sigmoid(W_o @ H + b_o)
    g_c = np.tanh(W_c @ H + b_c)
    new_m = g_f * m + g_u * g_c
    new_h = np.tanh(g_o * new_m) if output == "paper" else g_o * np.tanh(new_m)
    return new_h, new_m


def peephole(H: Array, m: Array, W: Array, b: Array, p: Array, output: str) -> Pair:
    """Eq. 1 with diagonal weights from the memory to three gates."""
    W_u, W_f, W_o, W_c = np.split(W, 4)
    b_u, b_f, b_o, b_c = np.split(b, 4)
    p_u, p_f, p_o = np.split(p, 3)
    g_u = sigmoid(W_u @ H + b_u + p_u * m)
    g_f = sigmoid(W_f @ H + b_f + p_f * m)
    new_m = g_f * m + g_u * np.tanh(W_c @ H + b_c)
    g_o = sigmoid(W_o @ H + b_o + p_o * new_m)
    new_h = np.tanh(g_o * new_m) if output == "paper" else g_o * np.tanh(new_m)
    return new_h, new_m


def gru(H: Array, h: Array, own: slice, W: Array, b: Array) -> Array:
    """The equations in the documentation of ``torch.nn.GRU``; what is not its own is its input."""
    W_r, W_z, W_n = np.split(W, 3)
    b_r, b_z, b_in, b_hn = np.split(b, 4)
    r = sigmoid(W_r @ H + b_r)
    z = sigmoid(W_z @ H + b_z)
    from_own = W_n[:, own] @ H[own]
    n = np.tanh(W_n @ H - from_own + b_in + r * (from_own + b_hn))
    return (1 - z) * n + z * h


def transform(
    dims: Sequence[Dim], i: int, H: Array, old: Pair, weights: tuple[Array, ...], output: str
) -> Pair:
    """One dimension's part of a block: a line of Eq. 6, or Eq. 8."""
    (h, m), (W, b, *p), kind = old, weights, dims[i].transform
    if kind == "lstm":
        return lstm(H, m, W, b, output)
    if kind == "peephole":
        return peephole(H, m, W, b, *p, output)
    if kind == "gru":
        first = sum(dim.hidden_size for dim in dims[:i])
        return gru(H, h, slice(first, first + len(h)), W, b), m
    return TRANSFER[kind](W @ H + b), m


def block(
    dims: Sequence[Dim],
    weights: Sequence[tuple[Array, ...]],
    arriving: Sequence[Pair],
    output: str,
) -> list[Pair]:
    """One block: N pairs ``(h, m)`` and N weights ``(W, b)`` or ``(W, b, p)`` to N new pairs."""
    leaving = list(arriving)
    H = np.concatenate([h for h, _ in arriving])  # Eq. 5
    for i, dim in enumerate(dims):  # Eq. 6
        if not dim.priority:
            leaving[i] = transform(dims, i, H, arriving[i], weights[i], output)
    H = np.concatenate([h for h, _ in leaving])  # Eq. 7
    for i, dim in enumerate(dims):
        if dim.priority:
            leaving[i] = transform(dims, i, H, arriving[i], weights[i], output)
    return leaving


def run(
    grid: GridLSTM,
    sizes: Sequence[int],
    sides: Mapping[str, State],
    lengths: Mapping[str, torch.Tensor] | None = None,
    mask: torch.Tensor | None = None,
) -> tuple[dict[str, State], dict[str, State]]:
    """What ``grid(sides, lengths=lengths, mask=mask, trace=True)`` should return; takes all sides."""
    dims = grid.dims
    parameters = {name: value.detach().numpy() for name, value in grid.named_parameters()}
    batch = len(sides[dims[0].name].hidden)

    def weights_of(dim: Dim, position: Sequence[int]) -> tuple[Array, ...]:
        owner = dim.shares_weights_with or dim.name
        untied = tuple(x for x, other in zip(position, dims, strict=True) if not other.tied)
        W = parameters[f"weight_{owner}"][untied]
        zeros = np.zeros(4 * dim.hidden_size if dim.transform == "gru" else len(W))
        b = parameters[f"bias_{owner}"][untied] if grid.bias else zeros
        p = parameters.get(f"peephole_{owner}")
        return W, b, zeros if p is None else p[untied]

    def is_real(sample: int, position: Sequence[int]) -> bool:
        inside = [
            x < lengths[dim.name][sample]
            for x, dim in zip(position, dims, strict=True)
            if lengths is not None and dim.name in lengths
        ]
        return all(inside) and (mask is None or bool(mask[(sample, *position)]))

    # travelling[i] at [sample, place among the other dimensions]: where dimension i's vectors are now.
    travelling: list[Pair] = []
    blocks: list[Pair] = []
    for dim in dims:
        h, m = sides[dim.name]
        m = h[..., :0] if m is None else m
        travelling.append((h.numpy().copy(), m.numpy().copy()))
        blocks.append(tuple(np.full((batch, *sizes, x.shape[-1]), np.nan) for x in (h, m)))
    orders = [range(n)[::-1] if dim.reverse else range(n) for n, dim in zip(sizes, dims, strict=True)]
    for sample, position in product(range(batch), product(*orders)):
        places = [(sample, *position[:i], *position[i + 1 :]) for i in range(len(dims))]
        pairs = [(h[place], m[place]) for (h, m), place in zip(travelling, places, strict=True)]
        if is_real(sample, position):
            pairs = block(dims, [weights_of(dim, position) for dim in dims], pairs, grid.output)
        for i, place in enumerate(places):
            for vectors, every, new in zip(travelling[i], blocks[i], pairs[i], strict=True):
                vectors[place] = every[(sample, *position)] = new

    def named(pairs: Sequence[Pair]) -> dict[str, State]:
        return {
            dim.name: State(torch.from_numpy(h), torch.from_numpy(m) if m.shape[-1] else None)
            for dim, (h, m) in zip(dims, pairs, strict=True)
        }

    return named(travelling), named(blocks)


def random_sides(grid: GridLSTM, sizes: Sequence[int], batch: int) -> dict[str, State]:
    """A random pair for every side of a grid, in the dtype of its parameters."""
    dtype = next(grid.parameters()).dtype
    sides = {}
    for i, dim in enumerate(grid.dims):
        shape = (batch, *sizes[:i], *sizes[i + 1 :], dim.hidden_size)
        memory = torch.randn(shape, dtype=dtype) if dim.has_memory else None
        sides[dim.name] = State(torch.randn(shape, dtype=dtype), memory)
    return sides


def randomise(grid: GridLSTM) -> GridLSTM:
    """Draws every parameter, biases too, so that none is zero or equal to another."""
    with torch.no_grad():
        for parameter in grid.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return grid
