"""Vocabularies: words as numbers, and how they are written."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gridlstm.data.locate import DataError

__all__ = ["BEGIN", "END", "MARKS", "PADDING", "UNKNOWN", "Vocabulary"]

MARKS = ("<padding>", "<begin>", "<end>", "<unknown>")
"""Marks that are not words: the first numbers of every vocabulary."""
PADDING, BEGIN, END, UNKNOWN = range(len(MARKS))
_SENTENCE_STARTS = frozenset(".!?:\"“”'…-")
"""After these, a capital letter may be due to the start of a sentence, not to the word."""


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model knows, in lower case.

    Args:
        words: each once, the most frequent first; their numbers follow those of the marks.
        written: how each word is written inside a sentence, capitalised if it usually is.

    >>> vocabulary = Vocabulary.build([["Yes", ",", "Tom", "."], ["I", "know", "Tom", ".", "Yes", "."]])
    >>> vocabulary.words
    ('.', 'tom', 'yes')
    >>> vocabulary.encode(["Tom", "knows", "."])
    [5, 3, 4]
    >>> vocabulary.decode([5, 3, 4])
    ['Tom', '<unknown>', '.']
    """

    words: tuple[str, ...]
    written: tuple[str, ...]

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], least: int = 2) -> "Vocabulary":
        """Makes a vocabulary of the words that occur at least this many times; in the paper, twice."""
        counts: Counter[str] = Counter()
        forms: dict[str, Counter[str]] = {}
        for sentence in sentences:
            before = "."
            for word in sentence:
                counts[word.lower()] += 1
                if before not in _SENTENCE_STARTS:
                    forms.setdefault(word.lower(), Counter())[word] += 1
                before = word
        kept = sorted((-count, word) for word, count in counts.items() if count >= least)
        words = tuple(word for _, word in kept)
        written = (max(sorted(forms[w]), key=forms[w].__getitem__) if w in forms else w for w in words)
        return cls(words, tuple(written))

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """Parses what :meth:`to_json` returned.

        Raises:
            DataError: if it is anything else.
        """
        try:
            vocabulary = cls(
                *(tuple(map(str, json.loads(text)[name])) for name in ("words", "written"))
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"vocabulary: expected words and how they are written ({error})") from error
        if len(vocabulary.words) != len(vocabulary.written):
            raise DataError("vocabulary: expected as many words as ways to write them, got others")
        return vocabulary

    def to_json(self) -> str:
        """The vocabulary as text."""
        return json.dumps({"words": self.words, "written": self.written}, ensure_ascii=False)

    def __len__(self) -> int:
        return len(MARKS) + len(self.words)

    def encode(self, sentence: Iterable[str]) -> list[int]:
        """The numbers of words, ignoring case."""
        return [self._numbers.get(word.lower(), UNKNOWN) for word in sentence]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Words, as they are written inside a sentence."""
        return [
            MARKS[number] if number < len(MARKS) else self.written[number - len(MARKS)]
            for number in numbers
        ]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, len(MARKS))}
