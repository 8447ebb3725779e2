"""The cells in Triton: from preactivations to new vectors, and backward, as in ``native/kernel.c``.

A cell works on a tile of rows and columns. ``gates`` points to the tile in the first gate; each of the
others is ``d`` columns further. Arithmetic is in the dtype of the states, ``REAL``; ``LOW`` is that of
the operands and results of products. ``inside`` marks the part of the tile that exists, ``real`` the
rows that are not masked: the gradients of masked preactivations are zero.
"""

import triton
import triton.language as tl

__all__ = ["gru", "gru_backward", "lstm", "lstm_backward", "transfer", "transfer_backward"]


@triton.jit
def sigmoid(x):
    """The exponent is never positive, so nothing overflows."""
    e = tl.exp(-tl.abs(x))
    return tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def tanh(x):
    """With the rational function of Cephes' ``tanh`` near 0. NaN propagates."""
    a, z = tl.abs(x), x * x
    p = -1.61468768441708447952e3 + z * (-9.92877231001918586564e1 - z * 9.64399179425052238628e-1)
    q = 4.84406305325125486048e3 + z * (2.23548839060100448583e3 + z * (1.12811678491632931402e2 + z))
    e = tl.exp(-2.0 * a)
    far = 1.0 - 2.0 * e / (1.0 + e)
    return tl.where(a < 0.625, x + x * z * (p / q), tl.where(x < 0, -far, far))


@triton.jit
def encode_sigmoid(g, LOW: tl.constexpr):
    """In low precision g, or g - 1 if that is closer to 0; see ``cells/low_precision.py``."""
    if LOW.primitive_bitwidth > 16:
        return g
    tiny: tl.constexpr = 1e-30 if tl.bfloat16 == LOW else 6.103515625e-5
    shifted = g - 1.0
    return tl.where(g < 0.5, g, tl.where(shifted > -tiny, -tiny, shifted))


@triton.jit
def decode_sigmoid(encoded):
    """Both g and 1 - g, with the precision of what is closer to 0. An unencoded g is not negative."""
    shifted = encoded < 0
    return tl.where(shifted, 1.0 + encoded, encoded), tl.where(shifted, -encoded, 1.0 - encoded)


@triton.jit
def encode_tanh(c, LOW: tl.constexpr):
    """In low precision c or, beyond a half, its distance from 1 or -1, scaled, with the sign of c."""
    if LOW.primitive_bitwidth > 16:
        return c
    scale: tl.constexpr = 18446744073709551616.0 if tl.bfloat16 == LOW else 65536.0
    distance = 1.0 - tl.abs(c)
    scaled = tl.where(distance * scale < 1.0, 1.0, distance * scale)
    return tl.where(distance > 0.5, c, tl.where(c < 0, -scaled, scaled))


@triton.jit
def decode_tanh(encoded, LOW: tl.constexpr):
    """Both c and 1 - c²."""
    if LOW.primitive_bitwidth > 16:
        return encoded, 1.0 - encoded * encoded
    scale: tl.constexpr = 18446744073709551616.0 if tl.bfloat16 == LOW else 65536.0
    a = tl.abs(encoded)
    distance = tl.where(a < 1.0, 1.0 - a, a / scale)
    c = tl.where(a < 1.0, a, 1.0 - distance)
    return tl.where(encoded < 0, -c, c), distance * (2.0 - distance)


@triton.jit
def load(pointer, inside, REAL: tl.constexpr):
    """A tile, in the dtype of arithmetic."""
    return tl.load(pointer, mask=inside, other=0).to(REAL)


@triton.jit
def lstm(gates, bias, d, m, inside, STANDARD: tl.constexpr):
    """Eq. 1 from W H on: the new hidden and memory. The gates are activated in place."""
    REAL: tl.constexpr = m.dtype
    LOW: tl.constexpr = gates.dtype.element_ty
    u = sigmoid(load(gates, inside, REAL) + load(bias, inside, REAL))
    f = sigmoid(load(gates + d, inside, REAL) + load(bias + d, inside, REAL))
    o = sigmoid(load(gates + 2 * d, inside, REAL) + load(bias + 2 * d, inside, REAL))
    c = tanh(load(gates + 3 * d, inside, REAL) + load(bias + 3 * d, inside, REAL))
    tl.store(gates, encode_sigmoid(u, LOW), mask=inside)
    tl.store(gates + d, encode_sigmoid(f, LOW), mask=inside)
    tl.store(gates + 2 * d, encode_sigmoid(o, LOW), mask=inside)
    tl.store(gates + 3 * d, encode_tanh(c, LOW), mask=inside)
    new_m = f * m + u * c
    if STANDARD:
        return o * tanh(new_m), new_m
    return tanh(o * new_m), new_m


@triton.jit
def lstm_backward(gates, d, m, grad_h, grad_m, inside, real, STANDARD: tl.constexpr):
    """The gradient of the old memory. The gates are overwritten with gradients of preactivations."""
    REAL: tl.constexpr = m.dtype
    LOW: tl.constexpr = gates.dtype.element_ty
    u, not_u = decode_sigmoid(load(gates, inside, REAL))
    f, not_f = decode_sigmoid(load(gates + d, inside, REAL))
    o, not_o = decode_sigmoid(load(gates + 2 * d, inside, REAL))
    c, slope_c = decode_tanh(load(gates + 3 * d, inside, REAL), LOW)
    new_m = f * m + u * c
    if STANDARD:
        z = tanh(new_m)
        grad_z = (1.0 - z * z) * grad_h
        grad_o = grad_h * z
    else:
        z = tanh(o * new_m)
        grad_z = (1.0 - z * z) * grad_h
        grad_o = grad_z * new_m
    grad_m += grad_z * o
    tl.store(gates, tl.where(real, grad_m * c * u * not_u, 0.0), mask=inside)
    tl.store(gates + d, tl.where(real, grad_m * m * f * not_f, 0.0), mask=inside)
    tl.store(gates + 2 * d, tl.where(real, grad_o * o * not_o, 0.0), mask=inside)
    tl.store(gates + 3 * d, tl.where(real, grad_m * u * slope_c, 0.0), mask=inside)
    return grad_m * f


@triton.jit
def gru(gates, bias, d, h, inside):
    """The GRU of ``cells/gru.py``: the new hidden vector. r, z and n are activated in place."""
    REAL: tl.constexpr = h.dtype
    LOW: tl.constexpr = gates.dtype.element_ty
    r = sigmoid(load(gates, inside, REAL) + load(bias, inside, REAL))
    z = sigmoid(load(gates + d, inside, REAL) + load(bias + d, inside, REAL))
    own = load(gates + 3 * d, inside, REAL) + load(bias + 3 * d, inside, REAL)
    n = tanh(load(gates + 2 * d, inside, REAL) + load(bias + 2 * d, inside, REAL) + r * own)
    tl.store(gates, encode_sigmoid(r, LOW), mask=inside)
    tl.store(gates + d, encode_sigmoid(z, LOW), mask=inside)
    tl.store(gates + 2 * d, encode_tanh(n, LOW), mask=inside)
    tl.store(gates + 3 * d, own, mask=inside)
    return n + z * (h - n)


@triton.jit
def gru_backward(gates, d, h, grad_h, inside, real):
    """The gradient of the old hidden vector, without that by way of H."""
    REAL: tl.constexpr = h.dtype
    LOW: tl.constexpr = gates.dtype.element_ty
    r, not_r = decode_sigmoid(load(gates, inside, REAL))
    z, not_z = decode_sigmoid(load(gates + d, inside, REAL))
    n, slope_n = decode_tanh(load(gates + 2 * d, inside, REAL), LOW)
    own = load(gates + 3 * d, inside, REAL)
    grad_n = grad_h * not_z * slope_n
    tl.store(gates, tl.where(real, grad_n * own * r * not_r, 0.0), mask=inside)
    tl.store(gates + d, tl.where(real, grad_h * (h - n) * z * not_z, 0.0), mask=inside)
    tl.store(gates + 2 * d, tl.where(real, grad_n, 0.0), mask=inside)
    tl.store(gates + 3 * d, tl.where(real, grad_n * r, 0.0), mask=inside)
    return grad_h * z


@triton.jit
def transfer(gates, bias, inside, CELL: tl.constexpr, REAL: tl.constexpr):
    """Eq. 8: the new hidden vector. The preactivations stay in place."""
    tl.static_assert((CELL == "tanh") or (CELL == "relu") or (CELL == "identity"))
    x = load(gates, inside, REAL) + load(bias, inside, REAL)
    tl.store(gates, x, mask=inside)
    if CELL == "tanh":
        return tanh(x)
    if CELL == "relu":
        return tl.where(x < 0, 0.0, x)
    return x


@triton.jit
def transfer_backward(gates, grad_h, inside, real, CELL: tl.constexpr):
    """Overwrites the preactivations with their gradients."""
    if CELL == "tanh":
        y = tanh(load(gates, inside, grad_h.dtype))
        grad_h *= 1.0 - y * y
    elif CELL == "relu":
        grad_h *= tl.where(load(gates, inside, grad_h.dtype) > 0, 1.0, 0.0)
    tl.store(gates, tl.where(real, grad_h, 0.0), mask=inside)
