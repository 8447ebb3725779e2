"""The work of a step between its matrix products, in C; ``engines/pointwise.py`` does the same."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn

from gridlstm.block import Block
from gridlstm.engines.buffers import Buffers, Call, Gradients
from gridlstm.engines.native.build import library
from gridlstm.engines.native.layout import fill_grid, fill_steps, kind_of
from gridlstm.engines.pointwise import Rim
from gridlstm.engines.tracing import is_recorded

__all__ = ["NativePointwise", "native", "reasons_against"]

_SUFFIXES = {
    (torch.float32, torch.float32): "float",
    (torch.float32, torch.bfloat16): "bfloat16",
    (torch.float64, torch.float64): "double",
}
_enabled: ContextVar[bool] = ContextVar("native", default=True)


@contextmanager
def native(enabled: bool) -> Iterator[None]:
    """Within it, the compiled kernel is used where possible, or not at all."""
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


def reasons_against(block: Block, like: torch.Tensor, product: torch.dtype) -> list[str]:
    """Why the kernel cannot serve a call, one sentence each; none if it can.

    Args:
        block: what each block computes.
        like: a tensor of states.
        product: the type of matrix products.
    """
    reasons = []
    if not _enabled.get():
        reasons.append("It is switched off.")
    if like.device.type != "cpu":
        reasons.append(f"It runs on the CPU, not on {like.device.type}.")
    if type(like) not in (torch.Tensor, nn.Parameter) or is_recorded():
        reasons.append("Operations are being recorded, and it is not one of PyTorch's.")
    if (like.dtype, product) not in _SUFFIXES:
        types = str(like.dtype) if product == like.dtype else f"{like.dtype} with products in {product}"
        reasons.append(f"It is compiled for float32, float64 and bfloat16 products, not for {types}.")
    unknown = dict.fromkeys(t.cell.name for t in block.transforms if kind_of(t.cell) is None)
    if unknown:
        reasons.append(f"It has no code for these cells: {', '.join(unknown)}.")
    if not reasons and library() is None:
        reasons.append("It is not compiled: GRIDLSTM_NATIVE=0 is set, or there was a warning.")
    return reasons


class NativePointwise:
    """The work between the products of a call, on its buffers."""

    def __init__(self, call: Call, buffers: Buffers, gradients: Gradients | None, rim: Rim) -> None:
        like = buffers.hidden.data
        grid, self._alive = fill_grid(call, rim, like)
        self._grid = ctypes.byref(grid)
        self._steps = fill_steps(call, buffers, gradients)
        kernel, suffix = library(), _SUFFIXES[like.dtype, call.product]
        self._enter, self._read, self._forward, self._backward, self._finish = (
            getattr(kernel, f"{name}_{suffix}")
            for name in ("enter", "read", "forward", "backward", "finish")
        )

    def enter(self, s: int) -> None:
        """Copies the incoming sides into the rows of a step."""
        self._enter(self._grid, ctypes.byref(self._steps[s]))

    def read(self, s: int, p: int) -> None:
        """What a phase multiplies by its weights; what an earlier one computed is there (Eq. 7)."""
        self._read(self._grid, ctypes.byref(self._steps[s]), ctypes.c_int64(p))

    def forward(self, s: int, p: int, *, discard: bool = False) -> None:
        """A phase after its product: new vectors go to where they are read next, unless discarded."""
        self._steps[s].discard = discard
        self._forward(self._grid, ctypes.byref(self._steps[s]), ctypes.c_int64(p))

    def backward(self, s: int, p: int) -> None:
        """A phase before its product: from the gradients of new vectors to those of preactivations."""
        self._backward(self._grid, ctypes.byref(self._steps[s]), ctypes.c_int64(p))

    def finish(self, s: int) -> None:
        """After the products of all phases: the gradients of the incoming vectors."""
        self._finish(self._grid, ctypes.byref(self._steps[s]))
