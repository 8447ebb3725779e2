"""Sequences of symbols and their repetition (section 4.2)."""

from dataclasses import dataclass

import numpy as np

from gridlstm.data.draw import draw
from gridlstm.experiments.algorithmic.task import BLANK, Ints, Samples, Task

__all__ = ["MemorizationTask"]


@dataclass(frozen=True)
class MemorizationTask(Task):
    """A sequence of symbols, to be repeated once it has been read.

    ``- α β γ - - - -`` to ``- - - - α β γ -``.

    >>> samples = MemorizationTask(3).encode(np.array([[5, 60, 7]]))
    >>> for row in (samples.inputs[0], samples.targets[0]):
    ...     print(*(MemorizationTask(3).show(symbol) for symbol in row))
    - 5 60 7 - - - -
    - - - - 5 60 7 -
    """

    length: int = 20
    vocabulary: int = 64

    @property
    def symbols(self) -> int:
        """The vocabulary and the blank."""
        return self.vocabulary + 1

    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """The symbols, ``[samples, length]``."""
        return draw(seed, samples, self.length, 1, self.vocabulary + 1, stream=attempt)

    def encode(self, contents: Ints) -> Samples:
        """The sequence and its repetition, ``[samples, 2 · length + 2]``."""
        n = self.length
        inputs = np.pad(contents, ((0, 0), (1, n + 1)), constant_values=BLANK)
        targets = np.pad(contents, ((0, 0), (n + 1, 1)), constant_values=BLANK)
        return Samples(inputs, targets, targets != BLANK)

    def show(self, symbol: int) -> str:
        """The symbol's number, or ``-``."""
        return "-" if symbol == BLANK else str(symbol)
