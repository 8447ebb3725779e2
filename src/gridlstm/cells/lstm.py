"""The LSTM of Eq. 1 as a cell, without and with peepholes.

Letters, as in the paper: ``h`` hidden, ``m`` memory, ``g_u g_f g_o g_c`` the update, forget, output
and content gates, ``d`` the length of a vector.
"""

from collections.abc import Mapping
from copy import copy
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from gridlstm.cells.base import Cell, CellGradients, Vectors
from gridlstm.cells.layer_norm import scale_and_shift, standardise, standardise_backward
from gridlstm.cells.low_precision import decode_sigmoid, decode_tanh, encode_sigmoid, encode_tanh
from gridlstm.state import State

__all__ = ["GATES", "LSTM", "Output", "PeepholeLSTM", "read_memory"]

Output = Literal["paper", "standard"]
"""``"paper"``: ``h' = tanh(g_o ⊙ m')`` (Eq. 1). ``"standard"``: ``h' = g_o ⊙ tanh(m')``."""

GATES = ("u", "f", "o", "c")
"""The order of the gates in the rows of a weight matrix. The first three are sigmoid."""


def read_memory(
    g_o: Float[Tensor, "*rows d"], m: Float[Tensor, "*rows d"], output: Output
) -> Float[Tensor, "*rows d"]:
    """The hidden vector that the output gate reads from a memory."""
    return torch.tanh(g_o * m) if output == "paper" else g_o * torch.tanh(m)


class LSTM(Cell):
    r"""Eq. 1: gates in the order ``u, f, o, c``, of which the first three are sigmoid.

    .. math::
        m' &= g_f ⊙ m + g_u ⊙ g_c \\
        h' &= \tanh(g_o ⊙ m')

    In a layer-normalised dimension, the output gate reads a normalised ``m'``. The memory that is
    passed on is not normalised. See :class:`LayerNorm`.

    Args:
        output: how the memory is read: ``"paper"`` as in Eq. 1, ``"standard"`` as in ``torch.nn.LSTM``.
    """

    name = "lstm"
    gates = 4
    has_memory = True
    has_peepholes = False

    def __init__(self, output: Output = "paper") -> None:
        self.output = output
        self.normalises_memory = False

    @property
    def vectors(self) -> Mapping[str, int]:
        """Peepholes, if any; gain and bias of the memory where it is normalised."""
        peepholes = {"peephole": 3} if self.has_peepholes else {}
        return {**peepholes, **({"memory_gain": 1, "memory_bias": 1} if self.normalises_memory else {})}

    def normalised(self) -> Cell:
        """The same cell, with an output gate that reads a normalised memory."""
        cell = copy(self)
        cell.normalises_memory = True
        return cell

    def forward(
        self, preactivation: Float[Tensor, "*rows gates"], old: State, vectors: Vectors
    ) -> State:
        """Eq. 1, starting from ``W H``."""
        assert old.memory is not None, "an LSTM has a memory"
        g_u, g_f, g_o, g_c = preactivation.chunk(4, -1)
        if "peephole" in vectors:
            p_u, p_f, p_o = vectors["peephole"].chunk(3, -1)
            g_u, g_f = g_u + p_u * old.memory, g_f + p_f * old.memory
        m = g_f.sigmoid() * old.memory + g_u.sigmoid() * g_c.tanh()
        if "peephole" in vectors:
            g_o = g_o + p_o * m
        return State(read_memory(g_o.sigmoid(), self._seen(m, vectors), self.output), m)

    def forward_(self, gates: Float[Tensor, "*rows gates"], old: State, vectors: Vectors) -> State:
        """Like :meth:`forward`; overwrites the preactivations with the activated gates."""
        assert old.memory is not None, "an LSTM has a memory"
        g_u, g_f, g_o, g_c = gates.chunk(4, -1)
        if "peephole" in vectors:
            p_u, p_f, p_o = vectors["peephole"].chunk(3, -1)
            g_u.addcmul_(p_u, old.memory)
            g_f.addcmul_(p_f, old.memory)
        gates[..., : 2 * g_u.shape[-1]].sigmoid_()
        m = torch.addcmul(g_f * old.memory, g_u, g_c.tanh_())
        if "peephole" in vectors:
            g_o.addcmul_(p_o, m)
        return State(read_memory(g_o.sigmoid_(), self._seen(m, vectors), self.output), m)

    def backward_(
        self, gates: Float[Tensor, "*rows gates"], old: State, grad: State, vectors: Vectors
    ) -> CellGradients:
        """The backward of :meth:`forward_`, one line per gate; the new vectors are recomputed."""
        m, (grad_h, grad_m) = old.memory, grad
        assert m is not None, "an LSTM has a memory"
        assert grad_m is not None
        g_u, g_f, g_o, g_c = gates.chunk(4, -1)
        new_m = torch.addcmul(g_f * m, g_u, g_c)
        seen = self._seen(new_m, vectors)
        if self.output == "paper":
            h = torch.tanh(g_o * seen)
            grad_read = grad_h * (1 - h * h)
            grad_o, grad_seen = grad_read * seen, grad_read * g_o
        else:
            squashed = torch.tanh(seen)
            grad_o, grad_seen = grad_h * squashed, grad_h * g_o * (1 - squashed * squashed)
        grad_vectors = {}
        if self.normalises_memory:
            normal, deviation = standardise(new_m, new_m.shape[-1])
            grad_vectors = {"memory_gain": grad_seen * normal, "memory_bias": grad_seen}
            grad_seen = standardise_backward(grad_seen * vectors["memory_gain"], normal, deviation)
        grad_m = grad_m + grad_seen
        grad_o = grad_o * g_o * (1 - g_o)
        if "peephole" in vectors:
            p_u, p_f, p_o = vectors["peephole"].chunk(3, -1)
            grad_m = torch.addcmul(grad_m, grad_o, p_o)
        grad_u = grad_m * g_c * g_u * (1 - g_u)
        grad_f = grad_m * m * g_f * (1 - g_f)
        grad_c = grad_m * g_u * (1 - g_c * g_c)
        grad_old_m = grad_m * g_f
        if "peephole" in vectors:
            grad_old_m = grad_old_m + grad_u * p_u + grad_f * p_f
            grad_vectors["peephole"] = torch.cat((grad_u * m, grad_f * m, grad_o * new_m), -1)
        for gate, value in zip((g_u, g_f, g_o, g_c), (grad_u, grad_f, grad_o, grad_c), strict=True):
            gate.copy_(value)
        return CellGradients(memory=grad_old_m, vectors=grad_vectors)

    def _seen(self, m: Float[Tensor, "*rows d"], vectors: Vectors) -> Float[Tensor, "*rows d"]:
        """The memory as the output gate reads it."""
        if not self.normalises_memory:
            return m
        return scale_and_shift(m, m.shape[-1], vectors["memory_gain"], vectors["memory_bias"])

    def reset_vector_(self, name: str, values: Tensor) -> None:
        """Peepholes and biases start from 0, gains from 1."""
        values.fill_(1 if name == "memory_gain" else 0)

    def reset_bias_(self, bias: Tensor, forget_bias: float) -> None:
        """Zero, except for the forget gate."""
        bias.zero_()
        bias.chunk(4, -1)[1].fill_(forget_bias)

    def encode_gates(self, gates: Tensor, dtype: torch.dtype) -> Tensor:
        """Encodes the sigmoid gates and the content gate."""
        g, c = self._split(gates)
        return torch.cat((encode_sigmoid(g, dtype), encode_tanh(c, dtype)), -1)

    def decode_gates(self, encoded: Tensor, dtype: torch.dtype) -> Tensor:
        """The inverse of :meth:`encode_gates`."""
        g, c = self._split(encoded)
        return torch.cat((decode_sigmoid(g), decode_tanh(c, dtype)), -1)

    def _split(self, gates: Tensor) -> tuple[Tensor, Tensor]:
        """The sigmoid gates and the content gate."""
        d = gates.shape[-1] // 4
        return gates[..., : 3 * d], gates[..., 3 * d :]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output={self.output!r})"


class PeepholeLSTM(LSTM):
    r"""An LSTM whose gates read the memory (Gers and Schmidhuber, 2000).

    Diagonal weights ``p_u`` and ``p_f`` connect the old memory to the update and forget gates, ``p_o``
    the new memory to the output gate:

    .. math:: g_u = σ(W_u H + p_u ⊙ m) \qquad g_f = σ(W_f H + p_f ⊙ m) \qquad g_o = σ(W_o H + p_o ⊙ m')
    """

    name = "peephole"
    has_peepholes = True
