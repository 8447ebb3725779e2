"""Matrix products by the compiled kernel, ``product.h``: those of a step, and gradients of weights."""

import ctypes
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from gridlstm.engines.native.build import Kernel
from gridlstm.engines.products import Matrices
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import Step

__all__ = ["Panels", "multiply_transposed"]

_int, _pointer = ctypes.c_int64, ctypes.c_void_p
_ints, _pointers = [_int], [_pointer]
_PACK: list[Any] = _ints * 3 + _pointers + _ints * 3 + _pointers + _ints
_MULTIPLY: list[Any] = _ints + _pointers + _ints * 3 + _pointers * 2 + _ints + _pointers + _ints * 2
_TRANSPOSED: list[Any] = _ints * 3 + (_pointers + _ints) * 3 + _ints + _pointers + _ints


@lru_cache(maxsize=1)
def _functions(kernel: Kernel) -> tuple[Any, Any, int]:
    """``pack`` and ``multiply`` with the types of their arguments, and the width of a panel."""
    kernel.pack.argtypes, kernel.pack.restype = _PACK, None
    kernel.multiply.argtypes, kernel.multiply.restype = _MULTIPLY, None
    return kernel.pack, kernel.multiply, kernel.panel_columns()


class Panels(Matrices):
    """Matrices in the layout of ``product.h``, which multiplies few rows faster than a library.

    Args:
        kernel: the compiled kernel.
        matrices: one per weight set, ``[sets, K, N]``, float32, with any strides.

    Attributes:
        shape: ``(sets, K, N)``.
        address: where they begin in memory.
    """

    def __init__(self, kernel: Kernel, matrices: Tensor) -> None:
        self.shape = sets, self._rows, self._columns = tuple(matrices.shape)
        pack, self._multiply, width = _functions(kernel)
        size = sets * -(-self._columns // width) * self._rows * width
        self._workspace = Workspace()
        self._panels = self._workspace.take((size,), matrices)
        self.address = self._panels.data_ptr()
        pack(
            *matrices.shape,
            matrices.data_ptr(),
            *matrices.stride(),
            self.address,
            torch.get_num_threads(),
        )

    def multiply(self, x: Tensor, step: Step, out: Tensor) -> None:
        """See :meth:`Matrices.multiply`."""
        self.prepare(x, step, out)(torch.get_num_threads())

    def prepare(self, x: Tensor, step: Step, out: Tensor) -> Callable[[int], None]:
        """A function that multiplies on so many threads. The caller keeps the operands alive."""
        groups = step.group_array
        return partial(
            self._multiply,
            len(groups),
            groups.ctypes.data,
            x.shape[1],
            self._rows,
            self._columns,
            self.address,
            x.data_ptr(),
            x.stride(1),
            out.data_ptr(),
            out.stride(1),
        )


def multiply_transposed(
    kernel: Kernel, left: Tensor, right: Tensor, out: Tensor, *, adds: bool
) -> None:
    """``out = left^T right``, or added to ``out``.

    Args:
        kernel: the compiled kernel.
        left: ``[rows, M]``, float32, with contiguous rows, like the others.
        right: ``[rows, N]``; at least one row.
        out: ``[M, N]``.
        adds: whether to add.
    """
    function, space_for = _transposed(kernel)
    (rows, M), N, threads = left.shape, right.shape[1], torch.get_num_threads()
    space = Workspace().take((space_for(N, threads),), left)
    operands = [(t.data_ptr(), t.stride(0)) for t in (left, right, out)]
    function(rows, M, N, *chain.from_iterable(operands), adds, space.data_ptr(), threads)


@lru_cache(maxsize=1)
def _transposed(kernel: Kernel) -> tuple[Any, Any]:
    """``multiply_transposed`` and ``gradient_space`` with the types of their arguments."""
    kernel.multiply_transposed.argtypes, kernel.multiply_transposed.restype = _TRANSPOSED, None
    kernel.gradient_space.argtypes, kernel.gradient_space.restype = _ints * 2, _int
    return kernel.multiply_transposed, kernel.gradient_space
