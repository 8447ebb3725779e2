"""The matrix products of any piece of work: recorded once, then run again without the rest of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gridlstm.engines.recording import only_watched

__all__ = ["Product", "Recorder", "record_products", "replay"]

PRODUCTS = tuple(getattr(torch.ops.aten, name) for name in ("mm", "addmm", "bmm", "baddbmm"))


class Operand(NamedTuple):
    """What the speed of a product depends on, of an operand or of the result.

    Attributes:
        memory: the number of the storage that it is a part of, in the order of their first use.
        offset: where it begins there.
        shape: its shape.
        stride: its strides.
        dtype: its dtype.
    """

    memory: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def end(self) -> int:
        """Where it ends in its storage."""
        steps = zip(self.shape, self.stride, strict=True)
        return self.offset + 1 + sum((n - 1) * step for n, step in steps)


class Product(NamedTuple):
    """A matrix product ``A B`` of two operands, ``[m, k]`` and ``[k, n]``, or of batches of them.

    Attributes:
        left: A.
        right: B.
        out: the result.
        adds: whether the product is added to what the result was before.
        part: the part of the work that computed it, see :class:`Recorder`.
    """

    left: Operand
    right: Operand
    out: Operand
    adds: bool = False
    part: str = ""

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        *batch, m, k = self.left.shape
        return 2 * (batch[0] if batch else 1) * m * k * self.right.shape[-1]


class Recorder(TorchDispatchMode):
    """Records the products of what runs within it. The engine computes as it does without.

    Attributes:
        products: those so far.
        part: the name of what runs at the moment.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Product] = []
        self.part = ""
        self._memories: dict[int, int] = {}

    @contextmanager
    def watch(self, part: str) -> Iterator[None]:
        """Within it, products belong to this part."""
        before, self.part = self.part, part
        try:
            yield
        finally:
            self.part = before

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket in PRODUCTS and out.numel() > 0:
            adds = len(args) == 3 and args[0].data_ptr() == out.data_ptr()
            left, right, result = (self._operand(tensor) for tensor in (*args[-2:], out))
            self.products.append(Product(left, right, result, adds, self.part))
        return out

    def _operand(self, tensor: Tensor) -> Operand:
        # Memory that was freed and used again is the same memory in a replay, too.
        address = tensor.untyped_storage().data_ptr()
        memory = self._memories.setdefault(address, len(self._memories))
        shape = tuple(tensor.shape)
        return Operand(memory, int(tensor.storage_offset()), shape, tensor.stride(), tensor.dtype)


def record_products(work: Callable[[], object]) -> list[Product]:
    """Runs ``work`` once, and returns the matrix products that PyTorch computed in it, in order."""
    recorder = Recorder()
    with only_watched(), recorder:
        work()
    return recorder.products


def replay(products: Sequence[Product]) -> Callable[[], None]:
    """A function that runs these products in the same order, with the same layouts in memory.

    Operands that shared memory share it again, at the same distances, so that a step does not find
    more in the caches than the products of the work would find if nothing ran between them. In the work
    itself, an operand may be in a cache because it has just been computed: a time below that of the
    products is possible where they are limited by memory.

    Values are random. Results are operands of later products, as in the work; without what happens
    in between, they may grow until they overflow. This takes no time, unlike numbers close to zero.
    """
    ends: dict[tuple[int, torch.dtype], int] = {}
    for product in products:
        for operand in (product.left, product.right, product.out):
            key = operand.memory, operand.dtype
            ends[key] = max(ends.get(key, 0), operand.end)
    memories = {key: torch.randn(end).to(key[1]) for key, end in ends.items()}

    def place(operand: Operand) -> Tensor:
        memory = memories[operand.memory, operand.dtype]
        return memory.as_strided(operand.shape, operand.stride, operand.offset)

    calls = [(place(p.left), place(p.right), place(p.out), p.adds) for p in products]

    def run() -> None:
        for left, right, out, adds in calls:
            if not adds:
                torch.matmul(left, right, out=out)
            elif left.ndim == 2:
                torch.addmm(out, left, right, out=out)
            else:
                torch.baddbmm(out, left, right, out=out)

    return run
