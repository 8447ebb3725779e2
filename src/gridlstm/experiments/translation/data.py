"""Parallel text: sentences and their translations (section 4.4)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlstm.data.draw import permutation
from gridlstm.data.locate import DataError, Source, embedded, find, open_file
from gridlstm.experiments.translation.vocabulary import BEGIN, END, PADDING

__all__ = ["MULTI30K", "Batch", "Buckets", "Pair", "Parallel", "make_batch", "read_pairs"]

Ints = NDArray[np.int64]
Numbers = tuple[list[int], list[int]]
"""A source sentence and its translation, as numbers of words, without marks."""

_TATOEBA = {
    "train": "17774bb2135b845eaa7f433bad31f47e4cada98127c8a15441b53d853ddff21c",
    "valid": "d612c35a672a592431b887531c0736e3e3bc5bfbd0d4b486e0777e27d50548fb",
    "test": "f63ed9113abc27501b5296c31196eb97e5bc3125e636eb00b6c6320cfa0f29c9",
}
_MULTI30K = (
    "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/"
    "data/task1/raw"
)
_FILES = """
train.en 1801238 460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6
train.de 2110398 2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72
val.en 63297 1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227
val.de 75981 660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660
test_2016_flickr.en 62076 399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182
test_2016_flickr.de 70649 4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16
"""
MULTI30K = {
    name: Source(f"multi30k/{name}", int(size), sha256, f"{_MULTI30K}/{name}.gz", ".gz")
    for name, size, sha256 in (line.split() for line in _FILES.split("\n")[1:-1])
}
"""The files of Multi30k, German and English, by name. They are not part of the package."""


class Pair(NamedTuple):
    """A sentence and its translations, one or several; the first is the main one."""

    source: str
    references: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Parallel:
    """Parallel text in three parts, for training, validation and test.

    >>> text = Parallel.tatoeba()
    >>> len(text.train), len(text.valid), len(text.test)
    (52920, 1000, 1000)
    >>> text.train[1]
    Pair(source='我每天六点钟起床。', references=('I get up at six every day.',))
    """

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]

    @classmethod
    def tatoeba(cls) -> "Parallel":
        """Everyday sentences in Chinese and English, part of the package.

        The sentences for validation and test have 2 to 14 translations each.
        """
        parts = (
            _table(embedded(f"tatoeba-{part}.tsv", sha256).decode(), f"tatoeba-{part}.tsv")
            for part, sha256 in _TATOEBA.items()
        )
        return cls(*parts)

    @classmethod
    def multi30k(cls, source: str, target: str, folder: Path | None = None) -> "Parallel":
        """Captions of images in English (``"en"``) and German (``"de"``), one translation each.

        Args:
            source: the language to translate from.
            target: the language to translate to.
            folder: the directory of data sets; see :func:`gridlstm.data.locate.find`.

        Raises:
            DataError: if they are neither found nor downloaded.
        """
        return cls(
            *(
                read_pairs([find(MULTI30K[f"{part}.{lang}"], folder) for lang in (source, target)])
                for part in ("train", "val", "test_2016_flickr")
            )
        )

    @classmethod
    def from_files(
        cls, train: Sequence[Path], valid: Sequence[Path], test: Sequence[Path]
    ) -> "Parallel":
        """Text from files; see :func:`read_pairs` for the files of each part.

        Raises:
            DataError: if a file is missing, cannot be read or does not fit the others.
        """
        return cls(*(read_pairs(files) for files in (train, valid, test)))

    def sha256(self) -> dict[str, str]:
        """The checksum of each part."""
        return {
            part: hashlib.sha256(
                "\n".join("\t".join((pair.source, *pair.references)) for pair in pairs).encode()
            ).hexdigest()
            for part, pairs in (("train", self.train), ("valid", self.valid), ("test", self.test))
        }


def read_pairs(files: Sequence[Path]) -> list[Pair]:
    """Reads sentences and their translations.

    Args:
        files: a table with a sentence and its translations in each line, separated by tabs; or plain
            files with one sentence per line, first that of the source sentences, then those of the
            translations. Translations other than the first may be missing: an empty column or line.
            Text is UTF-8, with or without a byte order mark.

    Raises:
        DataError: if a file is missing or cannot be read, a line lacks a sentence or its first
            translation, or plain files have different numbers of lines.
    """
    if not files:
        raise DataError("expected a table, or a file of sentences and one of translations, got none")
    texts = []
    for path in files:
        with open_file(path) as file:
            texts.append(file.read().decode("utf-8-sig"))
    if len(files) == 1:
        return _table(texts[0], str(files[0]))
    columns = [_lines(text) for text in texts]
    for path, column in zip(files, columns, strict=True):
        if len(column) != len(columns[0]):
            raise DataError(
                f"{path}: expected {len(columns[0])} lines as in {files[0]}, got {len(column)}"
            )
    return [
        _pair(cells, f"{files[0]}: line {number}")
        for number, cells in enumerate(zip(*columns, strict=True), 1)
    ]


def _table(text: str, name: str) -> list[Pair]:
    return [
        _pair(line.split("\t"), f"{name}: line {number}") for number, line in enumerate(_lines(text), 1)
    ]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _pair(cells: Sequence[str], place: str) -> Pair:
    source, *references = (cell.strip() for cell in cells)
    if not source or not references or not references[0]:
        missing = "translation" if source else "sentence"
        raise DataError(f"{place}: expected a sentence and its translation, got no {missing}")
    return Pair(source, tuple(reference for reference in references if reference))


class Batch(NamedTuple):
    """Pairs of sentences as a model reads them.

    Attributes:
        source: words of the source sentences, ``[batch, source]``.
        lengths: the lengths of the source sentences, ``[batch]``.
        target: the begin mark and the words of the target sentences, ``[batch, target]``.
        following: the word after each, then the end mark and padding, ``[batch, target]``.
    """

    source: Ints
    lengths: Ints
    target: Ints
    following: Ints


def make_batch(pairs: Sequence[Numbers]) -> Batch:
    """Makes a padded batch of sentences.

    >>> make_batch([([5, 6], [7]), ([5], [8, 9])]).following
    array([[7, 2, 0],
           [8, 9, 2]])
    """
    sources = [source for source, _ in pairs]
    lengths = np.array([len(source) for source in sources])
    return Batch(
        _padded(sources),
        lengths,
        _padded([[BEGIN, *target] for _, target in pairs]),
        _padded([[*target, END] for _, target in pairs]),
    )


def _padded(sentences: Sequence[Sequence[int]]) -> Ints:
    rows = np.full((len(sentences), max(map(len, sentences))), PADDING, np.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows


class Buckets:
    """Batches of pairs of similar length: a pure function of the seed and the number of the update.

    Pairs are visited epoch after epoch. Those that do not fill a batch are skipped in that epoch,
    different ones each time. To reduce padding, pairs are sorted by length, and each batch has adjacent
    pairs. The order among pairs of equal length and the order of batches are different in each epoch.

    Args:
        lengths: the lengths of source and target sentences, ``[pairs, 2]``.
        batch: the number of pairs per batch.
        seed: the seed of the orders.

    Raises:
        DataError: if there are fewer pairs than a batch has.
    """

    def __init__(self, lengths: Ints, batch: int, seed: int) -> None:
        if len(lengths) < batch:
            raise DataError(f"batch: expected at most the {len(lengths)} pairs there are, got {batch}")
        self.lengths = lengths
        self.batch = batch
        self.seed = seed
        self._epoch = lru_cache(maxsize=2)(self._order)

    def at(self, update: int) -> Ints:
        """The indices of the pairs of an update, ``[batch]``."""
        epoch, number = divmod(update, len(self.lengths) // self.batch)
        indices: Ints = self._epoch(epoch)[number]
        return indices

    def _order(self, epoch: int) -> Ints:
        """The batches of an epoch, ``[batches, batch]``."""
        count = len(self.lengths) // self.batch
        chosen = permutation(self.seed, 2 * epoch, len(self.lengths))[: count * self.batch]
        source, target = self.lengths[chosen].T
        batches = chosen[np.lexsort((target, source))].reshape(count, self.batch)
        shuffled: Ints = batches[permutation(self.seed, 2 * epoch + 1, count)]
        return shuffled
