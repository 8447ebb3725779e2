"""Texts as bytes, for the character-level language model of section 4.3.

A text is read into memory, so later changes of its file do not affect training. The characters of an
update are a pure function of the seed and the number of the update.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlstm.data.draw import shuffled_index
from gridlstm.data.locate import DataError, Source, check_size, embedded, find, open_file

__all__ = [
    "ENWIK8",
    "Chunks",
    "Corpus",
    "contiguous",
    "decode",
    "draw_chunks",
    "encode",
    "read_file",
    "starts_sequence",
]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Text = NDArray[Any]
"""Characters: bytes, or their indices in an alphabet."""

ENWIK8 = Source(
    name="enwik8/enwik8",
    size=100_000_000,
    sha256="2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8",
    address="https://mattmahoney.net/dc/enwik8.zip",
    packing=".zip",
)
_SHAKESPEARE = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SMALLEST = 40
"""The least number of bytes of a text, so that each part has at least two characters."""
_COUNTED = 2**20


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text in three parts, for training, validation and test.

    >>> corpus = Corpus.shakespeare()
    >>> len(corpus.train), len(corpus.valid), len(corpus.test), len(corpus.alphabet)
    (1003854, 55770, 55770, 65)
    >>> corpus.train[:13].tobytes()
    b'First Citizen'
    """

    name: str
    """The name of the text."""
    text: Bytes
    """The whole text."""
    ends: tuple[int, int]
    """The ends of the training and the validation part."""

    @classmethod
    def enwik8(cls, folder: Path | None = None) -> "Corpus":
        """The first 100 MB of Wikipedia, 205 symbols: 90 MB, 5 MB and 5 MB.

        Args:
            folder: the directory of data sets; see :func:`gridlstm.data.locate.find`.

        Raises:
            DataError: if it is neither found nor downloaded.
        """
        path = find(ENWIK8, folder)
        return cls("enwik8", read_file(path), (90_000_000, 95_000_000))

    @classmethod
    def shakespeare(cls) -> "Corpus":
        """A megabyte of Shakespeare's plays, part of the package: 90, 5 and 5 %."""
        text = np.frombuffer(embedded("tinyshakespeare.txt", _SHAKESPEARE), np.uint8)
        return cls("shakespeare", text, _percent(len(text)))

    @classmethod
    def from_file(cls, path: Path) -> "Corpus":
        """The text of a file: 90, 5 and 5 % of its bytes.

        Raises:
            DataError: if it is not a file, cannot be read, or is too small.
        """
        text = read_file(path, SMALLEST)
        return cls(path.stem, text, _percent(len(text)))

    @property
    def train(self) -> Bytes:
        """The training part."""
        return self.text[: self.ends[0]]

    @property
    def valid(self) -> Bytes:
        """The validation part."""
        return self.text[self.ends[0] : self.ends[1]]

    @property
    def test(self) -> Bytes:
        """The test part."""
        return self.text[self.ends[1] :]

    @cached_property
    def alphabet(self) -> bytes:
        """The different bytes of the whole text, sorted."""
        counts = np.zeros(256, np.int64)
        for first in range(0, len(self.text), _COUNTED):  # ``bincount`` makes a 64-bit copy.
            counts += np.bincount(self.text[first : first + _COUNTED], minlength=256)
        return np.flatnonzero(counts).astype(np.uint8).tobytes()

    def sha256(self) -> str:
        """The checksum of the text."""
        return hashlib.sha256(self.text.data).hexdigest()


class Chunks(NamedTuple):
    """Characters of parallel streams, and those that follow; all ``[streams, chunk]``.

    Attributes:
        inputs: characters.
        targets: the character after each.
        scored: which targets are scored.
    """

    inputs: Text
    targets: Text
    scored: NDArray[np.bool_]


def read_file(path: Path, least: int = 1) -> Bytes:
    """The bytes of a file.

    Raises:
        DataError: if it is not a file, cannot be read, has fewer bytes than ``least``, or is written to
            while it is read.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < least:
            got = f"got {size}" if size else "got an empty file"
            raise DataError(f"{path}: expected a text of at least {least} bytes, {got}")
        text = np.fromfile(file, np.uint8)
    check_size(str(path), size, len(text))
    text.flags.writeable = False
    return text


def encode(text: bytes | Bytes, alphabet: bytes) -> tuple[Ints, int]:
    """The indices of bytes in an alphabet, and the number of unknown bytes, which are skipped.

    The indices have the shape of the text if no byte is skipped, and one axis otherwise.

    >>> encode(b"abba!", b"ab")
    (array([0, 1, 1, 0]), 1)
    """
    table = np.full(256, -1, np.int64)
    table[np.frombuffer(alphabet, np.uint8)] = np.arange(len(alphabet))
    indices: Ints = table[np.frombuffer(text, np.uint8) if isinstance(text, bytes) else text]
    known = indices >= 0
    unknown = indices.size - int(known.sum())
    return (indices[known] if unknown else indices), unknown


def decode(indices: Ints, alphabet: bytes) -> bytes:
    """The text of indices in an alphabet.

    >>> decode(np.array([0, 1, 1, 0]), b"ab")
    b'abba'
    """
    return np.frombuffer(alphabet, np.uint8)[indices].tobytes()


def draw_chunks(
    part: Text,
    seed: int,
    update: int,
    *,
    streams: int,
    chunk: int,
    sequence: int,
    first: int = 0,
    count: int | None = None,
) -> tuple[Text, Text]:
    """The inputs and targets of an update of training, both ``[count, chunk]``.

    The text is cut into sequences that do not overlap; the rest at the end is not used. Each stream
    reads one sequence after the other, ``chunk`` characters per update. Sequences are distributed over
    the streams round by round, epoch after epoch, in a different order in each epoch.

    Args:
        part: the text.
        seed: the seed of the orders.
        update: the number of the update, from 0.
        streams: the number of parallel streams of all processes.
        chunk: the number of characters per stream and update.
        sequence: the number of characters of a sequence.
        first: the number of the first stream to return.
        count: the number of streams to return. Default: all from ``first``.

    Raises:
        DataError: if the text is not longer than one sequence.
        ValueError: if a chunk does not divide a sequence, or there are no such streams.
    """
    rounds, step = divmod(update, _steps(chunk, sequence))
    chosen = range(streams)[first : None if count is None else first + count]
    if first < 0 or not chosen or (count is not None and len(chosen) != count):
        raise ValueError(f"count: expected some of {streams} streams, got {count} from {first}")
    sequences = (len(part) - 1) // sequence  # The last character of a sequence has a target, too.
    if sequences < 1:
        raise DataError(
            f"text: expected at least {sequence + 1} bytes to train on, got {len(part)}; "
            f"a smaller --sequence needs fewer"
        )
    places = shuffled_index(seed, rounds * streams + np.array(chosen), sequences)
    begins = places * sequence + step * chunk
    characters = part[begins[:, None] + np.arange(chunk + 1)]
    return characters[:, :-1], characters[:, 1:]


def starts_sequence(update: int, chunk: int, sequence: int) -> bool:
    """Whether all streams start a sequence at an update, so that no state is carried over.

    >>> [starts_sequence(update, 50, 100) for update in range(4)]
    [True, False, True, False]

    Raises:
        ValueError: if a chunk does not divide a sequence.
    """
    return update % _steps(chunk, sequence) == 0


def contiguous(part: Text, streams: int, chunk: int) -> Iterator[Chunks]:
    """Chunks of a whole text for measurements: every character but the first is predicted once.

    The text is cut into one piece per stream, all of the same length except for the last ones, which
    may be shorter or empty. A piece starts by reading the last character of the piece before it, with
    no other context: only with one stream has every prediction its whole context. Where a piece has
    ended, characters are repeated and not scored.

    Raises:
        DataError: if the text has fewer than two characters.
        ValueError: if ``streams`` or ``chunk`` is less than 1.

    >>> for chunks in contiguous(np.frombuffer(b"abcdef", np.uint8), streams=2, chunk=2):
    ...     print(*(decode(row[on], bytes(range(256))) for row, on in zip(*chunks[1:], strict=True)))
    b'bc' b'ef'
    b'd' b''
    """
    predicted = len(part) - 1
    if predicted < 1:
        raise DataError(f"text: expected at least 2 bytes to measure on, got {len(part)}")
    for name, value in (("streams", streams), ("chunk", chunk)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    return _parallel_chunks(part, -(-predicted // streams), streams, chunk)


def _parallel_chunks(part: Text, length: int, streams: int, chunk: int) -> Iterator[Chunks]:
    last = len(part) - 2
    begins = np.arange(streams)[:, None] * length
    for first in range(0, length, chunk):
        within = first + np.arange(chunk)
        places = begins + within
        scored = (within < length) & (places <= last)
        places = np.minimum(places, last)
        yield Chunks(part[places], part[places + 1], scored)


def _steps(chunk: int, sequence: int) -> int:
    """The number of updates per sequence."""
    if chunk < 1 or sequence < 1 or sequence % chunk:
        raise ValueError(f"chunk: expected a divisor of sequence ({sequence}), got {chunk}")
    return sequence // chunk


def _percent(size: int) -> tuple[int, int]:
    """90 and 95 % of a number of bytes."""
    return size * 90 // 100, size * 95 // 100
