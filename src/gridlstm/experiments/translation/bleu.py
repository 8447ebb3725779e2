"""BLEU-4 by sacreBLEU, with its signature."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from gridlstm.experiments.translation.tokens import package

__all__ = ["Bleu", "bleu"]


class Bleu(NamedTuple):
    """A score from 0 to 100, and sacreBLEU's signature of how it was computed."""

    score: float
    signature: str


def bleu(
    translations: Sequence[str], references: Sequence[Sequence[str]], language: str = "en"
) -> Bleu:
    """BLEU-4 of a corpus, ignoring case, as in the paper's Figure 8.

    Args:
        translations: one per sentence.
        references: one or several per sentence; their number may differ.
        language: the language of the translations; Chinese is compared by characters.

    Raises:
        DataError: if sacreBLEU is not installed.

    >>> round(bleu(["the cat sat down ."], [["The cat sat down.", "Down sat the cat."]]).score, 6)
    100.0
    """
    metric = package("sacrebleu").BLEU(lowercase=True, tokenize="zh" if language == "zh" else "13a")
    # sacreBLEU takes the first references of all sentences, then the second ones, and so on.
    columns = [list(column) for column in zip_longest(*references)]
    score = metric.corpus_score(list(translations), columns)
    return Bleu(float(score.score), str(metric.get_signature()))
