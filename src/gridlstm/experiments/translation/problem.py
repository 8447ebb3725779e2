"""Translation as a problem for the trainer (section 4.4)."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.data.locate import DataError
from gridlstm.experiments.translation.bleu import bleu
from gridlstm.experiments.translation.data import Buckets, Numbers, Pair, Parallel, make_batch
from gridlstm.experiments.translation.options import TranslationEval, TranslationOptions
from gridlstm.experiments.translation.text_translator import (
    Language,
    TextTranslator,
    load_translator,
    make_ensemble,
    make_model,
)
from gridlstm.experiments.translation.tokens import make_tokeniser
from gridlstm.experiments.translation.vocabulary import PADDING, UNKNOWN, Vocabulary
from gridlstm.training.problem import Measures, Problem
from gridlstm.training.rundir import RunDir

__all__ = ["TranslationProblem", "measure"]

SENTENCES_AT_ONCE = 50
"""The number of sentences per batch of a measurement; fewer if they are long."""
BLOCKS = 2**16
"""The largest number of blocks of such a batch: fast enough, with some 200 MB of memory."""
DEMONSTRATED = 2
"""The number of sentences of a demonstration."""
SHOWN = 20
"""The number of translations that a test returns."""


class TranslationProblem(Problem):
    """Translation of sentences.

    Args:
        options: the options of the experiment.
        data: the directory of data sets.

    Raises:
        ValueError: if the text is missing, damaged or too short, or a package is not installed.
    """

    adam_parameters = ("model.source.*", "model.target.*", "model.scores.*")

    def __init__(self, options: TranslationOptions, data: Path | None) -> None:
        self.options = options
        self.matrix_rows = options.hidden
        self.text = _text(options, data)
        for part in ("valid", "test"):
            if not getattr(self.text, part):
                raise DataError(f"{part}: expected at least one sentence, got none")
        chosen = [
            (pair.source, reference)
            for pair in self.text.train[: options.pairs]
            for reference in pair.references
        ]
        languages, sides = [], []
        for place, code in enumerate((options.source, options.target)):
            tokeniser = make_tokeniser(code, options.chinese)
            sides.append([tokeniser.split(pair[place]) for pair in chosen])
        short = [
            pair
            for pair in zip(*sides, strict=True)
            if all(1 <= len(sentence) <= options.longest for sentence in pair)
        ]
        for place, code in enumerate((options.source, options.target)):
            vocabulary = Vocabulary.build((pair[place] for pair in short), options.least)
            languages.append(Language(code, options.chinese, vocabulary))
        self.source, self.target = languages
        encoders = [language.vocabulary.encode for language in languages]
        self.pairs: list[Numbers] = [
            (encoders[0](source), encoders[1](target)) for source, target in short
        ]
        lengths = np.array([(len(a), len(b)) for a, b in self.pairs], np.int64).reshape(-1, 2)
        training = options.training
        self.buckets = Buckets(lengths, training.batch, training.seed)

    def data(self) -> dict[str, str]:
        """The checksums of the three parts."""
        return self.text.sha256()

    def show(self, count: int) -> Iterator[str]:
        """Pairs of the first batches, as the model reads them."""
        batch = self.options.training.batch
        places = np.concatenate([self.buckets.at(k) for k in range(-(-count // batch))])[:count]
        for place in places:
            for language, sentence in zip((self.source, self.target), self.pairs[place], strict=True):
                yield f"{language.code}  {' '.join(language.vocabulary.decode(sentence))}"

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """The first test sentences and their translations."""
        assert isinstance(network, TextTranslator), "the network of this problem"
        chosen = self.text.test[:DEMONSTRATED]
        sources = [source for source, _ in self._encoded(chosen)]
        written = dict(network.translate(sources, self.options.beam))
        for place, pair in enumerate(chosen):
            yield f"{self.source.code}  {pair.source}"
            yield f"{self.target.code}  {written[place]}"

    def network(self) -> nn.Module:
        """A new network of the kind named in the options."""
        return make_model(self.options, self.source, self.target)

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """Cross-entropy per word, including ends; its mean over processes is that of the batch."""
        batch = self.options.training.batch
        update, start = divmod(first, batch)
        places = self.buckets.at(update)
        words = sum(len(self.pairs[place][1]) + 1 for place in places)
        share = [self.pairs[place] for place in places[start : start + count]]
        return _nats(network, share) * (batch / count / words)

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Perplexity of the main translations of validation sentences, the same at every evaluation."""
        pairs = self._encoded(self.text.valid[: self.options.validated])
        return {"perplexity": measure(network, pairs)["perplexity"]}

    def test(
        self, network: nn.Module, samples: int | None, options: TranslationEval
    ) -> Mapping[str, Any]:
        """Perplexity and BLEU of test sentences. Default: all of them.

        BLEU is that of beam search, against the main reference and against all of them.
        """
        assert isinstance(network, TextTranslator), "the network of this problem"
        further = (load_translator(RunDir.open(path)) for path in options.ensemble)
        network = make_ensemble([network, *further])
        chosen, beam = self.text.test[:samples], options.beam or self.options.beam
        pairs = self._encoded(chosen)
        measures = measure(network, pairs)
        started = time.perf_counter()
        translations = _translate(network, [source for source, _ in pairs], beam)
        seconds = (time.perf_counter() - started) / len(pairs)
        main = bleu(translations, [pair.references[:1] for pair in chosen], self.options.target)
        all_of_them = bleu(translations, [pair.references for pair in chosen], self.options.target)
        return {
            **measures,
            **({"ensemble": [path.name for path in options.ensemble]} if options.ensemble else {}),
            "beam": beam,
            "bleu 1": main.score,
            "bleu all": all_of_them.score,
            "signature 1": main.signature,
            "signature all": all_of_them.signature,
            "seconds a sentence": seconds,
            "translations": [
                {"source": pair.source, "translation": translation, "references": pair.references}
                for pair, translation in list(zip(chosen, translations, strict=True))[:SHOWN]
            ],
        }

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Whether the perplexity is lower."""
        return not best or measures["perplexity"] < best["perplexity"]

    def _encoded(self, pairs: Sequence[Pair]) -> list[Numbers]:
        return [
            (self.source.encode(pair.source) or [UNKNOWN], self.target.encode(pair.references[0]))
            for pair in pairs
        ]


def _translate(network: TextTranslator, sources: list[list[int]], beam: int) -> list[str]:
    """Translations in the order of the sentences, with a progress bar on a terminal."""
    translations, console = [""] * len(sources), Console(stderr=True)
    for place, sentence in track(
        network.translate(sources, beam),
        description="translating",
        total=len(sources),
        console=console,
        disable=not console.is_terminal,
    ):
        translations[place] = sentence
    return translations


@torch.no_grad()
def measure(network: nn.Module, pairs: Sequence[Numbers]) -> Measures:
    """The perplexity of translations per word, including ends and unknown words.

    Returns:
        ``perplexity``, and the number of predicted ``sentences`` and ``words``.
    """
    total = sum(_nats(network, group).item() for group in _groups(pairs))
    words = sum(len(target) + 1 for _, target in pairs)
    return {"perplexity": math.exp(total / words), "sentences": len(pairs), "words": words}


def _groups(pairs: Sequence[Numbers]) -> Iterator[list[Numbers]]:
    """Batches of pairs with sources of similar length, limited so that their blocks fit into memory."""
    ordered = sorted(pairs, key=lambda pair: len(pair[0]))
    for first in range(0, len(ordered), SENTENCES_AT_ONCE):
        group = ordered[first : first + SENTENCES_AT_ONCE]
        area = len(group[-1][0]) * max(len(target) + 1 for _, target in group)
        count = max(1, BLOCKS // area)
        yield from (group[start : start + count] for start in range(0, len(group), count))


def _nats(network: nn.Module, pairs: Sequence[Numbers]) -> Tensor:
    """The sum of the losses of all words of these sentences."""
    device = next(network.parameters()).device
    source, lengths, target, following = (
        torch.from_numpy(array).to(device) for array in make_batch(pairs)
    )
    scores = network(source, target, lengths).flatten(0, 1).float()
    return F.cross_entropy(scores, following.flatten(), ignore_index=PADDING, reduction="sum")


def _text(options: TranslationOptions, data: Path | None) -> Parallel:
    if options.train:
        files = (options.train, options.valid, options.test)
        return Parallel.from_files(*([Path(path) for path in part] for part in files))
    if options.corpus == "multi30k":
        return Parallel.multi30k(options.source, options.target, data)
    return Parallel.tatoeba()
