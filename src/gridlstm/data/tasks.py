"""The three algorithmic tasks of the paper: addition (4.1), memorization (4.2), parity (appendix).

A task turns contents (what has to be computed on) into what a network reads and should give. All three
are pure functions of a seed and the samples' numbers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlstm.data.draw import draw, draw_split

__all__ = ["BLANK", "Addition", "GrowingAddition", "Memorization", "Parity", "Samples", "Task"]

Ints = NDArray[np.int64]

SHORTEST = 3
"""Digits that numbers begin with where they grow."""
GROWTH = 2**32
"""The first stream of random numbers beyond those of contents."""
BLANK = 0
"""The symbol ``-``: delimiter, end of result and padding."""


class Samples(NamedTuple):
    """What a network reads, what it should give, and where that counts.

    Attributes:
        inputs: symbols, ``[samples, time]``; for parity, bits ``[samples, k]``.
        targets: symbols, ``[samples, time]``; for parity, ``[samples, 1]``.
        scored: which targets accuracy is measured on, as ``targets``.
    """

    inputs: Ints
    targets: Ints
    scored: NDArray[np.bool_]


class Task(ABC):
    """A source of samples without end."""

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many different symbols there are, the blank included."""

    @abstractmethod
    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """What has to be computed on, ``[samples, width]``; other contents at every attempt."""

    @abstractmethod
    def encode(self, contents: Ints) -> Samples:
        """How it is given to a network."""

    @abstractmethod
    def show(self, symbol: int) -> str:
        """A symbol in the paper's notation."""

    def draw(self, seed: int, first: int, count: int, *, held_out: bool = False) -> Samples:
        """Samples number ``first`` to ``first + count - 1`` of training, or held out from it.

        Raises:
            ValueError: if there are so few contents that there is no such sample.
        """
        return self.pick(seed, np.arange(first, first + count), held_out=held_out)

    def pick(self, seed: int, numbers: Ints, *, held_out: bool = False) -> Samples:
        """Samples by their numbers."""
        return self.encode(draw_split(numbers, held_out, partial(self.contents, seed)))


@dataclass(frozen=True)
class Addition(Task):
    """The sum of two numbers, digit by digit.

    ``- 1 2 3 - 8 9 9 - - - - -`` to ``- - - - - - - - 1 0 2 2 -``: the first digit of the result is due
    when the second number has ended. First digits are 1 to 9; the result is left-aligned.

    >>> samples = Addition(3).encode(np.array([[1, 2, 3, 8, 9, 9]]))
    >>> for row in (samples.inputs[0], samples.targets[0]):
    ...     print(*(Addition(3).show(symbol) for symbol in row))
    - 1 2 3 - 8 9 9 - - - - -
    - - - - - - - - 1 0 2 2 -
    """

    digits: int = 15

    @property
    def symbols(self) -> int:
        """The ten digits and the blank."""
        return 11

    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """The digits of both numbers, ``[samples, 2 · digits]``."""
        found = draw(seed, samples, 2 * self.digits, 0, 10, stream=2 * attempt)
        found[:, :: self.digits] = draw(seed, samples, 2, 1, 10, stream=2 * attempt + 1)
        return found

    def encode(self, contents: Ints) -> Samples:
        """Numbers and result, ``[samples, 3 · digits + 4]``."""
        n, count = self.digits, len(contents)
        a, b = contents[:, :n], contents[:, n:]
        inputs = np.full((count, 3 * n + 4), BLANK)
        inputs[:, 1 : n + 1], inputs[:, n + 2 : 2 * n + 2] = a + 1, b + 1
        total, carry = np.zeros((count, n + 1), np.int64), np.zeros(count, np.int64)
        for place in reversed(range(n)):
            carry, total[:, place + 1] = np.divmod(a[:, place] + b[:, place] + carry, 10)
        total[:, 0] = carry
        # Left-aligned: where there is no carry into a further digit, all move up by one.
        symbols = np.concatenate([total + 1, np.full((count, 1), BLANK)], 1)
        short = carry == 0
        symbols[short, :-1] = symbols[short, 1:]
        targets = np.full_like(inputs, BLANK)
        targets[:, 2 * n + 2 :] = symbols
        return Samples(inputs, targets, targets != BLANK)

    def show(self, symbol: int) -> str:
        """A digit, or ``-``."""
        return "-" if symbol == BLANK else str(symbol - 1)


@dataclass(frozen=True)
class GrowingAddition(Addition):
    """Addition whose training samples begin with short numbers.

    Samples have up to three digits at first, and one more after every ``pace`` samples. Until they have
    all, a third of them are shorter still: what was learnt is not forgotten. Held-out samples have all
    digits from the beginning.
    """

    pace: int = 10_000

    def draw(self, seed: int, first: int, count: int, *, held_out: bool = False) -> Samples:
        """As :meth:`Task.draw`; as long as the longest numbers there are at ``first`` need."""
        most = min(self.digits, SHORTEST + first // self.pace)
        if held_out or most == self.digits:
            return super().draw(seed, first, count, held_out=held_out)
        numbers = np.arange(first, first + count)
        shorter = draw(seed, numbers, 1, 0, 3, stream=GROWTH)[:, 0] == 0
        lengths = np.where(shorter, draw(seed, numbers, 1, 2, most + 1, stream=GROWTH + 1)[:, 0], most)
        shape = (count, 3 * most + 4)
        found = Samples(np.full(shape, BLANK), np.full(shape, BLANK), np.zeros(shape, bool))
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            own = Addition(int(length)).pick(seed, numbers[rows])
            for whole, part in zip(found, own, strict=True):
                whole[rows, : part.shape[1]] = part
        return found


@dataclass(frozen=True)
class Memorization(Task):
    """A sequence of symbols, to be given back unchanged once it has been read.

    ``- α β γ - - - -`` to ``- - - - α β γ -``.

    >>> samples = Memorization(3).encode(np.array([[5, 60, 7]]))
    >>> for row in (samples.inputs[0], samples.targets[0]):
    ...     print(*(Memorization(3).show(symbol) for symbol in row))
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


@dataclass(frozen=True)
class Parity(Task):
    """Whether a string of bits, given as a whole, has an odd number of ones.

    >>> Parity(5).encode(np.array([[0, 1, 1, 0, 1]])).targets
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
