"""The transforms of a block as pure functions: LSTM (Eq. 1) and regular connections (Eq. 8).

No loop, module or device logic; any leading axes. Each transform is written twice: once in plain
autograd, as the specification, and once as a forward and a backward in place, for the fast engine.

Letters, as in the paper: ``h`` hidden, ``m`` memory, ``g_u g_f g_o g_c`` the update, forget, output
and content gates, ``d`` the length of a vector.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gridlstm.dim import Transfer

__all__ = [
    "GATES",
    "Activation",
    "Output",
    "expose",
    "lstm",
    "lstm_",
    "lstm_backward_",
    "make_activation",
]

Output = Literal["paper", "standard"]
"""``"paper"``: ``h' = tanh(g_o ⊙ m')`` (Eq. 1). ``"standard"``: ``h' = g_o ⊙ tanh(m')``."""

GATES = ("u", "f", "o", "c")
"""The order of the gates among the rows of a weight matrix; the first three are sigmoid."""


def lstm(
    preactivation: Float[Tensor, "*rows gates"], m: Float[Tensor, "*rows d"], output: Output
) -> tuple[Float[Tensor, "*rows d"], Float[Tensor, "*rows d"]]:
    """Eq. 1 from ``W H`` on: the new hidden and memory vectors."""
    g_u, g_f, g_o, g_c = preactivation.chunk(len(GATES), -1)
    new_m = g_f.sigmoid() * m + g_u.sigmoid() * g_c.tanh()
    return expose(g_o.sigmoid(), new_m, output), new_m


def expose(
    g_o: Float[Tensor, "*rows d"], m: Float[Tensor, "*rows d"], output: Output
) -> Float[Tensor, "*rows d"]:
    """What the output gate lets out of a memory: the hidden vector."""
    return torch.tanh(g_o * m) if output == "paper" else g_o * torch.tanh(m)


def lstm_(
    gates: Float[Tensor, "*rows gates"], m: Float[Tensor, "*rows d"], output: Output
) -> tuple[Float[Tensor, "*rows d"], Float[Tensor, "*rows d"]]:
    """The same as :func:`lstm`; leaves the activated gates in place of their preactivations."""
    d = m.shape[-1]
    gates[..., : 3 * d].sigmoid_()
    gates[..., 3 * d :].tanh_()
    g_u, g_f, g_o, g_c = gates.chunk(len(GATES), -1)
    new_m = torch.addcmul(g_f * m, g_u, g_c)
    return expose(g_o, new_m, output), new_m


def lstm_backward_(
    gates: Float[Tensor, "*rows gates"],
    m: Float[Tensor, "*rows d"],
    grad_h: Float[Tensor, "*rows d"],
    grad_m: Float[Tensor, "*rows d"],
    output: Output,
) -> Float[Tensor, "*rows d"]:
    """The backward of :func:`lstm_`: the gradient of ``m``.

    Takes the activated gates and leaves the gradients of the preactivations in their place.
    ``grad_h`` and ``grad_m`` are those of the new hidden and memory vectors, which are recomputed.
    """
    g_u, g_f, g_o, g_c = gates.chunk(len(GATES), -1)
    new_m = torch.addcmul(g_f * m, g_u, g_c)
    if output == "paper":
        h = torch.tanh(g_o * new_m)
        grad_read = grad_h * (1 - h * h)
        grad_o = grad_read * new_m
        grad_m = torch.addcmul(grad_m, grad_read, g_o)
    else:
        squashed = torch.tanh(new_m)
        grad_o = grad_h * squashed
        grad_m = torch.addcmul(grad_m, grad_h * g_o, 1 - squashed * squashed)
    grad_old_m = grad_m * g_f
    grad_u = grad_m * g_c * g_u * (1 - g_u)
    grad_f = grad_m * m * g_f * (1 - g_f)
    grad_c = grad_m * g_u * (1 - g_c * g_c)
    g_o.copy_(grad_o * g_o * (1 - g_o))
    g_u.copy_(grad_u)
    g_f.copy_(grad_f)
    g_c.copy_(grad_c)
    return grad_old_m


class Activation(NamedTuple):
    """A transfer function α and its backward ``(preactivation, grad of α) -> grad``."""

    name: str
    forward: Transfer
    backward: Callable[[Tensor, Tensor], Tensor]


def make_activation(transform: str | Transfer) -> Activation:
    """The transfer function of a non-LSTM dimension, by name or as a callable."""
    if isinstance(transform, str):
        return _NAMED[transform]
    return Activation("callable", partial(_call, transform), partial(_call_backward, transform))


def _call(transfer: Transfer, x: Tensor) -> Tensor:
    return transfer(x.clone())  # It may work in place; what it is given is kept.


def _call_backward(transfer: Transfer, x: Tensor, grad: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = _call(transfer, x)
        if not y.requires_grad:  # It does not depend on its argument.
            return torch.zeros_like(x)
        (grad_x,) = torch.autograd.grad(y, x, grad)
    return grad_x


def _identity(x: Tensor) -> Tensor:
    return x


def _identity_backward(x: Tensor, grad: Tensor) -> Tensor:
    return grad


def _tanh_backward(x: Tensor, grad: Tensor) -> Tensor:
    return grad * (1 - torch.tanh(x).square())


def _relu_backward(x: Tensor, grad: Tensor) -> Tensor:
    return grad * (x > 0)


_NAMED = {
    "identity": Activation("identity", _identity, _identity_backward),
    "tanh": Activation("tanh", torch.tanh, _tanh_backward),
    "relu": Activation("relu", torch.relu, _relu_backward),
}
