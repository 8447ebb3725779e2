"""The GRU (Cho et al., 2014) as a cell: it has no memory, and reads its old hidden vector directly.

Letters: ``g_r`` the reset gate, ``g_z`` the update gate, ``g_n`` the new content, ``d`` the length of a
vector.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from gridlstm.cells.base import Cell, CellGradients, Vectors
from gridlstm.cells.low_precision import decode_sigmoid, decode_tanh, encode_sigmoid, encode_tanh
from gridlstm.state import State

__all__ = ["GRU"]


class GRU(Cell):
    r"""The gated recurrent unit with the equations of ``torch.nn.GRU``.

    .. math::
        g_r &= σ(W_r H) \qquad g_z = σ(W_z H) \\
        g_n &= \tanh(W_n H_{others} + g_r ⊙ W_n h) \\
        h'  &= (1 - g_z) ⊙ g_n + g_z ⊙ h

    The dimension's own hidden vector is the state, and the hidden vectors of the other dimensions are
    the input of ``torch.nn.GRU``. A weight has the matrices of r, z and n, in this order. A bias has
    one vector more: the last one belongs to ``W_n h``, inside the reset gate.
    """

    name = "gru"
    gates = 3
    reads_hidden = True

    @property
    def rows(self) -> int:
        """r, z, and n in two parts: from the other hidden vectors, and from its own."""
        return 4

    def forward(
        self, preactivation: Float[Tensor, "*rows gates"], old: State, vectors: Vectors
    ) -> State:
        """The new hidden vector."""
        g_r, g_z, n_others, n_own = preactivation.chunk(4, -1)
        g_n = torch.tanh(n_others + g_r.sigmoid() * n_own)
        return State(torch.lerp(g_n, old.hidden, g_z.sigmoid()))

    def forward_(self, gates: Float[Tensor, "*rows gates"], old: State, vectors: Vectors) -> State:
        """Like :meth:`forward`; leaves activated r, z and n, and the part of n that r multiplies."""
        d = old.hidden.shape[-1]
        gates[..., : 2 * d].sigmoid_()
        g_r, g_z, g_n, n_own = gates.chunk(4, -1)
        g_n.addcmul_(g_r, n_own).tanh_()
        return State(torch.lerp(g_n, old.hidden, g_z))

    def backward_(
        self,
        gates: Float[Tensor, "*rows gates"],
        old: State,
        grad: State,
        vectors: Vectors,
    ) -> CellGradients:
        """The backward of :meth:`forward_`, one line per gate."""
        g_r, g_z, g_n, n_own = gates.chunk(4, -1)
        direct = grad.hidden * g_z
        grad_z = grad.hidden * (old.hidden - g_n) * g_z * (1 - g_z)
        grad_n = grad.hidden * (1 - g_z) * (1 - g_n * g_n)
        grad_own = grad_n * g_r
        grad_r = grad_n * n_own * g_r * (1 - g_r)
        for gate, value in zip(gates.chunk(4, -1), (grad_r, grad_z, grad_n, grad_own), strict=True):
            gate.copy_(value)
        return CellGradients(hidden=direct)

    def expand(self, weight: Tensor, own_columns: slice) -> Tensor:
        """Splits the rows of n: those for the other hidden vectors, then those for its own."""
        d = weight.shape[-2] // 3
        n = weight[..., 2 * d :, :]
        is_own = torch.zeros(weight.shape[-1], dtype=torch.bool, device=weight.device)
        is_own[own_columns] = True
        return torch.cat(
            (weight[..., : 2 * d, :], n.masked_fill(is_own, 0), n.masked_fill(~is_own, 0)), -2
        )

    def reset_bias_(self, bias: Tensor, forget_bias: float) -> None:
        """Zero, except for the update gate, which keeps the old vector like a forget gate."""
        bias.zero_()
        bias.chunk(4, -1)[1].fill_(forget_bias)

    def encode_gates(self, gates: Tensor, dtype: torch.dtype) -> Tensor:
        """Two sigmoids, a hyperbolic tangent, and an unbounded part."""
        g_r, g_z, g_n, n_own = gates.chunk(4, -1)
        sigmoid = (encode_sigmoid(g, dtype) for g in (g_r, g_z))
        return torch.cat((*sigmoid, encode_tanh(g_n, dtype), n_own), -1)

    def decode_gates(self, encoded: Tensor, dtype: torch.dtype) -> Tensor:
        """The inverse of :meth:`encode_gates`."""
        g_r, g_z, g_n, n_own = encoded.chunk(4, -1)
        return torch.cat((decode_sigmoid(g_r), decode_sigmoid(g_z), decode_tanh(g_n, dtype), n_own), -1)
