"""Ways to run a grid. All give the same results; ``reference`` is the specification."""

from typing import Literal

from torch import Tensor

from gridlstm.block import Block
from gridlstm.checks import autocast_dtype
from gridlstm.engines import reference, wavefront
from gridlstm.engines.native import reasons_against

__all__ = ["ENGINES", "Engine", "explain", "reference", "wavefront"]

Engine = Literal["reference", "wavefront"]

ENGINES = {"reference": reference.run, "wavefront": wavefront.run}


def explain(engine: Engine, block: Block, like: Tensor) -> str:
    """Which engine and backend a call would run on now, and why not others, one line each.

    Args:
        engine: the one that was asked for.
        block: what each block computes.
        like: a parameter of the grid.
    """
    if engine == "reference":
        return "engine: reference, as asked for"
    reasons = reasons_against(block, like, autocast_dtype(like) or like.dtype)
    lines = ["engine: wavefront", f"pointwise work: {'PyTorch' if reasons else 'compiled kernel'}"]
    return "\n".join([*lines, *(f"  not the compiled kernel: {reason}" for reason in reasons)])
