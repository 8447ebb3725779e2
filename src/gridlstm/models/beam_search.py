"""Beam search: the likeliest translations that a model knows, many sentences at once."""

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
"""Source words times candidates under way at once: enough for fast products, and some 100 MB."""


class Candidate(NamedTuple):
    """A translation: its words, without marks, and the logarithm of its probability."""

    words: list[int]
    score: float


class Rules(NamedTuple):
    """What a translation may look like.

    Attributes:
        begin: the mark that every target sentence begins with.
        end: the mark that ends one.
        banned: words that are never written.
        beam: how many candidates of a sentence are followed at once; 1 takes the likeliest word each
            time.
        shortest: translations with fewer words than this times those of the source are discarded.
        longest: the most words that a translation has: a factor of those of the source, and some more.
    """

    begin: int
    end: int
    banned: tuple[int, ...] = ()
    beam: int = 20
    shortest: float = 0.5
    longest: tuple[float, int] = (2.0, 10)

    def limits(self, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The fewest and the most words of translations of sentences with so many words."""
        factor, more = self.longest
        most = (factor * lengths).ceil().long() + more
        return (self.shortest * lengths).ceil().long().minimum(most), most


class _Beam(NamedTuple):
    """All candidates that are under way, those of a sentence side by side.

    Attributes:
        sentence: whose translation each is, ``[candidates]``, ascending.
        score: the logarithm of its probability so far, ``[candidates]``.
        words: the mark of the beginning and its words so far, ``[candidates, words]``.
    """

    sentence: Tensor
    score: Tensor
    words: Tensor

    def take(self, chosen: Tensor) -> "_Beam":
        """Some of the candidates."""
        return _Beam(*(part[chosen] for part in self))


@torch.no_grad()
def beam_search(
    translator: Translator, source: Tensor, lengths: Tensor, rules: Rules
) -> list[Candidate]:
    """The best translation of each sentence that beam search finds (section 4.4).

    At every step each candidate is continued by every word; of all continuations of a sentence the
    ``beam`` likeliest are kept, and those that end leave the beam. Candidates that are no likelier than
    the best of their sentence that has ended are dropped: more words only make them less likely, so
    they cannot win any more. Each step costs one word for each candidate, and all candidates of all
    sentences are one batch.

    Args:
        translator: the model, in evaluation mode; :class:`Ensemble` makes one of several.
        source: words of the source sentences, ``[batch, source]``.
        lengths: how many are real, ``[batch]``.
        rules: marks, beam and limits.

    Raises:
        TypeError: if words or lengths are no tensors of integers, or the beam is no integer.
        ValueError: if a shape does not fit, a word or length is out of range, or the beam is below 1.

    Notes:
        - Scores are sums of logarithms; they are not divided by the length. The paper names no such
          division, and against its reward of brevity has the rule of half the source's length.
        - An end that would come too early is not allowed in the first place, so it takes no place in
          the beam from candidates that may end later. A sentence as long as is allowed has to end.
    """
    check_positive("beam", rules.beam)
    progress = translator.start(source, lengths)
    device = source.device
    least, most = rules.limits(lengths.to(device))
    best: list[Candidate | None] = [None] * len(source)
    beam = _Beam(
        torch.arange(len(source), device=device),
        torch.zeros(len(source), dtype=torch.float64, device=device),
        torch.full((len(source), 1), rules.begin, device=device),
    )
    while len(beam.sentence):
        scores, progress = translator.step(beam.words[:, -1], progress)
        logs = F.log_softmax(scores.float(), -1)
        written = beam.words.shape[1] - 1
        _forbid(logs, rules, written < least[beam.sentence], written >= most[beam.sentence])
        beam, parents = _continue(beam, logs, rules.beam)
        ended = beam.words[:, -1] == rules.end
        _collect(best, beam.take(ended))
        beam, parents = beam.take(~ended), parents[~ended]
        hopeful = _hopeful(beam, best)
        beam, progress = beam.take(hopeful), select_sentences(progress, parents[hopeful])
    return [Candidate([], float("-inf")) if found is None else found for found in best]


def search_all(
    translator: Translator, sentences: Sequence[Sequence[int]], rules: Rules
) -> Iterator[tuple[int, Candidate]]:
    """The best translations of any number of sentences, with their places, as they are found.

    Sentences of about the same length are translated together, as many as make good use of the machine;
    what is kept in memory depends on the longest sentence and not on their number. The translation of
    no words is none, for certain.

    Raises:
        TypeError: if the beam is no integer.
        ValueError: if a word is out of range or the beam is below 1.
    """
    check_positive("beam", rules.beam)
    device = next(translator.parameters()).device
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    while order and not sentences[order[0]]:
        yield order.pop(0), Candidate([], 0.0)
    while order:
        count = max(1, MAX_BLOCKS // (len(sentences[order[-1]]) * rules.beam))
        places, order = order[-count:], order[:-count]
        own = [torch.tensor(sentences[place], device=device) for place in places]
        lengths = torch.tensor([len(sentence) for sentence in own], device=device)
        found = beam_search(translator, pad_sequence(own, batch_first=True), lengths, rules)
        yield from zip(places, found, strict=True)


def _forbid(logs: Tensor, rules: Rules, early: Tensor, last: Tensor) -> None:
    """Rules out words, in place: those that are banned, an end too early, all but the end at last."""
    never = float("-inf")
    end = logs[:, rules.end].masked_fill(early, never)
    logs[:, list(rules.banned)] = never
    logs.masked_fill_(last.unsqueeze(-1), never)
    logs[:, rules.end] = end


def _continue(beam: _Beam, logs: Tensor, size: int) -> tuple[_Beam, Tensor]:
    """The likeliest continuations of each sentence, and the places of those that they continue."""
    # No candidate can have more of its own continuations in the beam than the beam has places.
    own, words = logs.topk(min(size, logs.shape[-1]), -1)
    totals = beam.score.unsqueeze(-1) + own
    # One row a sentence: candidates of a sentence are side by side, but not equally many.
    sentences, row, counts = beam.sentence.unique_consecutive(return_inverse=True, return_counts=True)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(row), device=row.device) - first[row]
    table = totals.new_full((len(sentences), int(counts.max()), own.shape[-1]), float("-inf"))
    table[row, place] = totals
    scores, chosen = table.flatten(1).topk(min(size, table[0].numel()), -1)
    parents = first.unsqueeze(-1) + chosen // own.shape[-1]
    possible = scores > float("-inf")
    parents = parents[possible]
    last = words[parents, (chosen % own.shape[-1])[possible]]
    grown = torch.cat((beam.words[parents], last.unsqueeze(-1)), -1)
    return _Beam(beam.sentence[parents], scores[possible], grown), parents


def _collect(best: list[Candidate | None], ended: _Beam) -> None:
    """Keeps the best ended candidate of each sentence."""
    for sentence, score, words in zip(*(part.tolist() for part in ended), strict=True):
        known = best[sentence]
        if known is None or score > known.score:
            best[sentence] = Candidate(words[1:-1], score)


def _hopeful(beam: _Beam, best: Sequence[Candidate | None]) -> Tensor:
    """Candidates that are likelier than the best of their sentence that has ended; no other can win."""
    bounds = [float("-inf") if found is None else found.score for found in best]
    bound = beam.score.new_tensor(bounds)[beam.sentence]
    return beam.score > bound
