"""The GRU (Cho et al., 2014) as a cell: no memory, but its old hidden vector passes the gates by.

Letters: ``g_r`` the reset gate, ``g_z`` the update gate, ``g_n`` the new content, ``d`` the length of a
vector.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from gridlstm.cells.base import Cell, CellGradients
from gridlstm.cells.low_precision import decode_sigmoid, decode_tanh, encode_sigmoid, encode_tanh
from gridlstm.state import State

__all__ = ["GRU"]


class GRU(Cell):
    r"""The gated recurrent unit with the equations of ``torch.nn.GRU``.

    .. math::
        g_r &= σ(W_r H) \qquad g_z = σ(W_z H) \\
        g_n &= \tanh(W_n H_{others} + g_r ⊙ W_n h) \\
        h'  &= (1 - g_z) ⊙ g_n + g_z ⊙ h

    The dimension's own hidden vector is its state; what ``torch.nn.GRU`` calls its input are here the
    hidden vectors of the other dimensions. A weight has the matrices of r, z and n, in this order. A
    bias has one vector more: that of ``W_n h``, inside the reset gate, comes last.
    """

    name = "gru"
    gates = 3
    reads_hidden = True

    @property
    def rows(self) -> int:
        """r, z, and n in two parts: of the other hidden vectors, and of its own."""
        return 4

    def forward(
        self, preactivation: Float[Tensor, "*rows gates"], old: State, peephole: Tensor | None
    ) -> State:
        """The new hidden vector."""
        g_r, g_z, others, own = preactivation.chunk(4, -1)
        g_n = torch.tanh(others + g_r.sigmoid() * own)
        return State(torch.lerp(g_n, old.hidden, g_z.sigmoid()))

    def forward_(
        self, gates: Float[Tensor, "*rows gates"], old: State, peephole: Tensor | None
    ) -> State:
        """The same; leaves the activated gates r, z and n, and the part of n that r multiplies."""
        d = old.hidden.shape[-1]
        gates[..., : 2 * d].sigmoid_()
        g_r, g_z, g_n, own = gates.chunk(4, -1)
        g_n.addcmul_(g_r, own).tanh_()
        return State(torch.lerp(g_n, old.hidden, g_z))

    def backward_(
        self,
        gates: Float[Tensor, "*rows gates"],
        old: State,
        grad: State,
        peephole: Tensor | None,
    ) -> CellGradients:
        """The backward of :meth:`forward_`, one line per gate."""
        g_r, g_z, g_n, own = gates.chunk(4, -1)
        direct = grad.hidden * g_z
        grad_z = grad.hidden * (old.hidden - g_n) * g_z * (1 - g_z)
        grad_n = grad.hidden * (1 - g_z) * (1 - g_n * g_n)
        grad_own = grad_n * g_r
        grad_r = grad_n * own * g_r * (1 - g_r)
        for gate, found in zip(gates.chunk(4, -1), (grad_r, grad_z, grad_n, grad_own), strict=True):
            gate.copy_(found)
        return CellGradients(hidden=direct)

    def expand(self, weight: Tensor, own: slice) -> Tensor:
        """Splits the rows of n: those of the other hidden vectors, then those of its own."""
        d = weight.shape[-2] // 3
        n = weight[..., 2 * d :, :]
        mine = torch.zeros(weight.shape[-1], dtype=torch.bool, device=weight.device)
        mine[own] = True
        return torch.cat((weight[..., : 2 * d, :], n.masked_fill(mine, 0), n.masked_fill(~mine, 0)), -2)

    def reset_bias_(self, bias: Tensor, forget_bias: float) -> None:
        """Zero, but for the update gate, which keeps the old vector as a forget gate does."""
        bias.zero_()
        bias.chunk(4, -1)[1].fill_(forget_bias)

    def encode_gates(self, gates: Tensor, dtype: torch.dtype) -> Tensor:
        """Two sigmoids, a hyperbolic tangent, and a part that is any number."""
        g_r, g_z, g_n, own = gates.chunk(4, -1)
        sigmoid = (encode_sigmoid(g, dtype) for g in (g_r, g_z))
        return torch.cat((*sigmoid, encode_tanh(g_n, dtype), own), -1)

    def decode_gates(self, kept: Tensor, dtype: torch.dtype) -> Tensor:
        """The gates that :meth:`encode_gates` was given."""
        g_r, g_z, g_n, own = kept.chunk(4, -1)
        return torch.cat((decode_sigmoid(g_r), decode_sigmoid(g_z), decode_tanh(g_n, dtype), own), -1)
