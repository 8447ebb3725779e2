"""The matrix products of any piece of work: recorded once, then run again without the rest of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gridlstm.engines.native import panels
from gridlstm.engines.native.build import Kernel, library
from gridlstm.engines.native.panels import Panels
from gridlstm.engines.recording import is_watched, only_watched
from gridlstm.geometry import Step

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
        step: of a product of the compiled kernel, the step of the grid that it belongs to. Then A is
            ``[n, batch, k]``, and B ``[sets, k, n]`` in the kernel's own layout.
        transposed: whether the compiled kernel computes it from A^T, as the gradient of weights.
    """

    left: Operand
    right: Operand
    out: Operand
    adds: bool = False
    part: str = ""
    step: Step | None = None
    transposed: bool = False

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * prod(self.left.shape) * self.right.shape[-1]


class Recorder(TorchDispatchMode):
    """Records the products of PyTorch and of the compiled kernel, see :meth:`listen`.

    Attributes:
        products: those so far.
        part: the name of what runs at the moment.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Product] = []
        self.part = ""
        self._memories: dict[int, int] = {}
        self._panels: list[Panels] = []  # Kept, so that none is taken for another one.

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Within it, products are recorded. The engine computes as it does without."""
        multiply, multiply_transposed = Panels.multiply, panels.multiply_transposed

        def recorded(matrices: Panels, x: Tensor, step: Step, out: Tensor) -> None:
            multiply(matrices, x, step, out)
            self._panels.append(matrices)
            left = self._operand(x)
            memory = self._number(id(matrices))
            right = Operand(memory, 0, matrices.shape, (0, 0, 0), x.dtype)
            self.products.append(Product(left, right, self._operand(out), part=self.part, step=step))

        def transposed(kernel: Kernel, left: Tensor, right: Tensor, out: Tensor, *, adds: bool) -> None:
            multiply_transposed(kernel, left, right, out, adds=adds)
            a, b, result = (self._operand(tensor) for tensor in (left.mT, right, out))
            self.products.append(Product(a, b, result, adds, self.part, transposed=True))

        Panels.multiply = recorded  # type: ignore[method-assign, assignment]
        panels.multiply_transposed = transposed
        try:
            with only_watched(), self:
                yield
        finally:
            Panels.multiply = multiply  # type: ignore[method-assign]
            panels.multiply_transposed = multiply_transposed

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
            adds = adds and (kwargs or {}).get("beta", 1) != 0
            left, right, result = (self._operand(tensor) for tensor in (*args[-2:], out))
            self.products.append(Product(left, right, result, adds, self.part))
        return out

    def _operand(self, tensor: Tensor) -> Operand:
        # Memory that was freed and used again is the same memory in a replay, too.
        memory = self._number(tensor.untyped_storage().data_ptr())
        shape = tuple(tensor.shape)
        return Operand(memory, int(tensor.storage_offset()), shape, tensor.stride(), tensor.dtype)

    def _number(self, address: int) -> int:
        return self._memories.setdefault(address, len(self._memories))


def record_products(work: Callable[[], object]) -> list[Product]:
    """Runs ``work`` once, and returns the matrix products that were computed in it, in order."""
    recorder = Recorder()
    with recorder.listen():
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
    matrices: dict[int, Panels] = {}
    for product in products:
        ours = product.step is not None
        if ours and product.right.memory not in matrices:
            matrices[product.right.memory] = Panels(_kernel(), torch.randn(product.right.shape))
        for operand in (product.left, product.out) if ours else product[:3]:
            key = operand.memory, operand.dtype
            ends[key] = max(ends.get(key, 0), operand.end)
    memories = {key: torch.randn(end).to(key[1]) for key, end in ends.items()}

    def place(operand: Operand) -> Tensor:
        memory = memories[operand.memory, operand.dtype]
        return memory.as_strided(operand.shape, operand.stride, operand.offset)

    def make_call(product: Product) -> Callable[[], object]:
        left, out = place(product.left), place(product.out)
        if product.step is not None:
            return _prepare(matrices[product.right.memory], left, product.step, out)
        right = place(product.right)
        if product.transposed:
            return partial(_multiply_transposed, left.mT, right, out, adds=product.adds)
        if not product.adds:
            return partial(torch.matmul, left, right, out=out)
        add: Callable[..., Tensor] = torch.addmm if left.ndim == 2 else torch.baddbmm
        return partial(add, out, left, right, out=out)

    calls = [make_call(product) for product in products]

    def run() -> None:
        for call in calls:
            call()

    return run


def _kernel() -> Kernel:
    kernel = library()
    assert kernel is not None, "it has computed these products"
    return kernel


def _multiply_transposed(left: Tensor, right: Tensor, out: Tensor, *, adds: bool) -> None:
    panels.multiply_transposed(_kernel(), left, right, out, adds=adds)  # It may be recorded again.


def _prepare(matrices: Panels, x: Tensor, step: Step, out: Tensor) -> Callable[[], None]:
    # As little Python as possible: the engine has none there.
    prepared = matrices.prepare(x, step, out)

    def multiply() -> None:
        if is_watched():
            matrices.multiply(x, step, out)
        else:
            prepared(torch.get_num_threads())

    return multiply
