"""Random numbers as a pure function of seed and position: no generator, no state to store.

Each number is a hash of its position, so any process can draw any sample by itself, in any order, and
it is the same every time.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw", "draw_split", "mix", "permutation", "shuffled_index"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

HELD_OUT = 16
"""One in this many contents is held out for evaluation, whatever the seed."""
ATTEMPTS = 4096
"""Draws after which a content of the right part must have been found, if there is one."""


def mix(words: Words) -> Words:
    """A bijection of 64-bit words in which each output bit depends on all input bits (SplitMix64)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def draw(seed: int, samples: Ints, width: int, low: int, high: int, stream: int = 0) -> Ints:
    """Random integers from ``low`` to ``high - 1``, ``[samples, width]``.

    Args:
        seed: the seed.
        samples: the numbers of the samples.
        width: integers per sample.
        low: the smallest integer.
        high: one more than the largest.
        stream: different streams of a seed are as independent as different seeds.

    >>> bool((draw(0, np.array([7]), 5, 0, 10) == draw(0, np.arange(9), 5, 0, 10)[7]).all())
    True
    """
    keys = mix(mix(mix(np.full(1, seed, np.uint64)) ^ np.uint64(stream)) ^ samples.astype(np.uint64))
    words = mix(keys[:, None] ^ mix(np.arange(width, dtype=np.uint64)))
    # The upper half as a fraction of 2^32; its bias is below high / 2^32.
    fraction = (words >> np.uint64(32)) * np.uint64(high - low)
    return low + (fraction >> np.uint64(32)).astype(np.int64)


def shuffled_index(seed: int, numbers: Ints, count: int) -> Ints:
    """The indices below ``count`` at these positions of an endless sequence of shuffled epochs.

    >>> shuffled_index(0, np.arange(8), 4).reshape(2, 4)
    array([[0, 3, 1, 2],
           [0, 1, 2, 3]])
    """
    epochs, offsets = np.divmod(numbers, count)
    indices = np.empty_like(numbers)
    for epoch in np.unique(epochs):
        selected = epochs == epoch
        indices[selected] = permutation(seed, int(epoch), count)[offsets[selected]]
    return indices


@lru_cache(maxsize=4)
def permutation(seed: int, stream: int, count: int) -> Ints:
    """The numbers below ``count`` in random order, as a read-only array."""
    drawn = draw(seed, np.arange(count), 1, 0, 2**32, stream)[:, 0]
    order = np.argsort(drawn, kind="stable")
    order.flags.writeable = False
    return order


def draw_split(samples: Ints, held_out: bool, make: Callable[[Ints, int], Ints]) -> Ints:
    """Contents of training samples, or of held-out ones; the two are disjoint.

    A hash of a content decides which part it belongs to, so no seed and no number of samples can mix
    them. A content of the wrong part is drawn again.

    Args:
        samples: the numbers of the samples.
        held_out: draw held-out contents, not training ones.
        make: returns contents ``[samples, width]`` from numbers and the attempt, counted from 0.

    Raises:
        ValueError: if the task has so few contents that none belongs to the part.
    """
    contents = make(samples, 0)
    wrong = np.flatnonzero(_is_held_out(contents) != held_out)
    for attempt in range(1, ATTEMPTS):
        if not len(wrong):
            return contents
        contents[wrong] = make(samples[wrong], attempt)
        wrong = wrong[_is_held_out(contents[wrong]) != held_out]
    part = "held out" if held_out else "trained on"
    raise ValueError(f"none of the few contents is {part}: expected a task with more of them")


def _is_held_out(contents: Ints) -> NDArray[np.bool_]:
    words = mix(contents.astype(np.uint64) ^ mix(np.arange(contents.shape[1], dtype=np.uint64)))
    held_out: NDArray[np.bool_] = mix(np.bitwise_xor.reduce(words, 1)) % np.uint64(HELD_OUT) == 0
    return held_out
