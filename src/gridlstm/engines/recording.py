"""Whether PyTorch is recording, replacing or transforming operations.

The fast engine's kernel writes memory without PyTorch's knowledge, its buffers outlive a call, and its
backward pass is hand-written. So in a recorded graph and inside transforms it is one operator, see
:mod:`gridlstm.engines.operator`. Other dispatch modes get plain PyTorch operations on new tensors.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch._compile import _disable_dynamo
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

__all__ = [
    "check_batched",
    "check_transforms",
    "has_saved_hooks",
    "inside_operator",
    "is_graph",
    "is_recorded",
    "is_transformed",
    "is_watched",
    "only_watched",
    "uncompiled",
]

P = ParamSpec("P")
R = TypeVar("R")

_inside: ContextVar[bool] = ContextVar("inside an operator", default=False)
_watched: ContextVar[bool] = ContextVar("watched", default=False)
_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # Since PyTorch 2.7.


def uncompiled(forward: Callable[P, R]) -> Callable[P, R]:
    """Keeps ``torch.compile`` from compiling the forward pass of a grid with the reference engine.

    It would unroll the loop over all blocks. Like ``torch.compiler.disable``, which takes seconds to
    import the compiler even if it is not used.

    Raises:
        RuntimeError: under strict ``torch.export``, which does not allow uncompiled code.
    """
    outside = _disable_dynamo(forward)

    @wraps(forward)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        grid: Any = args[0]
        if not torch.compiler.is_dynamo_compiling() or grid.engine == "wavefront":
            return forward(*args, **kwargs)
        if _is_exporting():
            raise RuntimeError(
                'engine="reference" does not support strict torch.export: pass strict=False, or use '
                'engine="wavefront"'
            )
        return outside(*args, **kwargs)

    return run


@contextmanager
def inside_operator(like: Tensor) -> Iterator[None]:
    """For the work of an operator: real tensors, no autocast, and gradients only for who asks.

    PyTorch switches autograd off inside of operators, so that ``torch.enable_grad`` has no effect; the
    default backward of a cell needs it.
    """
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView):
        excluded = excluded.remove(key)
    included = torch._C._dispatch_tls_local_include_set()
    token = _inside.set(True)
    try:
        with (
            torch.no_grad(),
            torch.autocast(like.device.type, enabled=False),
            torch._C._ForceDispatchKeyGuard(included, excluded),
        ):
            yield
    finally:
        _inside.reset(token)


@contextmanager
def only_watched() -> Iterator[None]:
    """For a dispatch mode that only watches: the engine computes as it does without the mode.

    It does so product by product, even where it could run many steps at once.
    """
    tokens = _inside.set(True), _watched.set(True)
    try:
        yield
    finally:
        _inside.reset(tokens[0])
        _watched.reset(tokens[1])


def is_watched() -> bool:
    """Whether something watches every product, see :func:`only_watched`."""
    return _watched.get()


def is_recorded() -> bool:
    """Whether operations go through a dispatch mode: ``make_fx``, ``torch.export``, fake tensors."""
    if _inside.get():  # Modes see the operator, not what it does; while it runs, the flag may be set.
        return False
    # The stack is per thread but lacks some modes; the flag covers all modes but not per thread.
    return torch._C._len_torch_dispatch_stack() > 0 or is_in_torch_dispatch_mode()


def is_graph() -> bool:
    """Whether a graph of operators is recorded: ``torch.compile``, ``torch.export``, ``make_fx``."""
    if torch.compiler.is_dynamo_compiling():
        return True
    if not is_recorded():
        return False
    from torch.fx.experimental.proxy_tensor import get_proxy_mode  # Slow to import, rarely needed.

    return get_proxy_mode() is not None


def is_transformed() -> bool:
    """Whether a transform of ``torch.func`` is active, such as ``grad`` or ``vmap``."""
    return torch._C._are_functorch_transforms_active()


def has_saved_hooks() -> bool:
    """Whether hooks replace the tensors that are saved for a backward pass."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)
    return torch.is_grad_enabled() and top(True) is not None


def check_transforms() -> None:
    """Raises an error for what only the reference engine supports.

    Raises:
        RuntimeError: inside ``torch.func.jvp``, ``jacfwd``, ``hessian`` and ``torch.jit.trace``.
    """
    if any(level.key() == TransformType.Jvp for level in get_interpreter_stack() or ()):
        raise RuntimeError(
            'engine="wavefront" does not support forward-mode derivatives: use engine="reference"'
        )
    if torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            'engine="wavefront" does not support torch.jit.trace: build the grid with '
            'engine="reference", or use torch.export'
        )


def check_batched(grads: Sequence[Tensor | None]) -> None:
    """Raises an error for a backward pass with batched gradients, outside ``torch.func``.

    Args:
        grads: the incoming gradients.

    Raises:
        RuntimeError: with ``is_grads_batched=True`` or ``vectorize=True``, and for a graph that was
            made outside the transform that differentiates it.
    """
    if is_transformed() or any(
        t is not None and torch._C._functorch.is_legacy_batchedtensor(t) for t in grads
    ):
        raise RuntimeError(
            'engine="wavefront" does not support batched gradients: use torch.func.jacrev, or build '
            'the grid with engine="reference"'
        )
