"""Times pieces of work in turn, so that all of them see the same machine."""

import gc
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

__all__ = ["LEAST", "Seconds", "set_threads", "time_in_turn", "time_once"]

Seconds = dict[str, dict[str, list[float]]]
"""Seconds of every round, by number of threads and name."""

SLOW_ROUNDS = 3
"""The largest number of rounds of what is slow."""
LEAST = 0.02
"""Seconds that a measurement takes at least; shorter work is repeated in it."""


@contextmanager
def set_threads(count: int) -> Iterator[None]:
    """Within it, PyTorch runs on ``count`` threads; afterwards, on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def time_once(work: Callable[[], object], least: float = 0.0) -> float:
    """Seconds of a call, during which no garbage is collected.

    Args:
        work: what is called.
        least: call it again until this many seconds have passed, and return the mean.
    """
    gc.collect()
    gc.disable()
    try:
        calls, start = 0, time.perf_counter()
        while calls == 0 or time.perf_counter() - start < least:
            work()
            calls += 1
        return (time.perf_counter() - start) / calls
    finally:
        gc.enable()


def time_in_turn(
    works: Mapping[str, Callable[[], object]],
    threads: Sequence[int],
    rounds: int,
    patience: float = math.inf,
    *,
    main: Collection[str] | None = None,
    slow: Collection[str] = (),
    single: Collection[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Seconds:
    """Seconds of every round. In a round, everything is timed once with each number of threads.

    The order is rotated from round to round: what follows a change of the number of threads finds its
    threads asleep and other processes on its cores, and no work should always be the one to pay for it.

    Args:
        works: what is timed, by name.
        threads: the numbers of threads.
        rounds: how many rounds there are.
        patience: once this many seconds have passed, only ``main`` is timed, and after two rounds
            nothing. With the first number of threads, everything is timed at least once.
        main: names of what is timed in two rounds at least. Default: all.
        slow: names of what is timed in no more than three rounds.
        single: names of what is called once in a round, even if it is short.
        progress: is told what is timed.
    """
    seconds: Seconds = {str(count): {name: [] for name in works} for count in threads}
    names, started = list(works), time.perf_counter()
    for turn in range(rounds):
        if turn >= 2 and time.perf_counter() - started > patience:
            break
        for place, count in enumerate(threads):
            with set_threads(count):
                _wake_threads()
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    late = time.perf_counter() - started > patience
                    wanted = turn < 2 if main is None or name in main else turn == place == 0
                    if (late and not wanted) or (name in slow and turn >= SLOW_ROUNDS):
                        continue
                    progress(f"{name}, round {turn + 1}")
                    least = 0.0 if name in single else LEAST
                    seconds[str(count)][name].append(time_once(works[name], least))
    return {
        count: {name: times for name, times in by_name.items() if times}
        for count, by_name in seconds.items()
    }


def _wake_threads() -> None:
    """Computes a product that is large enough to run on all threads."""
    square = torch.ones(512, 512)
    torch.mm(square, square)
