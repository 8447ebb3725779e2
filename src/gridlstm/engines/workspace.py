"""Buffers that outlive a call, so that the next call need not fault their pages in again."""

from collections.abc import Sequence
from math import prod
from threading import Lock

import torch
from torch import Tensor

__all__ = ["Workspace"]

_KEPT = 32
_free: list[Tensor] = []
_lock = Lock()


class Workspace:
    """The buffers of one call. They are handed on to later calls when the workspace is dropped.

    Nothing that a caller of the library may keep can alias a buffer from here. Other devices than the
    CPU have allocators that cache by themselves, so there the buffers are plain allocations.
    """

    def __init__(self) -> None:
        self._taken: list[Tensor] = []

    def take(self, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised tensor on the device of ``like`` and, unless given, of its dtype."""
        dtype = dtype or like.dtype
        if like.device.type != "cpu":
            return torch.empty(shape, dtype=dtype, device=like.device)
        length = prod(shape)
        flat = _reuse(length, dtype)
        if flat is None:
            flat = torch.empty(length, dtype=dtype)
        self._taken.append(flat)
        return flat[:length].view(*shape)

    def __del__(self) -> None:
        with _lock:
            _free.extend(self._taken)
            del _free[:-_KEPT]


def _reuse(length: int, dtype: torch.dtype) -> Tensor | None:
    """The smallest free buffer that is large enough and not wastefully larger."""
    with _lock:
        fitting = [
            (buffer.numel(), i)
            for i, buffer in enumerate(_free)
            if buffer.dtype == dtype and length <= buffer.numel() <= 2 * length
        ]
        return _free.pop(min(fitting)[1]) if fitting else None
