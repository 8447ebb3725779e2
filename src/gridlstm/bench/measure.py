"""Checks that contenders agree with the reference, and times them in turn."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from gridlstm.bench.cases import Case
from gridlstm.bench.contenders import CONTENDERS
from gridlstm.bench.limits import LIMITS, make_limits, share_of_limit
from gridlstm.bench.peak import peak_memory
from gridlstm.bench.summary import summarise
from gridlstm.bench.timing import Seconds, set_threads, time_in_turn, time_once
from gridlstm.errors import ExpectedError

__all__ = ["DisagreementError", "check", "describe", "measure", "measure_memory"]

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
MAIN = (*LIMITS, "products", "wavefront", "wavefront, recompute", "torch.nn.LSTM")
"""What is timed at least twice, however long it takes."""
# They take long, so they are timed in fewer rounds; warming up would change little.
SLOW = ("reference", "loop", "gate by gate", "layer by layer")
LARGE = 0.2
"""The share of the patience for a case that a single step of a large one takes."""


class DisagreementError(ExpectedError):
    """A contender does not compute what the reference computes, so its time has no meaning."""

    code = 1


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
    *,
    quick: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Seconds:
    """Seconds of every round for each number of threads, contender and limit of the machine.

    Args:
        case: what is computed.
        names: the contenders.
        threads: the numbers of threads.
        rounds: how many rounds there are.
        patience: see :func:`time_in_turn`. If a step of the engine takes a fifth of it, the case is
            large: only the main contenders are timed, and only on the largest number of threads.
        quick: whether the limit is that of a small product.
        progress: is told what is timed.
    """

    def tell(what: str) -> None:
        progress(f"{case.name}: {what}")

    most = max(threads)
    with set_threads(most):  # Buffers, caches, the compiled kernel: not part of a step.
        tell("warming up")
        names = list(names)
        engine = CONTENDERS["wavefront"](case)
        assert engine is not None, "the engine runs every case"
        engine()
        if time_once(engine) > LARGE * patience:
            names, threads = [name for name in names if name in MAIN], [most]
        works = {name: work for name in names if (work := CONTENDERS[name](case)) is not None}
        for name, work in works.items():
            if name not in SLOW:
                tell(f"{name}, warming up")
                work()
    limits = make_limits(bfloat16=any("bfloat16" in name for name in works), quick=quick)
    return time_in_turn(
        {**limits, **works}, threads, rounds, patience, main=MAIN, slow=SLOW, progress=tell
    )


def measure_memory(case: Case) -> dict[str, Any]:
    """Bytes that a training step takes, with kept and with recomputed gates, and their ratio."""
    kept, less = (peak_memory(case, recompute=recompute) for recompute in (False, True))
    return {
        "peak": {"keep": kept.peak, "recompute": less.peak},
        "held": {"keep": kept.held, "recompute": less.held},
        "ratio": less.peak / kept.peak if kept.peak else None,
    }


def describe(
    case: Case,
    errors: dict[str, float],
    seconds: Seconds,
    memory: dict[str, Any] | None,
    *,
    quick: bool = False,
) -> dict[str, Any]:
    """A case and its times, as in a result file."""
    sizes = {**asdict(case), "dims": [repr(dim) for dim in case.dims]}
    flops, summary = case.flops(), summarise(seconds)
    shares = {
        count: {
            name: share_of_limit(flops, median, name, bfloat16="bfloat16" in name, quick=quick)
            for name in median
            if name not in LIMITS
        }
        for count, median in summary["median"].items()
    }
    return {
        **sizes,
        "flops": flops,
        "errors": errors,
        **summary,
        "share of limit": shares,
        "memory": memory,
    }
