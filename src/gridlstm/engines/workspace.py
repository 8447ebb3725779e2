"""Buffers that outlive a call, so that the next call need not fault their pages in again."""

import os
from collections import deque
from collections.abc import Sequence
from itertools import count
from math import prod
from threading import Lock

import torch
from torch import Tensor, nn

from gridlstm.engines.tracing import is_recorded

__all__ = ["Workspace", "pitch"]

# A buffer that this many requests have passed over is given back: the shapes have changed for good.
_PATIENCE = 100
_requests = count()
_lock = Lock()
_free: list[tuple[int, Tensor]] = []  # When it was returned, and the buffer.
_returned: deque[Tensor] = deque()


def _start_anew() -> None:
    """In a forked process: the thread that held the lock, perhaps amid its work, is not there."""
    global _lock
    _lock = Lock()
    _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def pitch(columns: int) -> int:
    """From one row of a matrix to the next: ``columns``, rounded up.

    A product takes up to 1.4 times as long if the rows of its result start at odd places.
    """
    return -(-columns // 8) * 8


class Workspace:
    """The buffers of one call. They are handed on to later calls when the workspace is dropped.

    Nothing that a caller of the library may keep can alias a buffer from here. Other devices than the
    CPU have allocators that cache by themselves, so there the buffers are plain allocations; and so
    they are for tensors of other kinds, such as those that only stand for one, and while operations
    are recorded.
    """

    def __init__(self) -> None:
        self._taken: list[Tensor] = []

    def take(self, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised tensor on the device of ``like`` and, unless given, of its dtype.

        Its rows are a :func:`pitch` apart.
        """
        dtype = dtype or like.dtype
        columns, shape = shape[-1], (*shape[:-1], pitch(shape[-1]))
        if like.device.type != "cpu" or type(like) not in (Tensor, nn.Parameter) or is_recorded():
            return torch.empty(shape, dtype=dtype, device=like.device)[..., :columns]
        length = prod(shape)
        flat = _reuse(length, dtype)
        if flat is None:
            with torch.inference_mode(False):  # A later call may need gradients.
                flat = torch.empty(length, dtype=dtype, device=like.device)
        self._taken.append(flat)
        return flat[:length].view(*shape)[..., :columns]

    def __del__(self) -> None:
        # May run at any time, also while this thread holds the lock: appending needs none.
        _returned.extend(self._taken)


def _reuse(length: int, dtype: torch.dtype) -> Tensor | None:
    """The smallest free buffer that is large enough and not wastefully larger."""
    with _lock:
        now = next(_requests)
        _free[:] = [(then, buffer) for then, buffer in _free if now - then < _PATIENCE]
        while _returned:
            _free.append((now, _returned.popleft()))
        fitting = [
            (buffer.numel(), place)
            for place, (_, buffer) in enumerate(_free)
            if buffer.dtype == dtype and length <= buffer.numel() <= 2 * length
        ]
        return _free.pop(min(fitting)[1])[1] if fitting else None
