"""Strings of bits and their parity (appendix)."""

from dataclasses import dataclass

import numpy as np

from gridlstm.data.draw import draw
from gridlstm.experiments.algorithmic.task import Ints, Samples, Task

__all__ = ["ParityTask"]


@dataclass(frozen=True)
class ParityTask(Task):
    """Decide whether a string of bits, read as a whole, has an odd number of ones.

    >>> ParityTask(5).encode(np.array([[0, 1, 1, 0, 1]])).targets
    array([[1]])
    """

    bits: int = 50

    @property
    def symbols(self) -> int:
        """Even and odd."""
        return 2

    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """The bits, ``[samples, bits]``."""
        return draw(seed, samples, self.bits, 0, 2, stream=attempt)

    def encode(self, contents: Ints) -> Samples:
        """The string and its parity."""
        targets = contents.sum(1, keepdims=True) % 2
        return Samples(contents, targets, np.ones_like(targets, dtype=bool))

    def show(self, symbol: int) -> str:
        """A bit."""
        return str(symbol)
