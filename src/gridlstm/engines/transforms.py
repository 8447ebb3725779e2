"""The operators inside the transforms of ``torch.func``.

These need an ``autograd.Function`` with a ``setup_context``, where a graph needs the gradient of the
operator itself, and rules by which ``torch.vmap`` runs the operators on a batch of their arguments.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gridlstm.engines.library import OPTIONS, differentiate, refuse, run_backward, run_forward, save

__all__ = ["run_transformed"]

Batched = tuple[list[Tensor], list[int]]
"""The results of an operator, and where each has the batched axis."""


def run_transformed(*arguments: Any) -> tuple[Tensor, ...]:
    """Like :func:`run_forward`, in a transform."""
    *options, tensors = arguments
    results: tuple[Tensor, ...] = _Transformed.apply(*options, *tensors)  # type: ignore[no-untyped-call]
    return results


class _Transformed(torch.autograd.Function):
    """The operator with its gradient, for ``torch.func``."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        return tuple(run_forward(*arguments[:OPTIONS], list(arguments[OPTIONS:])))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        save(ctx, (*inputs[:OPTIONS], inputs[OPTIONS:]), output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return *[None] * OPTIONS, *differentiate(ctx, grads, _backward)


def _backward(*arguments: Any) -> tuple[Tensor, ...]:
    *options, tensors, saved, grads = arguments
    gradients: tuple[Tensor, ...] = _TransformedBackward.apply(  # type: ignore[no-untyped-call]
        (len(tensors), len(saved), len(grads)), *options, *tensors, *saved, *grads
    )
    return gradients


class _TransformedBackward(torch.autograd.Function):
    """The backward operator, which cannot be differentiated, for ``torch.func``."""

    generate_vmap_rule = True

    @staticmethod
    def forward(counts: tuple[int, int, int], *arguments: Any) -> tuple[Tensor, ...]:
        options, tensors = arguments[: -sum(counts)], list(arguments[-sum(counts) :])
        first, second = counts[0], counts[0] + counts[1]
        lists = tensors[:first], tensors[first:second], tensors[second:]
        return tuple(run_backward(*options, *lists))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Nothing is saved."""

    backward = staticmethod(refuse)


@run_forward.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Batched:
    """Samples of all calls are one batch, unless the calls have different weights."""
    *options, mask, kept, scale, old_hidden, old_memory, tensors = arguments
    *_, mask_dim, kept_dim, scale_dim, hidden_dim, memory_dim, dims = in_dims
    weights = sum(options[2])
    if scale_dim is not None or any(dim is not None for dim in dims[:weights]):
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
    folded = fold(mask, mask_dim), fold(kept, kept_dim, 2), scale
    old = fold(old_hidden, hidden_dim), fold(old_memory, memory_dim)
    results = run_forward(*options, *folded, *old, [*tensors[:weights], *sides])
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
