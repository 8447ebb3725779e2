"""The accuracy of the compiled kernel's sigmoid and tanh."""

import ctypes
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gridlstm.engines.native.build import library

__all__ = ["call_kernel", "kernel_errors"]


def call_kernel(name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Applies one of the kernel's functions to a contiguous array."""
    compiled = library()
    assert compiled is not None, "there is no kernel to call"
    y = np.empty_like(x)
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (x, y))
    getattr(compiled, name)(*pointers, ctypes.c_int64(x.size))
    return y


def kernel_errors() -> dict[str, float] | None:
    """The largest errors in units in the last place; ``None`` without a compiled kernel.

    Compared at every 997th float32 below 80, of both signs, where the result is a normal number.
    """
    if library() is None:
        return None
    bits = np.arange(0, 0x7F800000, 997, dtype=np.uint32)
    x = np.concatenate([bits, bits | 0x80000000]).view(np.float32)
    x = x[np.abs(x) < 80]
    return {
        "sigmoid": _largest_error("map_sigmoid", lambda x: 1 / (1 + np.exp(-x)), x),
        "tanh": _largest_error("map_tanh", np.tanh, x),
    }


def _largest_error(
    name: str, exact: Callable[[NDArray[np.float64]], NDArray[np.float64]], x: NDArray[np.float32]
) -> float:
    want = exact(x.astype(np.float64))
    usable = np.abs(want) > np.finfo(np.float32).tiny
    error = np.abs(call_kernel(name, x).astype(np.float64) - want)[usable]
    unit = np.spacing(np.abs(want[usable]).astype(np.float32)).astype(np.float64)
    return float((error / unit).max())
