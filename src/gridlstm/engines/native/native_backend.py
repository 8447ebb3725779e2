"""The backend in C; ``torch_backend.py`` computes the same."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import torch
from torch import Tensor

from gridlstm.block import Block
from gridlstm.engines.backend import Backend, Boundary, kernel_reasons
from gridlstm.engines.buffers import Buffers, Call, Gradients
from gridlstm.engines.native import panels
from gridlstm.engines.native.build import library, load_kernel
from gridlstm.engines.native.compiler import describe_processors
from gridlstm.engines.native.layout import ProductStruct, fill_grid, fill_steps, kind_of
from gridlstm.engines.native.panels import Panels
from gridlstm.engines.products import Matrices
from gridlstm.engines.recording import is_watched

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


@lru_cache(maxsize=1)
def _is_intel() -> bool:
    """Whether PyTorch's library for products, MKL, was written for this processor.

    For many rows it is then hard to beat. On other processors it uses shorter vectors than they have.
    """
    return "GenuineIntel" in "".join(describe_processors())


class NativeBackend(Backend):
    """Calls the compiled kernel, once per method; see :class:`Backend`."""

    name = "compiled kernel"

    def __init__(
        self, call: Call, buffers: Buffers, gradients: Gradients | None, boundary: Boundary
    ) -> None:
        super().__init__(call, buffers, gradients, boundary)
        like = buffers.hidden.data
        grid, self._alive = fill_grid(call, boundary, like)
        self._grid = ctypes.byref(grid)
        self._steps = fill_steps(call, buffers, gradients)
        self._first, self._size = self._steps.ctypes.data, self._steps.strides[0]
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
        reasons += kernel_reasons(
            block, like, product, _SUFFIXES, lambda cell: kind_of(cell) is not None
        )
        if not reasons and isinstance(kernel := load_kernel(), str):  # Compiles it, so it comes last.
            reasons.append(f"it is not compiled: {kernel}")
        return reasons

    @staticmethod
    def pack(matrices: Tensor, call: Call) -> Matrices:
        """For ``product.h`` where it is faster than PyTorch; see :meth:`Backend.pack`."""
        kernel, suits = library(), call.has_few_rows or not _is_intel()
        if kernel is None or matrices.dtype != torch.float32 or not suits:
            return Backend.pack(matrices, call)
        return Panels(kernel, matrices)

    @staticmethod
    def multiply_transposed(left: Tensor, right: Tensor, out: Tensor, *, adds: bool) -> None:
        """The same; see :meth:`Backend.multiply_transposed`."""
        kernel = library()
        if kernel is None or left.dtype != torch.float32 or _is_intel() or left.numel() == 0:
            Backend.multiply_transposed(left, right, out, adds=adds)
        else:
            panels.multiply_transposed(kernel, left, right, out, adds=adds)

    def run(self, steps: range, products: Sequence[Matrices]) -> None:
        """In one call, if all products are those of ``product.h``; see :meth:`Backend.run`."""
        if not self._run_at_once("run", steps, products):
            super().run(steps, products)

    def run_back(self, steps: range, products: Sequence[Matrices]) -> None:
        """The same; see :meth:`Backend.run_back`."""
        if not self._run_at_once("run_back", steps, products):
            super().run_back(steps, products)

    def _run_at_once(self, name: str, steps: range, products: Sequence[Matrices]) -> bool:
        kernel, ours = library(), [p for p in products if isinstance(p, Panels)]
        if kernel is None or len(ours) < len(products) or is_watched():
            return False
        structs = (ProductStruct * len(ours))(
            *(
                ProductStruct(*p.shape[1:], columns.start, p.address)
                for p, columns in zip(ours, self.call.columns, strict=True)
            )
        )
        getattr(kernel, name)(
            self._grid, self._at(steps.start), ctypes.c_int64(len(steps)), ctypes.byref(structs)
        )
        return True

    def enter(self, s: int) -> None:
        """Calls ``enter`` of ``kernel.c``."""
        self._enter(self._grid, self._at(s))

    def read(self, s: int, p: int) -> None:
        """Calls ``read`` of ``kernel.c``."""
        self._read(self._grid, self._at(s), ctypes.c_int64(p))

    def forward(self, s: int, p: int) -> None:
        """Calls ``forward`` of ``kernel.c``."""
        self._forward(self._grid, self._at(s), ctypes.c_int64(p))

    def backward(self, s: int, p: int) -> None:
        """Calls ``backward`` of ``kernel.c``."""
        self._backward(self._grid, self._at(s), ctypes.c_int64(p))

    def finish(self, s: int) -> None:
        """Calls ``finish`` of ``kernel.c``."""
        self._finish(self._grid, self._at(s))

    def _at(self, s: int) -> ctypes.c_void_p:
        """The address of a ``Step``."""
        return ctypes.c_void_p(self._first + s * self._size)
