"""Checks that contenders agree with the reference, and times them in turn."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch

from gridlstm.bench.cases import Case
from gridlstm.bench.contenders import CONTENDERS
from gridlstm.errors import ExpectedError

__all__ = ["DisagreementError", "check", "describe", "measure", "set_threads", "time_once"]

# The largest relative error of any output or gradient, as a norm, that still counts as equal.
TOLERANCES = {
    "wavefront": 1e-4,
    "wavefront, not compiled": 1e-4,
    "wavefront, recompute": 1e-4,
    "loop": 1e-4,
    "gate by gate": 1e-4,
    "layer by layer": 1e-4,
    "wavefront, bfloat16": 5e-2,
}
# They take long, so they are timed in fewer rounds; warming up would change little.
SLOW = ("reference", "loop", "gate by gate", "layer by layer")
SLOW_ROUNDS = 3


class DisagreementError(ExpectedError):
    """A contender does not compute what the reference computes, so its time has no meaning."""

    code = 1


@contextmanager
def set_threads(count: int) -> Iterator[None]:
    """Within it, PyTorch runs on ``count`` threads; afterwards, on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check(case: Case, names: Iterable[str]) -> dict[str, float]:
    """The largest relative error of each contender against the reference, on an eighth of the batch.

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
        relative = [
            float((got - want).norm() / want.norm().clamp(min=1e-6))
            for got, want in zip(work(), expected, strict=True)
        ]
        errors[name] = max(relative)
        if not all(error <= TOLERANCES[name] for error in relative):  # NaN does not pass, either.
            raise DisagreementError(
                f"{case.name}: {name} differs from the reference by {errors[name]:.1e}, "
                f"more than {TOLERANCES[name]:.0e}, so it is not timed"
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
    """Seconds of every round for each number of threads and contender.

    After two rounds, no more are begun once ``patience`` seconds have passed.
    """
    works = {name: work for name in names if (work := CONTENDERS[name](case)) is not None}
    seconds: dict[str, dict[str, list[float]]] = {str(n): {name: [] for name in works} for n in threads}
    with set_threads(max(threads)):  # Buffers, caches, the compiled kernel: not part of a step.
        for name, work in works.items():
            if name not in SLOW:
                progress(f"{case.name}: {name}, warming up")
                work()
    start = time.perf_counter()
    for turn in range(rounds):
        if turn >= 2 and time.perf_counter() - start > patience:
            break
        for count in threads:
            with set_threads(count):
                for name, work in works.items():
                    if name not in SLOW or turn < SLOW_ROUNDS:
                        progress(f"{case.name}: {name}, round {turn + 1}")
                        seconds[str(count)][name].append(time_once(work))
    return seconds


def time_once(work: Callable[[], object]) -> float:
    """Seconds of a call, during which no garbage is collected."""
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
    """A case and its times, as in a result file."""
    sizes = {**asdict(case), "dims": [repr(dim) for dim in case.dims]}
    medians = {
        count: {name: statistics.median(times) for name, times in by_name.items()}
        for count, by_name in seconds.items()
    }
    return {**sizes, "flops": case.flops(), "errors": errors, "median": medians, "seconds": seconds}
