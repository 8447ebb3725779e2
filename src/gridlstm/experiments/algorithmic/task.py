"""Tasks: sources of samples that are a pure function of a seed and the number of the sample."""

from abc import ABC, abstractmethod
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlstm.data.draw import draw_split

__all__ = ["BLANK", "BLOCK", "Ints", "Samples", "Task"]

Ints = NDArray[np.int64]

BLANK = 0
"""The symbol ``-``: delimiter, end of result and padding."""
BLOCK = 1000
"""Samples are made this many at a time: for one batch, NumPy's calls take longer than the work."""


class Samples(NamedTuple):
    """Inputs, targets, and which targets are scored.

    Attributes:
        inputs: symbols, ``[samples, time]``; for parity, bits ``[samples, k]``.
        targets: symbols, ``[samples, time]``; for parity, ``[samples, 1]``.
        scored: which targets count for accuracy, with the shape of ``targets``.
    """

    inputs: Ints
    targets: Ints
    scored: NDArray[np.bool_]


class Task(ABC):
    """An endless source of samples.

    A task draws contents, such as two numbers to add, and encodes them as inputs and targets.
    """

    @property
    @abstractmethod
    def symbols(self) -> int:
        """The number of different symbols, including the blank."""

    @abstractmethod
    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """Contents drawn for these samples, ``[samples, width]``; different for each attempt."""

    @abstractmethod
    def encode(self, contents: Ints) -> Samples:
        """Encodes contents as inputs and targets."""

    @abstractmethod
    def show(self, symbol: int) -> str:
        """A symbol in the paper's notation."""

    def draw(self, seed: int, first: int, count: int, *, held_out: bool = False) -> Samples:
        """Draws samples ``first`` to ``first + count - 1``, from those for training or those held out.

        Raises:
            ValueError: if there are too few different contents.
        """
        parts = []
        for start in range(first - first % BLOCK, first + count, BLOCK):
            inside = slice(max(first - start, 0), first + count - start)
            parts.append([array[inside] for array in _block(self, seed, start, held_out)])
        return Samples(*map(np.concatenate, zip(*parts, strict=True)))

    def pick(self, seed: int, numbers: Ints, *, held_out: bool = False) -> Samples:
        """Draws samples with these numbers."""
        return self.encode(draw_split(numbers, held_out, partial(self.contents, seed)))


@lru_cache(maxsize=2)  # One of training and one of evaluation.
def _block(task: Task, seed: int, start: int, held_out: bool) -> Samples:
    return task.pick(seed, np.arange(start, start + BLOCK), held_out=held_out)
