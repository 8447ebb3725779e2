"""How ``torch.vmap`` runs the operators on a batch of their arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gridlstm.engines.library import run_backward, run_forward

__all__: list[str] = []

Batched = tuple[list[Tensor], list[int]]
"""The results of an operator, and where each has the batched axis."""


@run_forward.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Batched:
    """Samples of all calls are one batch, unless the calls have different weights."""
    *options, mask, kept, tensors = arguments
    *_, mask_dim, kept_dim, dims = in_dims
    weights = sum(options[2])
    if any(dim is not None for dim in dims[:weights]):
        return _one_by_one(run_forward, info, in_dims, arguments)
    count = info.batch_size

    def fold(tensor: Tensor | None, dim: int | None, batch: int = 1) -> Tensor | None:
        """All calls side by side along the axis of samples."""
        if tensor is None:
            return None
        if dim is None:
            shape = [*tensor.shape[:batch], count, *tensor.shape[batch:]]
            return tensor.unsqueeze(batch).expand(shape).flatten(batch, batch + 1)
        return tensor.movedim(dim, batch).flatten(batch, batch + 1)

    sides = [fold(t, dim) for t, dim in zip(tensors[weights:], dims[weights:], strict=True)]
    results = run_forward(
        *options, fold(mask, mask_dim), fold(kept, kept_dim, 2), [*tensors[:weights], *sides]
    )
    return [t.unflatten(1, (count, t.shape[1] // count)) for t in results], [1] * len(results)


@run_backward.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Batched:
    """One call after the other, because each has its own gradient of the weights."""
    return _one_by_one(run_backward, info, in_dims, arguments)


def _one_by_one(
    operator: Callable[..., list[Tensor]],
    info: Any,
    in_dims: Sequence[Any],
    arguments: Sequence[Any],
) -> Batched:
    def select(argument: Any, dim: Any, number: int) -> Any:
        if isinstance(dim, list | tuple):
            return [select(a, d, number) for a, d in zip(argument, dim, strict=True)]
        return argument if dim is None else argument.select(dim, number)

    calls = [
        operator(*(select(a, d, number) for a, d in zip(arguments, in_dims, strict=True)))
        for number in range(info.batch_size)
    ]
    results = [torch.stack(values) for values in zip(*calls, strict=True)]
    return results, [0] * len(results)
