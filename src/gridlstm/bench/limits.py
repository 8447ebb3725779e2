"""The machine's own limit: the rate of a large matrix product, timed in turn with all else."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from gridlstm.bench.timing import time_once
from gridlstm.engines.native.build import library
from gridlstm.engines.native.panels import Panels
from gridlstm.geometry import Step

__all__ = ["LIMITS", "limit_flops", "limit_of", "make_limits", "share_of_limit"]

LIMITS = {"limit": torch.float32, "limit, bfloat16": torch.bfloat16}
"""The dtypes of the products, by their names among what is timed."""


def make_limits(*, bfloat16: bool, quick: bool = False) -> dict[str, Callable[[], object]]:
    """A large product for each dtype, to be timed in the same rounds as what it limits.

    By PyTorch or, for float32, by the compiled kernel if that is faster.
    """
    works: dict[str, Callable[[], object]] = {}
    for name, dtype in LIMITS.items():
        if bfloat16 or dtype == torch.float32:
            left, right, out = (torch.randn(2 * [_size(quick)]).to(dtype) for _ in range(3))
            ways: list[Callable[[], object]] = [partial(torch.mm, left, right, out=out)]
            kernel = library()
            if kernel is not None and dtype == torch.float32:
                panels, step = Panels(kernel, right.unsqueeze(0)), Step(0, 1, ((0, 0, 1),))
                ways.append(partial(_multiply, panels, left.unsqueeze(0), step, out.unsqueeze(0)))
            works[name] = min(ways, key=lambda way: min(time_once(way) for _ in range(3)))
    return works


def _multiply(panels: Panels, x: Tensor, step: Step, out: Tensor) -> None:
    panels.multiply(x, step, out)  # Looked up at the call, so that it can be recorded.


def limit_flops(*, quick: bool = False) -> int:
    """Floating-point operations of such a product."""
    return 2 * _size(quick) ** 3


def limit_of(*, bfloat16: bool) -> str:
    """The name of the limit of work in bfloat16 or float32."""
    return "limit, bfloat16" if bfloat16 else "limit"


def share_of_limit(
    flops: float, median: Mapping[str, float], name: str, *, bfloat16: bool = False, quick: bool = False
) -> float | None:
    """The rate of ``name`` over that of a large product; ``None`` if that was not timed.

    Args:
        flops: the operations of ``name``.
        median: median seconds by name.
        name: what is compared with the limit.
        bfloat16: whether it computes in bfloat16.
        quick: whether the limit is that of a small product.
    """
    limit = median.get(limit_of(bfloat16=bfloat16))
    return None if limit is None else flops / median[name] * limit / limit_flops(quick=quick)


def _size(quick: bool) -> int:
    return 256 if quick else 2048
