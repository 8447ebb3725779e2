"""Gates in a type of low precision: so that their slopes, which the backward pass needs, are kept too.

``native/kernel.c`` keeps them the same way.
"""

import torch
from torch import Tensor

__all__ = ["decode_sigmoid", "decode_tanh", "encode_sigmoid", "encode_tanh"]

_SCALE = {torch.bfloat16: 2.0**64, torch.float16: 2.0**16}


def encode_sigmoid(g: Tensor, dtype: torch.dtype) -> Tensor:
    """A sigmoid as g, or as g - 1 where that is closer to 0: both g and 1 - g keep their precision."""
    return torch.where(g < 0.5, g, (g - 1).clamp(max=-torch.finfo(dtype).tiny))


def decode_sigmoid(kept: Tensor) -> Tensor:
    """What :func:`encode_sigmoid` was given."""
    return torch.where(kept < 0, 1 + kept, kept)


def encode_tanh(c: Tensor, dtype: torch.dtype) -> Tensor:
    """A hyperbolic tangent as c, or beyond a half as its distance from 1 or -1 with the sign of c.

    The distance is scaled so that it can be told from c.
    """
    far = ((1 - c.abs()) * _SCALE[dtype]).clamp(min=1).copysign(c)
    return torch.where(c.abs() < 0.5, c, far)


def decode_tanh(kept: Tensor, dtype: torch.dtype) -> Tensor:
    """What :func:`encode_tanh` was given."""
    return torch.where(kept.abs() < 1, kept, (1 - kept.abs() / _SCALE[dtype]).copysign(kept))
