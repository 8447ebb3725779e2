"""The work of a step between its matrix products, in C; ``engines/pointwise.py`` does the same."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from gridlstm.engines.buffers import Buffers, Call, Gradients
from gridlstm.engines.native.build import library
from gridlstm.engines.native.layout import KINDS, fill_grid, fill_steps
from gridlstm.engines.pointwise import Rim
from gridlstm.engines.tracing import is_recorded

__all__ = ["NativePointwise", "native", "supports"]

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


def supports(call: Call, like: torch.Tensor) -> bool:
    """Whether the kernel can serve a call: on the CPU, in its types, with transforms it knows."""
    return (
        _enabled.get()
        and type(like) is torch.Tensor  # Not one that only stands for a tensor and has no memory.
        and not is_recorded()
        and like.device.type == "cpu"
        and (like.dtype, call.product) in _SUFFIXES
        and all(t.activation is None or t.activation.name in KINDS for t in call.block.transforms)
        and library() is not None
    )


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
