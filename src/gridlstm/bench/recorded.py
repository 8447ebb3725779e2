"""The matrix products of any piece of work: recorded once, then run again without the rest of it."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Product", "record_products", "replay"]

PRODUCTS = tuple(getattr(torch.ops.aten, name) for name in ("mm", "addmm", "bmm", "baddbmm"))


class Operand(NamedTuple):
    """What the speed of a product depends on, of one of its operands."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class Product(NamedTuple):
    """A matrix product ``A B`` of two operands, ``[m, k]`` and ``[k, n]``, or of batches of them."""

    left: Operand
    right: Operand

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        *batch, m, k = self.left.shape
        return 2 * (batch[0] if batch else 1) * m * k * self.right.shape[-1]


class _Recorder(TorchDispatchMode):
    def __init__(self, products: list[Product]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = products

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.overloadpacket in PRODUCTS:
            left, right = (Operand(tuple(t.shape), t.stride(), t.dtype) for t in args[-2:])
            self.products.append(Product(left, right))
        return func(*args, **(kwargs or {}))


def record_products(work: Callable[[], object]) -> list[Product]:
    """Runs ``work`` once, and returns the matrix products that PyTorch computed in it, in order."""
    products: list[Product] = []
    with _Recorder(products):
        work()
    return products


def replay(products: Sequence[Product]) -> Callable[[], None]:
    """A function that runs these products on random operands, in the same order.

    Products of equal shape share their operands. In the work itself these may come from memory rather
    than from a cache, so this is a lower bound.
    """
    operands = {
        product: (_random(product.left), _random(product.right), _result(product))
        for product in Counter(products)
    }
    calls = [operands[product] for product in products]

    def run() -> None:
        for left, right, out in calls:
            torch.matmul(left, right, out=out)

    return run


def _random(operand: Operand) -> Tensor:
    extent = 1 + sum((n - 1) * step for n, step in zip(operand.shape, operand.stride, strict=True))
    values = torch.randn(extent).to(operand.dtype)
    return values.as_strided(operand.shape, operand.stride)


def _result(product: Product) -> Tensor:
    *leading, _ = product.left.shape
    return torch.empty(*leading, product.right.shape[-1], dtype=product.left.dtype)
