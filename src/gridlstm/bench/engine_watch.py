"""Which part of any work is spent in the wavefront engine."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torch import Tensor

from gridlstm.engines import ENGINES

__all__ = ["watch_engine"]


@contextmanager
def watch_engine(watch: Callable[[str], AbstractContextManager[object]]) -> Iterator[None]:
    """Within it, each pass of the engine runs in ``watch("engine")``: forward, and later backward.

    A pass begins with the vectors of all sides and ends with those that leave, as in the benchmark of
    the engine. Grids with ``engine="reference"`` are not watched.
    """
    run = ENGINES["wavefront"]

    def watched(*args: Any, **options: Any) -> Any:
        with watch("engine"):
            states, blocks = run(*args, **options)
        tensors = [t for state in states for t in state if t is not None]
        for node in {t.grad_fn for t in tensors if t.grad_fn is not None}:
            _watch_node(node, watch)
        return states, blocks

    ENGINES["wavefront"] = watched
    try:
        yield
    finally:
        ENGINES["wavefront"] = run


def _watch_node(node: Any, watch: Callable[[str], AbstractContextManager[object]]) -> None:
    """Watches the backward pass of one call."""
    passes = ExitStack()

    def begin(grads: tuple[Tensor, ...]) -> None:
        passes.enter_context(watch("engine"))

    def end(inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        passes.close()

    node.register_prehook(begin)
    node.register_hook(end)
