"""How a call reaches the wavefront engine: directly, as an operator of a graph, or in a transform.

In a graph that ``torch.compile``, ``torch.export`` or ``make_fx`` records, a grid is one node, the
operator ``gridlstm::wavefront``. The transforms of ``torch.func`` need an ``autograd.Function`` of a
certain form, which calls the same operators. All three share the loops over the steps.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from gridlstm.block import Block, Dropout, PhaseWeights
from gridlstm.checks import autocast_dtype
from gridlstm.engines import batching as _  # Registers how torch.vmap runs the operators.
from gridlstm.engines import wavefront
from gridlstm.engines.library import (
    OPTIONS,
    differentiate,
    present,
    refuse,
    run_backward,
    run_forward,
    save,
    spread,
)
from gridlstm.engines.recording import check_transforms, is_graph, is_transformed
from gridlstm.engines.wavefront import flatten, grouped
from gridlstm.geometry import GridShape
from gridlstm.state import State

__all__ = ["run"]


def run(
    block: Block,
    shape: GridShape,
    weights: Sequence[PhaseWeights],
    incoming: Sequence[State],
    *,
    mask: Bool[Tensor, "blocks batch"] | None = None,
    dropout: Dropout | None = None,
    trace: bool = False,
    recompute: bool = False,
) -> tuple[list[State], list[State] | None]:
    """Runs a grid; see :func:`gridlstm.engines.wavefront.run`."""
    graph = is_graph()
    if not graph:
        check_transforms()
        if not is_transformed():
            options: dict[str, Any] = {"mask": mask, "dropout": dropout, "trace": trace}
            return wavefront.run(block, shape, weights, incoming, **options, recompute=recompute)
    like = incoming[0].hidden
    product = autocast_dtype(like) or like.dtype
    weights = [w._replace(weight=w.weight.to(product)) for w in weights]
    tensors = present([*weights, *incoming])
    # Inside a transform, a tensor does not show that an outer transform differentiates by it.
    needed = torch.is_grad_enabled() and (not graph or any(t.requires_grad for t in tensors))
    if not needed:  # The recorded graph must not have gradients either.
        tensors = [t.detach() for t in tensors]
    sides_given = [t is not None for t in flatten(incoming)]
    arguments = (
        block.description,
        list(shape.sizes),
        [t is not None for t in flatten(weights)],
        sides_given,
        trace,
        ("states" if recompute else "gates") if needed else "nothing",
        1.0 if dropout is None else dropout.scale,
        mask,
        None if dropout is None else dropout.kept,
    )
    if graph:
        results = run_forward(*arguments, tensors)
    else:
        results = _Transformed.apply(*arguments, *tensors)  # type: ignore[no-untyped-call]
    states = grouped(State, spread(sides_given * (2 if trace else 1), results))
    return states[: len(incoming)], states[len(incoming) :] if trace else None


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
    *options, weights, saved, grads = arguments
    gradients: tuple[Tensor, ...] = _TransformedBackward.apply(  # type: ignore[no-untyped-call]
        (len(weights), len(saved), len(grads)), *options, *weights, *saved, *grads
    )
    return gradients


class _TransformedBackward(torch.autograd.Function):
    """The backward operator, which cannot be differentiated, for ``torch.func``."""

    generate_vmap_rule = True

    @staticmethod
    def forward(counts: tuple[int, int, int], *arguments: Any) -> tuple[Tensor, ...]:
        options, tensors = arguments[:-sum(counts)], list(arguments[-sum(counts):])
        first, second = counts[0], counts[0] + counts[1]
        lists = tensors[:first], tensors[first:second], tensors[second:]
        return tuple(run_backward(*options, *lists))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Nothing is saved."""

    backward = staticmethod(refuse)
