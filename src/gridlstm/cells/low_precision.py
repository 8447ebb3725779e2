"""Gates in a low-precision dtype, encoded so that their slopes survive for the backward pass.

``native/kernel.c`` uses the same encoding.
"""

import torch
from torch import Tensor

__all__ = ["decode_sigmoid", "decode_tanh", "encode_sigmoid", "encode_tanh"]

_SCALE = {torch.bfloat16: 2.0**64, torch.float16: 2.0**16}


def encode_sigmoid(g: Tensor, dtype: torch.dtype) -> Tensor:
    """A sigmoid as g, or as g - 1 if that is closer to 0: both g and 1 - g keep their precision."""
    return torch.where(g < 0.5, g, (g - 1).clamp(max=-torch.finfo(dtype).tiny))


def decode_sigmoid(encoded: Tensor) -> Tensor:
    """The inverse of :func:`encode_sigmoid`."""
    return torch.where(encoded < 0, 1 + encoded, encoded)


def encode_tanh(c: Tensor, dtype: torch.dtype) -> Tensor:
    """A hyperbolic tangent as c or, beyond a half, as its distance from 1 or -1 with the sign of c.

    The distance is scaled to distinguish it from c.
    """
    distance = ((1 - c.abs()) * _SCALE[dtype]).clamp(min=1).copysign(c)
    return torch.where(c.abs() < 0.5, c, distance)


def decode_tanh(encoded: Tensor, dtype: torch.dtype) -> Tensor:
    """The inverse of :func:`encode_tanh`."""
    c = (1 - encoded.abs() / _SCALE[dtype]).copysign(encoded)
    return torch.where(encoded.abs() < 1, encoded, c)
