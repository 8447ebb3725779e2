"""How a call reaches the wavefront engine: directly, as an operator of a graph, or in a transform.

In a graph that ``torch.compile``, ``torch.export`` or ``make_fx`` records, a grid is one node, the
operator ``gridlstm::wavefront``. Transforms of ``torch.func`` call the same operator. All three share
the loops over the steps, :func:`passes.forward_pass` and :func:`passes.backward_pass`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from gridlstm.block import Block, Dropout, Kept, PhaseWeights
from gridlstm.checks import autocast_dtype
from gridlstm.engines import wavefront
from gridlstm.engines.library import run_forward
from gridlstm.engines.passes import flatten, grouped, present, spread
from gridlstm.engines.recording import check_transforms, is_graph, is_transformed
from gridlstm.engines.transforms import run_transformed
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
    zoneout: Kept | None = None,
    trace: bool = False,
    recompute: bool = False,
) -> tuple[list[State], list[State] | None]:
    """Runs a grid; see :func:`gridlstm.engines.wavefront.run`."""
    graph = is_graph()
    if not graph:
        check_transforms()
        if not is_transformed():
            options: dict[str, Any] = {"mask": mask, "dropout": dropout, "zoneout": zoneout}
            return wavefront.run(
                block, shape, weights, incoming, **options, trace=trace, recompute=recompute
            )
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
        ("boundary" if recompute else "gates") if needed else "nothing",
        mask,
        *((None, None) if dropout is None else dropout),
        *((None, None) if zoneout is None else zoneout),
    )
    results = (run_forward if graph else run_transformed)(*arguments, tensors)
    states = grouped(State, spread(sides_given * (2 if trace else 1), results))
    return states[: len(incoming)], states[len(incoming) :] if trace else None
