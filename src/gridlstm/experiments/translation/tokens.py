"""Tokenisers: Moses for most languages; characters or jieba for Chinese."""

import logging
import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Any, Literal

from gridlstm.cache import private_folder
from gridlstm.data.locate import DataError

__all__ = ["Chinese", "Tokeniser", "make_tokeniser", "package"]

Chinese = Literal["characters", "jieba"]
"""How Chinese is split: into characters, or into words by jieba."""

_PLAIN_QUOTES = str.maketrans("‚‘’„“”\u00a0", "'''\"\"\" ")
_PIECES = re.compile(r"[A-Za-zÀ-ÿ]+|\S")
_TIME = re.compile(r"(\d): (\d)")
_FIRST = re.compile(r"^\W*\w|(?<=\w\w[.!?] )\w")  # Not after p.m. and the like.


class Tokeniser:
    """Splits sentences of a language into words, and joins words to sentences.

    Args:
        split: the function that splits a sentence.
        join: the function that joins words.
    """

    def __init__(self, split: Callable[[str], list[str]], join: Callable[[Sequence[str]], str]) -> None:
        self._split = split
        self._join = join

    def split(self, sentence: str) -> list[str]:
        """The words of a sentence, including punctuation."""
        text = unicodedata.normalize("NFC", sentence)
        return self._split("".join(c if c.isprintable() else " " for c in text))

    def join(self, words: Sequence[str]) -> str:
        """A sentence as it is written, with the usual spaces and a capital at its beginning."""
        return self._join(words)


@lru_cache
def make_tokeniser(language: str, chinese: Chinese = "characters") -> Tokeniser:
    """The tokeniser of a language.

    Args:
        language: its code, as ``"en"``. All but ``"zh"`` are split by the rules of Moses, which has
            abbreviations of many languages and uses those of English for others.
        chinese: how Chinese is split.

    Raises:
        DataError: if it needs a package that is not installed.

    >>> make_tokeniser("zh").split("汤姆 sings 1 首歌。")
    ['汤', '姆', 'sings', '1', '首', '歌', '。']
    """
    if language == "zh":
        return Tokeniser(_PIECES.findall if chinese == "characters" else _jieba(), _join_chinese)
    moses = package("sacremoses")
    tokenizer, detokenizer = moses.MosesTokenizer(language), moses.MosesDetokenizer(language)

    def split(sentence: str) -> list[str]:
        words: list[str] = tokenizer.tokenize(sentence.translate(_PLAIN_QUOTES), escape=False)
        return words

    def join(words: Sequence[str]) -> str:
        text = _TIME.sub(r"\1:\2", detokenizer.detokenize(list(words), unescape=False))
        return _FIRST.sub(lambda first: first[0].upper(), text)

    return Tokeniser(split, join)


def _join_chinese(words: Sequence[str]) -> str:
    """Joins words without spaces, except between words in Latin letters."""
    text = ""
    for word in words:
        apart = text and all(c.isascii() and c.isalpha() for c in (text[-1], word[0]))
        text += f" {word}" if apart else word
    return text


def _jieba() -> Callable[[str], list[str]]:
    jieba = package("jieba")
    jieba.setLogLevel(
        logging.CRITICAL
    )  # It works without its cache, and need not warn if it cannot write it.
    tokenizer = jieba.Tokenizer()
    # By default it would read its cache from a folder to which everybody can write.
    with ExitStack() as stack:
        try:
            folder = str(private_folder("jieba"))
        except OSError:
            folder = stack.enter_context(TemporaryDirectory(prefix="gridlstm-"))
        tokenizer.tmp_dir = folder
        tokenizer.initialize()

    def split(sentence: str) -> list[str]:
        return [word for word in tokenizer.cut(sentence) if not word.isspace()]

    return split


def package(name: str) -> Any:
    """Imports a package that only translation needs.

    Raises:
        DataError: if it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Old packages use deprecated features.
            return __import__(name)
    except ImportError as error:
        raise DataError(
            f"translation: expected the package {name}, got none; pip install 'gridlstm[translation]'"
        ) from error
