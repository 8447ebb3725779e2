"""Layer normalisation (Ba et al., 2016): of the preactivations of any cell, and of an LSTM's memory."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from gridlstm.cells.base import Cell, CellGradients, Vectors
from gridlstm.state import State

__all__ = ["EPSILON", "LayerNorm", "scale_and_shift", "standardise", "standardise_backward"]

EPSILON = 1e-5
"""Added to variances, as in ``torch.nn.LayerNorm``."""

Rows = Float[Tensor, "*rows columns"]


def scale_and_shift(x: Rows, d: int, gain: Tensor, bias: Tensor) -> Rows:
    """Layer normalisation of each vector of length ``d``, several of which lie side by side."""
    normal = F.layer_norm(x.unflatten(-1, (-1, d)), (d,), eps=EPSILON)
    return torch.addcmul(bias, gain, normal.flatten(-2))


def standardise(x: Rows, d: int) -> tuple[Rows, Float[Tensor, "*rows vectors 1"]]:
    """Vectors of length ``d`` with mean 0 and variance 1, side by side, and their old deviations."""
    vectors = x.unflatten(-1, (-1, d))
    variance, mean = torch.var_mean(vectors, -1, correction=0, keepdim=True)
    deviation = (variance + EPSILON).sqrt()
    return ((vectors - mean) / deviation).flatten(-2), deviation


def standardise_backward(grad: Rows, normal: Rows, deviation: Float[Tensor, "*rows vectors 1"]) -> Rows:
    """The backward of :func:`standardise`."""
    vectors = (-1, grad.shape[-1] // deviation.shape[-2])
    g, n = grad.unflatten(-1, vectors), normal.unflatten(-1, vectors)
    along = g.mean(-1, keepdim=True) + n * (g * n).mean(-1, keepdim=True)
    result: Tensor = ((g - along) / deviation).flatten(-2)
    return result


class LayerNorm(Cell):
    r"""A cell whose preactivations are layer-normalised.

    Each row of the preactivations, a vector ``a`` of length ``d``, is normalised by itself. Then it is
    multiplied by a gain, and the bias is added, so ``forget_bias`` keeps its meaning:

    .. math:: \mathrm{LN}(a) = γ ⊙ \frac{a - \bar a}{\sqrt{\mathrm{var}(a) + ε}} + b

    An LSTM reads a normalised memory, too, ``h' = tanh(g_o ⊙ LN(m'))``, but passes ``m'`` on as it is.

    Args:
        cell: the cell. A GRU has four rows: the two parts of its new content are normalised separately.

    Notes:
        - Ba et al. normalise ``W_h h`` and ``W_x x`` separately, and all gates as one vector. A grid
          has a single product ``W H``, and here each gate has its own mean and variance, as in
          TensorFlow's ``LayerNormBasicLSTMCell``.
        - The memory is normalised where it is read, as by Ba et al. and in haste. TensorFlow's cell and
          PyTorch's TorchScript example pass the normalised memory on as well. In a grid this would
          rescale, at every block, what travels along depth.
    """

    def __init__(self, cell: Cell) -> None:
        self.cell = cell.normalised()
        self.name = f"layer-normalised {cell.name}"
        self.gates = cell.gates
        self.has_memory = cell.has_memory
        self.reads_hidden = cell.reads_hidden

    @property
    def rows(self) -> int:
        """As many as without normalisation."""
        return self.cell.rows

    @property
    def vectors(self) -> Mapping[str, int]:
        """A gain and a bias for each row, and the vectors of the cell."""
        return {"gain": self.rows, "bias": self.rows, **self.cell.vectors}

    def forward(self, preactivation: Rows, old: State, vectors: Vectors) -> State:
        """Normalises the preactivations, and runs the cell."""
        x = self._normalise(preactivation, old, vectors)
        return self.cell.forward(x, old, self._inner(vectors))

    def forward_(self, gates: Rows, old: State, vectors: Vectors) -> State:
        """Like :meth:`forward`; leaves the preactivations as they are, from which all is recomputed."""
        x = self._normalise(gates, old, vectors)
        return self.cell.forward_(x, old, self._inner(vectors))

    def backward_(self, gates: Rows, old: State, grad: State, vectors: Vectors) -> CellGradients:
        """The backward of the cell, and then that of the normalisation."""
        x, inner = self._normalise(gates, old, vectors), self._inner(vectors)
        self.cell.forward_(x, old, inner)
        direct = self.cell.backward_(x, old, grad, inner)
        normal, deviation = standardise(gates, old.hidden.shape[-1])
        gates.copy_(standardise_backward(x * vectors["gain"], normal, deviation))
        return direct._replace(vectors={"gain": x * normal, "bias": x, **direct.vectors})

    def _normalise(self, rows: Rows, old: State, vectors: Vectors) -> Rows:
        return scale_and_shift(rows, old.hidden.shape[-1], vectors["gain"], vectors["bias"])

    def _inner(self, vectors: Vectors) -> Vectors:
        return {name: vectors[name] for name in self.cell.vectors}

    def expand(self, weight: Tensor, own_columns: slice) -> Tensor:
        """As without normalisation."""
        return self.cell.expand(weight, own_columns)

    def reset_bias_(self, bias: Tensor, forget_bias: float) -> None:
        """As without normalisation."""
        self.cell.reset_bias_(bias, forget_bias)

    def reset_vector_(self, name: str, values: Tensor) -> None:
        """Gains start from 1."""
        if name == "gain":
            values.fill_(1)
        else:
            self.cell.reset_vector_(name, values)

    def __repr__(self) -> str:
        return f"LayerNorm({self.cell!r})"
