"""Beam search for the most likely translations, many sentences at once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from gridlstm.checks import check_positive
from gridlstm.models.translator import Translator, select_sentences

__all__ = ["Candidate", "Rules", "beam_search", "search_all"]

MAX_BLOCKS = 8192
"""Source words times candidates in a batch: enough for fast products, in about 100 MB."""


class Candidate(NamedTuple):
    """A translation: its words, without marks, and its log-probability."""

    words: list[int]
    score: float


class Rules(NamedTuple):
    """The rules of a search.

    Attributes:
        begin: the mark at the beginning of every target sentence.
        end: the mark at its end.
        banned: words that are never written.
        beam: the number of candidates per sentence; 1 is greedy search.
        shortest: the minimum number of words of a translation, as a multiple of the source words.
        longest: the maximum number of words: a multiple of the source words, plus a constant.
    """

    begin: int
    end: int
    banned: tuple[int, ...] = ()
    beam: int = 20
    shortest: float = 0.5
    longest: tuple[float, int] = (2.0, 10)

    def limits(self, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The minimum and maximum numbers of words of translations, given the source lengths."""
        factor, more = self.longest
        most = (factor * lengths).ceil().long() + more
        return (self.shortest * lengths).ceil().long().minimum(most), most


class _Beam(NamedTuple):
    """All unfinished candidates; those of a sentence are adjacent.

    Attributes:
        sentence: the sentence that each translates, ``[candidates]``, ascending.
        score: its log-probability so far, ``[candidates]``.
        words: the begin mark and its words so far, ``[candidates, words]``.
    """

    sentence: Tensor
    score: Tensor
    words: Tensor

    def take(self, chosen: Tensor) -> "_Beam":
        """The chosen candidates."""
        return _Beam(*(part[chosen] for part in self))


@torch.no_grad()
def beam_search(
    translator: Translator, source: Tensor, lengths: Tensor, rules: Rules
) -> list[Candidate]:
    """The best translation of each sentence that beam search finds (section 4.4).

    At every step each candidate is continued by every word. Of all continuations of a sentence the
    ``beam`` most likely are kept, and those that end leave the beam. Candidates that are not more
    likely than the best finished one of their sentence are dropped: more words only make them less
    likely. Each step reads one word per candidate, and all candidates of all sentences are one batch.

    Args:
        translator: the model, in evaluation mode; for several models, an :class:`Ensemble`.
        source: words of the source sentences, ``[batch, source]``.
        lengths: the lengths of the sentences, ``[batch]``.
        rules: marks, beam and limits.

    Raises:
        TypeError: if words or lengths are not tensors of integers, or the beam is not an integer.
        ValueError: if a shape is wrong, a word or length is out of range, or the beam is below 1.

    Notes:
        - Scores are sums of log-probabilities, not divided by the length: the paper mentions no
          normalisation, and discards translations shorter than half the source instead.
        - An end before the minimum length is ruled out, so it does not take a place in the beam. A
          sentence of the maximum length has to end.
    """
    check_positive("beam", rules.beam)
    progress = translator.start(source, lengths)
    device = source.device
    least, most = rules.limits(lengths.to(device))
    best: list[Candidate | None] = [None] * len(source)
    precise = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64.
    beam = _Beam(
        torch.arange(len(source), device=device),
        torch.zeros(len(source), dtype=precise, device=device),
        torch.full((len(source), 1), rules.begin, device=device),
    )
    while len(beam.sentence):
        scores, progress = translator.step(beam.words[:, -1], progress)
        logs = F.log_softmax(scores.float(), -1)
        written = beam.words.shape[1] - 1
        _forbid(logs, rules, written < least[beam.sentence], written >= most[beam.sentence])
        beam, parents = _continue(beam, logs, rules.beam)
        ended = beam.words[:, -1] == rules.end
        if ended.any():
            _collect(best, beam.take(ended))
        alive = (~ended & _can_win(beam, best)).nonzero().squeeze(-1)
        beam, progress = beam.take(alive), select_sentences(progress, parents[alive])
    return [candidate or Candidate([], float("-inf")) for candidate in best]


def search_all(
    translator: Translator, sentences: Sequence[Sequence[int]], rules: Rules
) -> Iterator[tuple[int, Candidate]]:
    """Yields the index and best translation of each of any number of sentences, as they are found.

    Sentences of about the same length are translated together, in batches that use the machine well.
    Memory depends on the longest sentence, not on their number. An empty sentence has the empty
    translation, with probability 1.

    Raises:
        TypeError: if the beam is not an integer.
        ValueError: if a word is out of range or the beam is below 1.
    """
    check_positive("beam", rules.beam)
    device = next(translator.parameters()).device
    order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))
    while order and not sentences[order[0]]:
        yield order.pop(0), Candidate([], 0.0)
    while order:
        count = max(1, MAX_BLOCKS // (len(sentences[order[-1]]) * rules.beam))
        indices, order = order[-count:], order[:-count]
        batch = [torch.tensor(sentences[index], device=device) for index in indices]
        lengths = torch.tensor([len(sentence) for sentence in batch], device=device)
        best = beam_search(translator, pad_sequence(batch, batch_first=True), lengths, rules)
        yield from zip(indices, best, strict=True)


def _forbid(logs: Tensor, rules: Rules, early: Tensor, last: Tensor) -> None:
    """Rules out words, in place: banned words, an early end, and anything but the end at the last."""
    never = float("-inf")
    end = logs[:, rules.end].masked_fill(early, never)
    logs[:, list(rules.banned)] = never
    if last.any():
        logs[last] = never
    logs[:, rules.end] = end


def _continue(beam: _Beam, logs: Tensor, size: int) -> tuple[_Beam, Tensor]:
    """The most likely continuations of each sentence, and the indices of their parents."""
    # No candidate can have more continuations in the beam than the beam has places.
    top, words = logs.topk(min(size, logs.shape[-1]), -1)
    totals = beam.score.unsqueeze(-1) + top
    # One row per sentence: candidates of a sentence are adjacent, but their number differs.
    counts = beam.sentence.bincount()
    first = counts.cumsum(0) - counts
    place = torch.arange(len(top), device=top.device) - first[beam.sentence]
    table = totals.new_full((len(counts), int(counts.max()), top.shape[-1]), float("-inf"))
    table[beam.sentence, place] = totals
    scores, chosen = table.flatten(1).topk(min(size, table[0].numel()), -1)
    parents = first.unsqueeze(-1) + chosen // top.shape[-1]
    possible = scores > float("-inf")
    parents = parents[possible]
    last = words[parents, (chosen % top.shape[-1])[possible]]
    grown = torch.cat((beam.words[parents], last.unsqueeze(-1)), -1)
    return _Beam(beam.sentence[parents], scores[possible], grown), parents


def _collect(best: list[Candidate | None], ended: _Beam) -> None:
    """Keeps the best finished candidate of each sentence."""
    for sentence, score, words in zip(*(part.tolist() for part in ended), strict=True):
        previous = best[sentence]
        if previous is None or score > previous.score:
            best[sentence] = Candidate(words[1:-1], score)


def _can_win(beam: _Beam, best: Sequence[Candidate | None]) -> Tensor:
    """Whether each candidate is more likely than the best finished one of its sentence."""
    bounds = [float("-inf") if candidate is None else candidate.score for candidate in best]
    bound = beam.score.new_tensor(bounds)[beam.sentence]
    return beam.score > bound
