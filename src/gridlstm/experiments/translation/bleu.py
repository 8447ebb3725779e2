"""BLEU-4 by sacreBLEU, with its signature."""

from collections.abc import Sequence
from typing import NamedTuple

from gridlstm.experiments.translation.tokens import package

__all__ = ["Bleu", "bleu"]


class Bleu(NamedTuple):
    """A score from 0 to 100, and what tells how it was computed."""

    score: float
    signature: str


def bleu(
    translations: Sequence[str], references: Sequence[Sequence[str]], language: str = "en"
) -> Bleu:
    """BLEU-4 of a corpus, whatever the case of letters, as in the paper's Figure 8.

    Args:
        translations: one of each sentence.
        references: one or several of each sentence; their number may differ.
        language: of the translations; Chinese is compared by characters.

    Raises:
        DataError: if sacreBLEU is not installed.

    >>> round(bleu(["the cat sat down ."], [["The cat sat down.", "Down sat the cat."]]).score, 6)
    100.0
    """
    metric = package("sacrebleu").BLEU(lowercase=True, tokenize="zh" if language == "zh" else "13a")
    most = max(len(own) for own in references)
    # One stream for the first reference of all sentences, one for the second, and so on.
    streams = [[own[k] if k < len(own) else None for own in references] for k in range(most)]
    score = metric.corpus_score(list(translations), streams)
    return Bleu(float(score.score), str(metric.get_signature()))
