"""Which backend runs a call, and why not another."""

from typing import Literal

import torch
from torch import Tensor

from gridlstm.block import Block
from gridlstm.checks import autocast_dtype
from gridlstm.engines.backend import Backend
from gridlstm.engines.gpu import TritonBackend
from gridlstm.engines.native import NativeBackend
from gridlstm.engines.torch_backend import TorchBackend

__all__ = ["BACKENDS", "Engine", "choose_backend", "explain"]

Engine = Literal["reference", "wavefront"]

BACKENDS: tuple[type[Backend], ...] = (NativeBackend, TritonBackend, TorchBackend)
"""The fastest first. The last one supports every call."""


def choose_backend(block: Block, like: Tensor, product: torch.dtype) -> type[Backend]:
    """The first backend that has no reason against a call.

    The arguments are those of :meth:`Backend.not_supported_reasons`.
    """
    return next(b for b in BACKENDS if not b.not_supported_reasons(block, like, product))


def explain(engine: Engine, block: Block, like: Tensor) -> str:
    """Which engine and backend would run a call now, and why not the others, one line each.

    Args:
        engine: the engine of the grid.
        block: what each block computes.
        like: a parameter of the grid.
    """
    if engine == "reference":
        return 'engine: reference\n  wavefront is not used: engine="reference" was chosen'
    product = autocast_dtype(like) or like.dtype
    lines: list[str] = []
    for backend in BACKENDS:
        reasons = backend.not_supported_reasons(block, like, product)
        if not reasons:
            return "\n".join(["engine: wavefront", f"backend: {backend.name}", *lines])
        lines += [f"  {backend.name} is not used: {reason}" for reason in reasons]
    raise AssertionError("the last backend supports every call")
