"""Whether PyTorch is recording, replacing or transforming operations.

The fast engine's kernel writes memory without PyTorch's knowledge, its buffers outlive a call, and its
backward pass is hand-written. So while operations are recorded it runs plain PyTorch operations on new
tensors, and it raises an error where a backward pass made of such operations is needed.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

__all__ = ["check_recording", "check_transforms", "is_recorded", "uncompiled"]

P = ParamSpec("P")
R = TypeVar("R")

_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # Since PyTorch 2.7.


def uncompiled(forward: Callable[P, R]) -> Callable[P, R]:
    """Keeps ``torch.compile`` from compiling the forward pass of a module.

    Like ``torch.compiler.disable``, which takes seconds to import the compiler even if it is not used.

    Raises:
        RuntimeError: under strict ``torch.export``, which does not allow uncompiled code.
    """
    outside = _disable_dynamo(forward)

    @wraps(forward)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.compiler.is_dynamo_compiling():
            return forward(*args, **kwargs)
        if _is_exporting():
            raise RuntimeError("GridLSTM does not support strict torch.export: pass strict=False")
        return outside(*args, **kwargs)

    return run


def is_recorded() -> bool:
    """Whether operations go through a dispatch mode: ``make_fx``, ``torch.export``, fake tensors."""
    # The stack is per thread but lacks some modes; the flag covers all modes but not per thread.
    return torch._C._len_torch_dispatch_stack() > 0 or is_in_torch_dispatch_mode()


def check_transforms(grads: Sequence[Tensor | None] = ()) -> None:
    """Raises an error for what only the reference engine supports.

    Args:
        grads: in a backward pass, its incoming gradients.

    Raises:
        RuntimeError: inside a transform of ``torch.func``, ``torch.vmap``, a batched backward pass or
            ``torch.jit.trace``.
    """
    if torch._C._are_functorch_transforms_active() or any(
        t is not None and torch._C._functorch.is_legacy_batchedtensor(t) for t in grads
    ):
        raise RuntimeError(
            'engine="wavefront" does not support torch.func transforms, torch.vmap or batched '
            'gradients: build the grid with engine="reference"'
        )
    if torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            'engine="wavefront" does not support torch.jit.trace: build the grid with '
            'engine="reference", or use torch.export'
        )


def check_recording() -> None:
    """Raises an error if a graph of a call with gradients is recorded: it would lack the backward.

    Raises:
        RuntimeError: inside ``torch.export`` or ``make_fx``.
    """
    if is_recorded():
        from torch.fx.experimental.proxy_tensor import get_proxy_mode  # Slow to import, rarely needed.

        if get_proxy_mode() is not None:
            raise RuntimeError(
                'engine="wavefront" cannot be exported or recorded with gradients: do it inside '
                'torch.no_grad(), or build the grid with engine="reference"'
            )
