"""Random numbers that are a pure function of their place: no generator, no state to store.

The number at a place is a hash of it, so any sample of a task can be drawn by itself, in any order, by
any process, and is the same every time.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw", "draw_split", "mix", "shuffle", "visit"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

HELD_OUT = 16
"""One in so many contents is held out for evaluation, whatever the seed."""
ATTEMPTS = 4096
"""Draws after which a content of one side must have been found, if there is one."""


def mix(words: Words) -> Words:
    """A bijection of 64-bit words under which every bit depends on all others (SplitMix64)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def draw(seed: int, samples: Ints, width: int, low: int, high: int, stream: int = 0) -> Ints:
    """Integers from ``low`` to ``high - 1``, ``[samples, width]``: those of samples by number.

    Different streams of a seed are as independent as different seeds.

    >>> bool((draw(0, np.array([7]), 5, 0, 10) == draw(0, np.arange(9), 5, 0, 10)[7]).all())
    True
    """
    own = mix(mix(mix(np.full(1, seed, np.uint64)) ^ np.uint64(stream)) ^ samples.astype(np.uint64))
    words = mix(own[:, None] ^ mix(np.arange(width, dtype=np.uint64)))
    # The upper half as a fraction of 2^32; its bias is below high / 2^32.
    fraction = (words >> np.uint64(32)) * np.uint64(high - low)
    return low + (fraction >> np.uint64(32)).astype(np.int64)


def visit(seed: int, numbers: Ints, count: int) -> Ints:
    """Which of ``count`` things each visit by number is to: all in every epoch, in an order of its own.

    >>> visit(0, np.arange(8), 4).reshape(2, 4)
    array([[0, 3, 1, 2],
           [0, 1, 2, 3]])
    """
    epochs, places = np.divmod(numbers, count)
    found = np.empty_like(numbers)
    for epoch in np.unique(epochs):
        own = epochs == epoch
        found[own] = shuffle(seed, int(epoch), count)[places[own]]
    return found


@lru_cache(maxsize=4)
def shuffle(seed: int, stream: int, count: int) -> Ints:
    """The numbers below ``count``, in an order that the seed and the stream give; not to be changed."""
    drawn = draw(seed, np.arange(count), 1, 0, 2**32, stream)[:, 0]
    order = np.argsort(drawn, kind="stable")
    order.flags.writeable = False
    return order


def draw_split(samples: Ints, held_out: bool, make: Callable[[Ints, int], Ints]) -> Ints:
    """Contents of training samples, or of held-out ones: the two never meet.

    A content belongs to one side by a hash of its own, so no seed and no number of samples can bring a
    training sample among the held-out ones. What falls on the wrong side is drawn again.

    Args:
        samples: their numbers.
        held_out: which side.
        make: contents ``[samples, width]`` from numbers and the attempt, counted from 0.

    Raises:
        ValueError: if there are so few contents that none of them is on the side.
    """
    contents = make(samples, 0)
    wrong = np.flatnonzero(_is_held_out(contents) != held_out)
    for attempt in range(1, ATTEMPTS):
        if not len(wrong):
            return contents
        contents[wrong] = make(samples[wrong], attempt)
        wrong = wrong[_is_held_out(contents[wrong]) != held_out]
    side = "held out" if held_out else "trained on"
    raise ValueError(f"none of the few contents is {side}: expected a task with more of them")


def _is_held_out(contents: Ints) -> NDArray[np.bool_]:
    words = mix(contents.astype(np.uint64) ^ mix(np.arange(contents.shape[1], dtype=np.uint64)))
    found: NDArray[np.bool_] = mix(np.bitwise_xor.reduce(words, 1)) % np.uint64(HELD_OUT) == 0
    return found
