"""The machine's own limit: the rate of a large matrix product."""

import time

import torch

from gridlstm.bench.measure import set_threads

__all__ = ["Limits", "measure_limits"]

SIZE = 2048
Limits = dict[str, dict[str, float]]
"""GFLOP/s by dtype and number of threads."""


def measure_limits(threads: tuple[int, ...], *, bfloat16: bool, quick: bool = False) -> Limits:
    """The best of several products of two square matrices, in GFLOP/s."""
    size = SIZE // 8 if quick else SIZE
    dtypes = [torch.float32, *([torch.bfloat16] if bfloat16 else [])]
    return {
        str(dtype).removeprefix("torch."): {str(count): _rate(size, dtype, count) for count in threads}
        for dtype in dtypes
    }


def _rate(size: int, dtype: torch.dtype, threads: int) -> float:
    with set_threads(threads):
        left, right = (torch.randn(size, size).to(dtype) for _ in range(2))
        out = left @ right
        best = float("inf")
        for _ in range(7):
            start = time.perf_counter()
            torch.mm(left, right, out=out)
            best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9
