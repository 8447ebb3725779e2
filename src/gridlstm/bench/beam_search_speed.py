"""``gridlstm bench search``: beam search, and its cost without carried state or without batches."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from gridlstm.bench.measure import DisagreementError, set_threads
from gridlstm.bench.options import SearchBench
from gridlstm.files import write_json
from gridlstm.models.beam_search import Candidate, Rules, search_all
from gridlstm.models.reencoder import Reencoder
from gridlstm.models.translator import Progress, Translator
from gridlstm.provenance import environment

__all__ = ["RecomputingTranslator", "SearchCase", "measure_search", "run"]


class RecomputingTranslator(Translator):
    """A translator without carried state: for every new word it runs over the whole sentence again.

    Args:
        model: the translator that it runs.
    """

    def __init__(self, model: Translator) -> None:
        super().__init__(model.source_words, model.target_words)
        self.model = model

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """As the model does."""
        return self.model.score(source, target, lengths)

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """As the model does."""
        return self.model.map_alignment(source, target, lengths)

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """The source and a target without words."""
        return source, lengths, source[:, :0]

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Runs over all words so far, and keeps the scores after the last."""
        source, lengths, target = progress
        target = torch.cat((target, words.unsqueeze(1)), 1)
        return self.model.score(source, target, lengths)[:, -1], (source, lengths, target)


@dataclass(frozen=True)
class SearchCase:
    """Sentences for an untrained Reencoder, and the length of all their translations.

    Attributes:
        sentences: number of sentences.
        source: words per sentence.
        target: words per translation.
        hidden: the hidden size.
        words: the number of different words of each language.
        beam: candidates per sentence.
    """

    sentences: int = 16
    source: int = 12
    target: int = 10
    hidden: int = 256
    words: int = 8000
    beam: int = 20

    def build(self) -> tuple[Reencoder, list[list[int]], Rules]:
        """The model, the sentences, and the rules for translations."""
        torch.manual_seed(0)
        model = Reencoder(self.words, self.words, self.hidden).eval()
        sentences = torch.randint(self.words, (self.sentences, self.source)).tolist()
        # The least and the greatest length are the same, so that every way does the same work.
        shortest, longest = self.target / self.source, (0.0, self.target)
        return model, sentences, Rules(1, 2, (0, 1), self.beam, shortest, longest)


def measure_search(
    case: SearchCase, rounds: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Seconds of every round for each way to search, and how many times longer the slow ones take.

    Raises:
        DisagreementError: if the ways do not find the same translations.
    """
    model, sentences, rules = case.build()

    def together(translator: Translator) -> dict[int, Candidate]:
        return dict(search_all(translator, sentences, rules))

    def one_by_one(translator: Translator) -> dict[int, Candidate]:
        return {
            place: dict(search_all(translator, [sentence], rules))[0]
            for place, sentence in enumerate(sentences)
        }

    ways: dict[str, Callable[[], dict[int, Candidate]]] = {
        f"{batching}, {kind}": partial(search, translator)
        for kind, translator in (("incremental", model), ("recomputing", RecomputingTranslator(model)))
        for batching, search in (("batched", together), ("one by one", one_by_one))
    }
    expected: dict[int, Candidate] | None = None
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name, way in ways.items():
            progress(f"beam search, {name}, round {turn + 1}")
            started = time.perf_counter()
            translations = way()
            seconds[name].append(time.perf_counter() - started)
            expected = translations if expected is None else expected
            if any(abs(translations[k].score - best.score) > 1e-3 for k, best in expected.items()):
                raise DisagreementError(f"beam search, {name}: finds other translations, so not timed")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    fastest = medians["batched, incremental"]
    return {
        "seconds": seconds,
        "median": medians,
        "ratio": {name: median / fastest for name, median in medians.items()},
        "seconds a sentence": fastest / case.sentences,
    }


def run(options: SearchBench) -> None:
    """Times beam search, prints and writes how many times longer simpler ways take.

    Raises:
        DisagreementError: if the ways do not find the same translations.
    """
    case = SearchCase(sentences=2, source=6, target=4, hidden=64) if options.quick else SearchCase()
    rounds = min(2, options.rounds) if options.quick else options.rounds
    console, results = Console(), []
    with console.status("") as status:
        for threads in options.threads:
            with set_threads(threads):
                measured = measure_search(case, rounds, status.update)
            results.append({"threads": threads, **measured})
    write_json(
        options.out,
        {"kind": "search", "environment": environment(), "case": asdict(case), "results": results},
    )
    for result in results:
        for way, ratio in result["ratio"].items():
            console.out(
                f"threads: {result['threads']}; {way}: {result['median'][way]:.3g} s, "
                f"{ratio:.2f} times the fastest",
                highlight=False,
            )
    console.out(options.out, highlight=False)
