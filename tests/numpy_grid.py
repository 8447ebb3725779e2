"""The grid once more, in NumPy: the paper's equations, one sample and one block after the other.

Shares no code with the package: it only reads the dimensions, the parameters, ``output`` and
``zoneout`` of a module. The letters are the paper's. A dimension without memory has one of length 0
here.
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


class Weights(dict[str, Array]):
    """The parameters of one dimension at one position; a bias that is missing is zero."""

    def preactivations(self, H: Array, rows: int) -> list[Array]:
        """``W H + b`` for each gate or, if there are gains, ``LN(W H)`` (Ba et al., 2016)."""
        products = np.split(self["weight"] @ H, rows)
        biases = np.split(self["bias"], len(self["bias"]) // len(products[0]))
        return [self.norm(k, a) + b for k, (a, b) in enumerate(zip(products, biases, strict=False))]

    def norm(self, k: int, a: Array) -> Array:
        """Row ``k`` of the preactivations, normalised if there are gains, without a bias."""
        if "gain" not in self:
            return a
        gain = self["gain"][k * len(a) : (k + 1) * len(a)]
        return gain * (a - a.mean()) / np.sqrt(((a - a.mean()) ** 2).mean() + 1e-5)


def lstm(H: Array, m: Array, p: Weights, output: str) -> Pair:
    """Eq. 1, with a bias for each gate, and perhaps diagonal weights from the memory to three gates."""
    a_u, a_f, a_o, a_c = p.preactivations(H, 4)
    p_u, p_f, p_o = np.split(p.get("peephole", np.zeros(3 * len(m))), 3)
    new_m = sigmoid(a_f + p_f * m) * m + sigmoid(a_u + p_u * m) * np.tanh(a_c)
    g_o = sigmoid(a_o + p_o * new_m)
    seen = new_m
    if "memory_gain" in p:
        centred = new_m - new_m.mean()
        seen = p["memory_gain"] * centred / np.sqrt((centred**2).mean() + 1e-5) + p["memory_bias"]
    return np.tanh(g_o * seen) if output == "paper" else g_o * np.tanh(seen), new_m


def gru(H: Array, h: Array, own: slice, p: Weights) -> Array:
    """The equations in the documentation of ``torch.nn.GRU``; what is not its own is its input."""
    a_r, a_z, _ = p.preactivations(H, 3)
    W_n, (b_in, b_hn) = p["weight"][2 * len(h) :], np.split(p["bias"], 4)[2:]
    from_own = W_n[:, own] @ H[own]
    from_others = W_n @ H - from_own
    n = np.tanh(p.norm(2, from_others) + b_in + sigmoid(a_r) * (p.norm(3, from_own) + b_hn))
    return (1 - sigmoid(a_z)) * n + sigmoid(a_z) * h


def transform(dims: Sequence[Dim], i: int, H: Array, old: Pair, p: Weights, output: str) -> Pair:
    """One dimension's part of a block: a line of Eq. 6, or Eq. 8."""
    (h, m), kind = old, dims[i].transform
    if kind in ("lstm", "peephole"):
        return lstm(H, m, p, output)
    if kind == "gru":
        first = sum(dim.hidden_size for dim in dims[:i])
        return gru(H, h, slice(first, first + len(h)), p), m
    return TRANSFER[kind](p.preactivations(H, 1)[0]), m


def expect(zoneout: object, name: str, new: Pair, old: Pair) -> Pair:
    """What zoneout passes on in evaluation mode (Krueger et al., 2016)."""
    p = zoneout.get(name, 0) if isinstance(zoneout, Mapping) else zoneout
    p_h, p_m = p if isinstance(p, tuple) else (p, p)
    return p_h * old[0] + (1 - p_h) * new[0], p_m * old[1] + (1 - p_m) * new[1]


def block(grid: GridLSTM, weights: Sequence[Weights], arriving: Sequence[Pair]) -> list[Pair]:
    """One block: N pairs ``(h, m)`` to N new pairs."""
    leaving, dims = list(arriving), grid.dims
    for priority in (False, True):
        H = np.concatenate([h for h, _ in leaving])  # Eq. 5, and Eq. 7 for priority dimensions.
        for i, dim in enumerate(dims):
            if dim.priority == priority:
                new = transform(dims, i, H, arriving[i], weights[i], grid.output)  # Eq. 6
                leaving[i] = expect(grid.zoneout, dim.name, new, arriving[i])
    return leaving


def run(
    grid: GridLSTM,
    sizes: Sequence[int],
    sides: Mapping[str, State],
    lengths: Mapping[str, torch.Tensor] | None = None,
    mask: torch.Tensor | None = None,
) -> tuple[dict[str, State], dict[str, State]]:
    """What ``grid.eval()(sides, lengths=lengths, mask=mask, trace=True)`` should return.

    Takes all sides.
    """
    dims = grid.dims
    parameters = {name: value.detach().numpy() for name, value in grid.named_parameters()}
    batch = len(sides[dims[0].name].hidden)

    def weights_of(dim: Dim, position: Sequence[int]) -> Weights:
        owner = dim.shares_weights_with or dim.name
        untied = tuple(x for x, other in zip(position, dims, strict=True) if not other.tied)
        kinds = ("weight", "bias", "peephole", "gain", "memory_gain", "memory_bias")
        names = {kind: f"{kind}_{owner}" for kind in kinds}
        found = {kind: parameters[name][untied] for kind, name in names.items() if name in parameters}
        gates = 4 if dim.transform == "gru" else len(found["weight"]) // dim.hidden_size
        zeros = {"bias": np.zeros(gates * dim.hidden_size), "memory_bias": np.zeros(dim.hidden_size)}
        return Weights({**zeros, **found})

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
            pairs = block(grid, [weights_of(dim, position) for dim in dims], pairs)
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
