"""The arguments of a grid that networks made of grids pass on to it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import torch
from torch import Tensor

from gridlstm.cells import Output
from gridlstm.engines import Engine
from gridlstm.regularisation import Probabilities

__all__ = ["GridOptions", "Init"]

Init = Callable[[Tensor], object]


class GridOptions(TypedDict, total=False):
    """The arguments of :class:`GridLSTM` that networks made of grids pass on to it."""

    bias: bool
    output: Output
    forget_bias: float | None
    init: Init
    layer_norm: bool | Sequence[str]
    dropout: float
    dropout_tied: Sequence[str]
    dropout_between: Sequence[str] | None
    zoneout: Probabilities | Mapping[str, Probabilities]
    engine: Engine
    recompute: bool
    device: torch.device | str | None
    dtype: torch.dtype | None
