"""Two numbers and their sum, digit by digit (section 4.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridlstm.data.draw import draw
from gridlstm.experiments.algorithmic.task import BLANK, Ints, Samples, Task

__all__ = ["AdditionTask", "GrowingAdditionTask", "SparseAdditionTask"]

SHORTEST = 3
"""The number of digits that growing numbers start with."""
GROWTH = 2**32
"""A stream of random numbers beyond those of contents."""
ZEROS = 2**33
"""The first of the streams that choose zeros."""


@dataclass(frozen=True)
class AdditionTask(Task):
    """The sum of two numbers, digit by digit.

    ``- 1 2 3 - 8 9 9 - - - - -`` to ``- - - - - - - - 1 0 2 2 -``: the first digit of the result is due
    when the second number has ended. First digits are 1 to 9; the result is left-aligned.

    >>> samples = AdditionTask(3).encode(np.array([[1, 2, 3, 8, 9, 9]]))
    >>> for row in (samples.inputs[0], samples.targets[0]):
    ...     print(*(AdditionTask(3).show(symbol) for symbol in row))
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
        digits = draw(seed, samples, 2 * self.digits, 0, 10, stream=2 * attempt)
        digits[:, :: self.digits] = draw(seed, samples, 2, 1, 10, stream=2 * attempt + 1)
        return digits

    def encode(self, contents: Ints) -> Samples:
        """The numbers and their sum, ``[samples, 3 · digits + 4]``."""
        n, count = self.digits, len(contents)
        a, b = contents[:, :n], contents[:, n:]
        inputs = np.full((count, 3 * n + 4), BLANK)
        inputs[:, 1 : n + 1], inputs[:, n + 2 : 2 * n + 2] = a + 1, b + 1
        total, carry = np.zeros((count, n + 1), np.int64), np.zeros(count, np.int64)
        for place in reversed(range(n)):
            carry, total[:, place + 1] = np.divmod(a[:, place] + b[:, place] + carry, 10)
        total[:, 0] = carry
        # Left-aligned: without a carry into a further digit, all digits move left by one.
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
class GrowingAdditionTask(AdditionTask):
    """Addition whose training starts with short numbers.

    Numbers have up to three digits at first, and one more after every ``pace`` samples. Until they have
    all digits, a third of the samples has fewer, so that what was learned is not forgotten. Held-out
    samples always have all digits.
    """

    pace: int = 10_000

    def draw(self, seed: int, first: int, count: int, *, held_out: bool = False) -> Samples:
        """As :meth:`Task.draw`; sequences are as long as the longest numbers at ``first`` need."""
        longest = min(self.digits, SHORTEST + first // self.pace)
        if held_out or longest == self.digits:
            return super().draw(seed, first, count, held_out=held_out)
        numbers = np.arange(first, first + count)
        shorter = draw(seed, numbers, 1, 0, 3, stream=GROWTH)[:, 0] == 0
        fewer = draw(seed, numbers, 1, 2, longest + 1, stream=GROWTH + 1)[:, 0]
        lengths = np.where(shorter, fewer, longest)
        shape = (count, 3 * longest + 4)
        samples = Samples(np.full(shape, BLANK), np.full(shape, BLANK), np.zeros(shape, bool))
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            of_length = AdditionTask(int(length)).pick(seed, numbers[rows])
            for padded, part in zip(samples, of_length, strict=True):
                padded[rows, : part.shape[1]] = part
        return samples


@dataclass(frozen=True)
class SparseAdditionTask(AdditionTask):
    """Addition whose training has second numbers with many zeros.

    Where the second number has a zero, the result has the digit of the first number, or the next one
    after it. So a network learns to keep a number and to add single digits to it from the samples with
    many zeros, and numbers always have all digits, at the same places. The probability of a zero
    differs from sample to sample; ``zeros`` is its mean, at first or throughout. With ``fill``, it
    falls to none after that many samples. Held-out samples are those of :class:`AdditionTask`.
    """

    zeros: float = 0.75
    fill: int | None = None

    def contents(self, seed: int, samples: Ints, attempt: int) -> Ints:
        """The digits of both numbers, ``[samples, 2 · digits]``, some of the second ones zero."""
        digits, stream = super().contents(seed, samples, attempt), ZEROS + 2 * attempt
        left = 1 if self.fill is None else 1 - np.minimum(1, samples / self.fill)[:, None]
        # The mean of u ** k over u from 0 to 1 is 1 / (k + 1).
        kept = _fractions(seed, samples, 1, stream) ** (self.zeros / (1 - self.zeros) * left)
        zero = _fractions(seed, samples, self.digits - 1, stream + 1) >= kept
        digits[:, self.digits + 1 :][zero] = 0
        return digits

    def pick(self, seed: int, numbers: Ints, *, held_out: bool = False) -> Samples:
        """As :meth:`Task.pick`; held-out samples have no additional zeros."""
        if held_out:
            return AdditionTask(self.digits).pick(seed, numbers, held_out=True)
        return super().pick(seed, numbers)


def _fractions(seed: int, samples: Ints, width: int, stream: int) -> NDArray[np.float64]:
    """Random numbers from 0 to below 1, ``[samples, width]``."""
    return draw(seed, samples, width, 0, 2**31, stream) / 2**31
