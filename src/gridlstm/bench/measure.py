"""Timing, interleaved and repeated, of contenders that have been shown to agree."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import torch

from gridlstm.bench.cases import Case
from gridlstm.bench.contenders import CONTENDERS, Work
from gridlstm.errors import ExpectedError

__all__ = ["DisagreementError", "check", "describe", "measure"]

# The largest relative error of any output or gradient, as a norm, that still counts as equal.
TOLERANCES = {
    "wavefront": 1e-4,
    "wavefront, not compiled": 1e-4,
    "wavefront, recompute": 1e-4,
    "loop": 1e-4,
    "wavefront, bfloat16": 5e-2,
}
# Timed in fewer rounds and not warmed up: they take long, next to which nothing needs warming up.
SLOW = ("reference", "loop")
SLOW_ROUNDS = 3


class DisagreementError(ExpectedError):
    """A contender does not compute what the reference computes: its time means nothing."""

    code = 1


def check(case: Case, names: Iterable[str]) -> dict[str, float]:
    """The largest relative error of each contender against the reference, on fewer samples.

    Raises:
        DisagreementError: if one is above its tolerance.
    """
    case = case.smaller()
    reference = CONTENDERS["reference"](case)
    assert reference is not None, "the reference runs every case"
    expected, errors = reference(), {}
    for name in names:
        work = CONTENDERS[name](case) if name in TOLERANCES else None
        if work is None:
            continue
        found = [
            float((got - want).norm() / want.norm().clamp(min=1e-6))
            for got, want in zip(work(), expected, strict=True)
        ]
        errors[name] = max(found)
        if not all(error <= TOLERANCES[name] for error in found):  # Not so if one is no number.
            raise DisagreementError(
                f"{case.name}: {name} differs from the reference by {errors[name]:.1e}, "
                f"more than {TOLERANCES[name]:.0e}: not timed"
            )
    return errors


def measure(
    case: Case,
    names: Iterable[str],
    threads: Sequence[int],
    rounds: int,
    patience: float = math.inf,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, list[float]]]:
    """Seconds of every round, by number of threads and contender.

    After two rounds, no more are begun once ``patience`` seconds have passed.
    """
    works = {name: work for name in names if (work := CONTENDERS[name](case)) is not None}
    before = torch.get_num_threads()
    seconds: dict[str, dict[str, list[float]]] = {str(n): {name: [] for name in works} for n in threads}
    try:
        torch.set_num_threads(max(threads))
        for name, work in works.items():  # Buffers, caches, the compiled kernel: not part of a step.
            if name not in SLOW:
                progress(f"{case.name}: {name}, warming up")
                work()
        start = time.perf_counter()
        for turn in range(rounds):
            if turn >= 2 and time.perf_counter() - start > patience:
                break
            for count in threads:
                torch.set_num_threads(count)
                for name, work in works.items():
                    if name not in SLOW or turn < SLOW_ROUNDS:
                        progress(f"{case.name}: {name}, round {turn + 1}")
                        seconds[str(count)][name].append(_time(work))
    finally:
        torch.set_num_threads(before)
    return seconds


def _time(work: Work) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    finally:
        gc.enable()


def describe(
    case: Case, errors: dict[str, float], seconds: dict[str, dict[str, list[float]]]
) -> dict[str, Any]:
    """A case and its times, as they are written down."""
    described = asdict(case)
    described["dims"] = [repr(dim) for dim in case.dims]
    medians = {
        count: {name: statistics.median(times) for name, times in by_name.items()}
        for count, by_name in seconds.items()
    }
    return {**described, "flops": case.flops(), "errors": errors, "median": medians, "seconds": seconds}
