"""The backend in C; ``torch_backend.py`` computes the same."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from gridlstm.block import Block
from gridlstm.engines.backend import Backend, Boundary
from gridlstm.engines.buffers import Buffers, Call, Gradients
from gridlstm.engines.native.build import library, load_kernel
from gridlstm.engines.native.layout import fill_grid, fill_steps, kind_of
from gridlstm.engines.recording import is_recorded

__all__ = ["NativeBackend", "use_native"]

_SUFFIXES = {
    (torch.float32, torch.float32): "float",
    (torch.float32, torch.bfloat16): "bfloat16",
    (torch.float64, torch.float64): "double",
}
_enabled: ContextVar[bool] = ContextVar("native", default=True)


@contextmanager
def use_native(enabled: bool) -> Iterator[None]:
    """Allows or forbids the compiled kernel within a ``with`` statement."""
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


class NativeBackend(Backend):
    """Calls the compiled kernel, once per method; see :class:`Backend`."""

    name = "compiled kernel"

    def __init__(
        self, call: Call, buffers: Buffers, gradients: Gradients | None, boundary: Boundary
    ) -> None:
        like = buffers.hidden.data
        grid, self._alive = fill_grid(call, boundary, like)
        self._grid = ctypes.byref(grid)
        self._steps = fill_steps(call, buffers, gradients)
        kernel, suffix = library(), _SUFFIXES[like.dtype, call.product]
        self._enter, self._read, self._forward, self._backward, self._finish = (
            getattr(kernel, f"{name}_{suffix}")
            for name in ("enter", "read", "forward", "backward", "finish")
        )

    @staticmethod
    def not_supported_reasons(block: Block, like: Tensor, product: torch.dtype) -> list[str]:
        """Whether it is allowed, then device, recording, dtypes, cells, and last the compiler."""
        reasons = []
        if not _enabled.get():
            reasons.append("it is switched off by use_native(False)")
        if like.device.type != "cpu":
            reasons.append(f"it runs on the CPU, not on {like.device.type}")
        if type(like) not in (Tensor, nn.Parameter) or is_recorded():
            reasons.append("operations are being recorded, and it is not a PyTorch operation")
        if (like.dtype, product) not in _SUFFIXES:
            dtypes = str(like.dtype)
            if product != like.dtype:
                dtypes += f" with products in {product}"
            reasons.append(
                f"it supports float32, float64 and float32 with bfloat16 products, not {dtypes}"
            )
        unknown = dict.fromkeys(t.cell.name for t in block.transforms if kind_of(t.cell) is None)
        if unknown:
            reasons.append(f"it does not implement these cells: {', '.join(unknown)}")
        if block.has_zoneout:
            reasons.append("it does not implement zoneout")
        if not reasons and isinstance(kernel := load_kernel(), str):  # Compiles it, so it comes last.
            reasons.append(f"it is not compiled: {kernel}")
        return reasons

    def enter(self, s: int) -> None:
        """Calls ``enter`` of ``kernel.c``."""
        self._enter(self._grid, ctypes.byref(self._steps[s]))

    def read(self, s: int, p: int) -> None:
        """Calls ``read`` of ``kernel.c``."""
        self._read(self._grid, ctypes.byref(self._steps[s]), ctypes.c_int64(p))

    def forward(self, s: int, p: int, *, discard: bool = False) -> None:
        """Calls ``forward`` of ``kernel.c``."""
        self._steps[s].discard = discard
        self._forward(self._grid, ctypes.byref(self._steps[s]), ctypes.c_int64(p))

    def backward(self, s: int, p: int) -> None:
        """Calls ``backward`` of ``kernel.c``."""
        self._backward(self._grid, ctypes.byref(self._steps[s]), ctypes.c_int64(p))

    def finish(self, s: int) -> None:
        """Calls ``finish`` of ``kernel.c``."""
        self._finish(self._grid, ctypes.byref(self._steps[s]))
