"""Matrix products of a step by the compiled kernel: ``product.h``."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from gridlstm.engines.native.build import Kernel
from gridlstm.engines.products import Matrices
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import Step

__all__ = ["Panels"]

_int, _pointer = ctypes.c_int64, ctypes.c_void_p
_MULTIPLY: tuple[Any, ...] = (
    _int,
    _pointer,
    *[_int] * 3,
    _pointer,
    _pointer,
    _int,
    _pointer,
    _int,
    _int,
)
_PACK: tuple[Any, ...] = (*[_int] * 3, _pointer, *[_int] * 3, _pointer, _int)


class Panels(Matrices):
    """Matrices in the layout of ``product.h``, which multiplies few rows faster than a library.

    Args:
        kernel: the compiled kernel.
        matrices: one per weight set, ``[sets, K, N]``, float32, with any strides.

    Attributes:
        shape: ``(sets, K, N)``.
    """

    rows_are_independent = True

    def __init__(self, kernel: Kernel, matrices: Tensor) -> None:
        self.shape = sets, self._rows, self._columns = tuple(matrices.shape)
        width = kernel.panel_columns()
        size = sets * -(-self._columns // width) * self._rows * width
        self._workspace = Workspace()
        self._panels = self._workspace.take((size,), matrices)
        kernel.pack.argtypes, kernel.pack.restype = _PACK, None
        kernel.pack(
            *matrices.shape,
            matrices.data_ptr(),
            *matrices.stride(),
            self._panels.data_ptr(),
            torch.get_num_threads(),
        )
        self._multiply = kernel.multiply
        self._multiply.argtypes, self._multiply.restype = _MULTIPLY, None

    def multiply(self, x: Tensor, step: Step, out: Tensor) -> None:
        """See :meth:`Matrices.multiply`."""
        groups = step.group_array
        self._multiply(
            len(groups),
            groups.ctypes.data,
            x.shape[1],
            self._rows,
            self._columns,
            self._panels.data_ptr(),
            x.data_ptr(),
            x.stride(1),
            out.data_ptr(),
            out.stride(1),
            torch.get_num_threads(),
        )
