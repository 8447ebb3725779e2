"""The base class of translation models: checks of sentences, word-by-word decoding, and ensembles."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.checks import check_in_graph, check_lengths, check_positive

__all__ = ["Ensemble", "Progress", "Translator", "select_sentences"]

Progress = tuple[Any, ...]
"""The state of unfinished translations: tensors, each ``[batch, ...]``, or tuples of them."""


class Translator(nn.Module, ABC):
    """A translation model over word indices.

    It scores every possible next word of the target sentence, for whole sentences at once
    (:meth:`forward`, for training) or one word after the other (:meth:`start` and :meth:`step`, for
    decoding). Both give the same scores.

    Args:
        source_words: the size of the source vocabulary.
        target_words: the size of the target vocabulary, with the begin and end marks.

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if a size is not positive.
    """

    def __init__(self, source_words: int, target_words: int) -> None:
        super().__init__()
        check_positive("source_words", source_words)
        check_positive("target_words", target_words)
        self.source_words = source_words
        self.target_words = target_words

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Scores every next word of target sentences.

        Args:
            source: words of the source sentences, ``[batch, source]``. Words beyond a sentence's length
                have no effect.
            target: the begin mark and then words of the target sentences, ``[batch, target]``. Words
                have no effect on the scores before them, so shorter sentences need no length here.
            lengths: the lengths of the source sentences, ``[batch]``. Default: all words are real.

        Returns:
            For every word of ``target``, the scores (logits) of the next word,
            ``[batch, target, target_words]``.

        Raises:
            TypeError: if words or lengths are not tensors of integers.
            ValueError: if a shape is wrong, or a word or length is out of range.
        """
        lengths = self._check_source(source, lengths)
        self._check_target(target, source)
        return self.score(source, target, lengths)

    @torch.no_grad()
    def align(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """How much each source word contributes to the word after each target word.

        Args:
            source: as in :meth:`forward`.
            target: as in :meth:`forward`.
            lengths: as in :meth:`forward`.

        Returns:
            Non-negative numbers, ``[maps, batch, target, source]``, 0 beyond the lengths. Their meaning
            and the number of maps depend on the model.
        """
        lengths = self._check_source(source, lengths)
        self._check_target(target, source)
        maps = self.map_alignment(source, target, lengths)
        beyond = torch.arange(source.shape[1], device=source.device) >= lengths.unsqueeze(-1)
        return maps.masked_fill(beyond.unsqueeze(1), 0)

    def start(self, source: Tensor, lengths: Tensor | None = None) -> Progress:
        """Reads source sentences, to translate them with :meth:`step`.

        Args:
            source: as in :meth:`forward`.
            lengths: as in :meth:`forward`.

        Returns:
            What the first :meth:`step` needs. :func:`select_sentences` reorders, repeats and drops
            sentences.
        """
        return self.begin(source, self._check_source(source, lengths))

    @abstractmethod
    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Computes :meth:`forward`, with checked arguments."""

    @abstractmethod
    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Computes :meth:`align`, with checked arguments."""

    @abstractmethod
    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """Computes :meth:`start`, with checked arguments."""

    @abstractmethod
    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Reads one more target word of each sentence.

        Args:
            words: the last words so far, ``[batch]``; first the begin mark.
            progress: the result of :meth:`start` or of the previous step.

        Returns:
            The scores of the next words, ``[batch, target_words]``, and the new progress.
        """

    def _check_source(self, source: Tensor, lengths: Tensor | None) -> Tensor:
        """The checked lengths. Default: those of the tensor."""
        _check_words("source", source, self.source_words)
        batch, size = source.shape
        if lengths is None:
            return torch.full((batch,), size, device=source.device)
        check_lengths("lengths", lengths, batch, 1, size)
        return lengths.to(source.device)

    def _check_target(self, target: Tensor, source: Tensor) -> None:
        _check_words("target", target, self.target_words)
        if len(target) != len(source):
            raise ValueError(
                f"target: expected [{len(source)}, target], as many sentences as in source, "
                f"got {list(target.shape)}"
            )


class Ensemble(Translator):
    """Several models as one, with averaged probabilities of words (section 4.4).

    Its scores are log-probabilities.

    Args:
        members: the models, which share their vocabularies.

    Raises:
        ValueError: if there are none, or their vocabularies differ in size.

    >>> from gridlstm import Reencoder
    >>> both = Ensemble([Reencoder(9, 7, 4), Reencoder(9, 7, 8)])
    >>> both(torch.tensor([[5, 4, 3]]), torch.tensor([[1, 6]])).exp().sum(-1).round(decimals=4)
    tensor([[1., 1.]], grad_fn=<RoundBackward1>)
    """

    def __init__(self, members: Sequence[Translator]) -> None:
        if not members:
            raise ValueError("members: expected at least one, got none")
        sizes = [(member.source_words, member.target_words) for member in members]
        if len(set(sizes)) > 1:
            raise ValueError(f"members: expected equal numbers of words, got {sizes}")
        super().__init__(*sizes[0])
        self.members = nn.ModuleList(members)

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Averages the members' probabilities."""
        return _average([member.score(source, target, lengths) for member in self._translators()])

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Concatenates the maps of all members."""
        maps = [member.map_alignment(source, target, lengths) for member in self._translators()]
        return torch.cat(maps)

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """The progress of each member."""
        return tuple(member.begin(source, lengths) for member in self._translators())

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Runs a step of each member, and averages their probabilities."""
        steps = [
            member.step(words, part) for member, part in zip(self._translators(), progress, strict=True)
        ]
        return _average([scores for scores, _ in steps]), tuple(part for _, part in steps)

    def _translators(self) -> list[Translator]:
        return [member for member in self.members if isinstance(member, Translator)]


def select_sentences(progress: Progress, rows: Tensor) -> Progress:
    """The progress of the sentences ``rows``, ``[new batch]``, in that order."""
    return tuple(
        select_sentences(part, rows) if isinstance(part, tuple) else part.index_select(0, rows)
        for part in progress
    )


def _average(scores: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probabilities, from the scores of each model, ``[..., words]``."""
    stacked = torch.stack([F.log_softmax(s, -1) for s in scores])
    return torch.logsumexp(stacked, 0) - math.log(len(scores))


def _check_words(name: str, words: Tensor, size: int) -> None:
    if not isinstance(words, Tensor) or words.dtype not in (torch.int64, torch.int32):
        kind = words.dtype if isinstance(words, Tensor) else type(words).__name__
        raise TypeError(f"{name}: expected a tensor of integers, got {kind}")
    if words.dim() != 2 or not words.numel():
        raise ValueError(f"{name}: expected [batch, {name}], each at least 1, got {list(words.shape)}")
    if torch.compiler.is_compiling():
        check_in_graph(words, 0, size - 1, f"{name}: expected words from 0 to {size - 1}")
    elif not words.is_meta:
        least, most = words.aminmax()
        if least < 0 or most >= size:
            wrong = int(least if least < 0 else most)
            raise ValueError(f"{name}: expected words from 0 to {size - 1}, got {wrong}")
