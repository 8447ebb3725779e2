"""Whether PyTorch records, replaces or transforms operations, and what the fast engine does then.

Its kernel writes memory behind PyTorch's back, its buffers outlive a call, and its backward pass is
its own. So where operations are recorded, plain ones on new tensors take their place; and what needs
a backward pass made of operations is refused.
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
    """Runs the forward pass of a module as it is, where ``torch.compile`` would compile it.

    As ``torch.compiler.disable`` does, which takes seconds to import the compiler, used or not.

    Raises:
        RuntimeError: if it is compiled for strict ``torch.export``, which allows nothing uncompiled.
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
    # The stack belongs to the thread but lacks some modes; the flag knows all but is not per thread.
    return torch._C._len_torch_dispatch_stack() > 0 or is_in_torch_dispatch_mode()


def check_transforms(grads: Sequence[Tensor | None] = ()) -> None:
    """Refuses what the fast engine cannot do, and the reference engine can.

    Args:
        grads: in a backward pass, what it is given.

    Raises:
        RuntimeError: within a transform of ``torch.func``, ``torch.vmap``, a batched backward pass or
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
    """Refuses to have a graph recorded of a call with gradients: its own backward is not part of it.

    Raises:
        RuntimeError: within ``torch.export`` or ``make_fx``.
    """
    if is_recorded():
        from torch.fx.experimental.proxy_tensor import get_proxy_mode  # Slow to import, seldom needed.

        if get_proxy_mode() is not None:
            raise RuntimeError(
                'engine="wavefront" cannot be exported or recorded with gradients: do it under '
                'torch.no_grad(), or build the grid with engine="reference"'
            )
