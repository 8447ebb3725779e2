"""A font with the characters of a figure."""

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

__all__ = ["find_font"]

_log = logging.getLogger("gridlstm")

CHINESE = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "Noto Sans CJK JP",
)
"""Installed fonts for Chinese to prefer, the best first."""
SHIPPED = Path(__file__).parent / "fonts" / "NotoSansSC-subset.otf"
"""Latin and the Chinese characters of the sentences that come with the package."""


def find_font(*sentences: Sequence[str]) -> tuple[FontProperties, list[list[str]]]:
    """A font with all characters of some words, and the words.

    A character that neither an installed font nor the one in the package has is replaced by its code
    point, with a warning. All Chinese characters of the data in the package are in its font.
    """
    characters = frozenset(ord(c) for sentence in sentences for word in sentence for c in word)
    path = _font(characters)
    if path is not None:
        return FontProperties(fname=path), [list(sentence) for sentence in sentences]
    paths = [findfont(FontProperties()), str(SHIPPED)]
    best = max(paths, key=lambda path: len(characters & _characters(path)))
    known = _characters(best)
    _log.warning("no font has all characters; some are shown as code points")
    return FontProperties(fname=best), [
        ["".join(c if ord(c) in known else f"U+{ord(c):X}" for c in word) for word in sentence]
        for sentence in sentences
    ]


@lru_cache(maxsize=16)
def _font(characters: frozenset[int]) -> str | None:
    """The file of a font with all characters, preferably the default one."""
    return next((path for path in dict.fromkeys(_paths()) if characters <= _characters(path)), None)


def _paths() -> Iterator[str]:
    """Files of fonts, the best first."""
    yield findfont(FontProperties())
    # Regular weights; the font Last Resort has every character, but only as a box.
    installed = [font for font in fontManager.ttflist if "Last Resort" not in font.name]
    regular = [font for font in installed if font.weight in (400, "normal", "regular")]
    for name in CHINESE:
        yield from (font.fname for font in regular if font.name == name)
    yield str(SHIPPED)
    yield from (font.fname for font in installed)


def _characters(path: str) -> set[int]:
    """The code points of a font; none if its file is missing or damaged."""
    try:
        return set(get_font(path).get_charmap())
    except (OSError, RuntimeError):
        return set()
