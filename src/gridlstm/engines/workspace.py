"""Buffers that outlive a call, so that the next call does not page-fault them in again."""

import os
from collections import deque
from collections.abc import Sequence
from itertools import count
from math import prod
from threading import Lock

import torch
from torch import Tensor, nn

from gridlstm.engines.recording import is_recorded

__all__ = ["Workspace", "pitch"]

# A buffer that this many requests in a row did not use is freed: shapes have changed for good.
_PATIENCE = 100
_requests = count()
_lock = Lock()
_free: list[tuple[int, Tensor]] = []  # The request at which it was returned, and the buffer.
_returned: deque[Tensor] = deque()


def _start_anew() -> None:
    """In a forked child: the thread that held the lock, perhaps in the middle of its work, is gone."""
    global _lock
    _lock = Lock()
    _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def pitch(columns: int) -> int:
    """The distance between the rows of a matrix: ``columns``, rounded up to a multiple of 8.

    A product takes up to 1.4 times as long if the rows of its result are not aligned.
    """
    return -(-columns // 8) * 8


class Workspace:
    """The buffers of one call. Later calls reuse them once the workspace is garbage-collected.

    No tensor that is returned to the user aliases a buffer from here. Devices other than the CPU have
    caching allocators, so there the buffers are plain allocations. The same holds for tensor
    subclasses, such as fake tensors, and while operations are recorded.

    Args:
        reuse: ``False`` for buffers that outlive the workspace.
    """

    def __init__(self, *, reuse: bool = True) -> None:
        self._reuse = reuse
        self._taken: list[Tensor] = []

    def take(self, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised tensor on the device of ``like``, with rows a :func:`pitch` apart.

        Args:
            shape: the shape; its last axis is padded in memory.
            like: a tensor on the device.
            dtype: the dtype. Default: that of ``like``.
        """
        dtype = dtype or like.dtype
        columns, shape = shape[-1], (*shape[:-1], pitch(shape[-1]))
        real = like.device.type == "cpu" and type(like) in (Tensor, nn.Parameter)
        if not (self._reuse and real) or is_recorded():
            return torch.empty(shape, dtype=dtype, device=like.device)[..., :columns]
        length = prod(shape)
        flat = _reuse(length, dtype)
        if flat is None:
            with torch.inference_mode(False):  # A later call may need gradients.
                flat = torch.empty(length, dtype=dtype, device=like.device)
        self._taken.append(flat)
        return flat[:length].view(*shape)[..., :columns]

    def __del__(self) -> None:
        # May run at any time, even while this thread holds the lock: appending needs no lock.
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
