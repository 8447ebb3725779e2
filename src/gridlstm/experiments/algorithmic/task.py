"""A source of samples: a pure function of a seed and the samples' numbers."""

from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlstm.data.draw import draw_split

__all__ = ["BLANK", "Ints", "Samples", "Task"]

Ints = NDArray[np.int64]

BLANK = 0
"""The symbol ``-``: delimiter, end of result and padding."""


class Samples(NamedTuple):
    """What a network reads, its targets, and which of them are scored.

    Attributes:
        inputs: symbols, ``[samples, time]``; for parity, bits ``[samples, k]``.
        targets: symbols, ``[samples, time]``; for parity, ``[samples, 1]``.
        scored: which targets accuracy is measured on, as ``targets``.
    """

    inputs: Ints
    targets: Ints
    scored: NDArray[np.bool_]


class Task(ABC):
    """A source of samples without end.

    A task encodes contents (what is computed on) as inputs and targets.
    """

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many different symbols there are, the blank included."""

    @abstractmethod
    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """What is computed on, ``[samples, width]``; different contents for each attempt."""

    @abstractmethod
    def encode(self, contents: Ints) -> Samples:
        """Contents as a network reads them."""

    @abstractmethod
    def show(self, symbol: int) -> str:
        """A symbol in the paper's notation."""

    def draw(self, seed: int, first: int, count: int, *, held_out: bool = False) -> Samples:
        """Samples number ``first`` to ``first + count - 1`` of training, or held out from it.

        Raises:
            ValueError: if there are too few contents for such a sample.
        """
        return self.pick(seed, np.arange(first, first + count), held_out=held_out)

    def pick(self, seed: int, numbers: Ints, *, held_out: bool = False) -> Samples:
        """Samples by their numbers."""
        return self.encode(draw_split(numbers, held_out, partial(self.contents, seed)))
