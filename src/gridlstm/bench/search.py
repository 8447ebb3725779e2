"""Beam search as it is, beside what it would cost without carried state or without batches."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from gridlstm.bench.measure import DisagreementError
from gridlstm.bench.options import Bench
from gridlstm.files import write_json
from gridlstm.models.beam_search import Candidate, Rules, search_all
from gridlstm.models.reencoder import Reencoder
from gridlstm.models.translator import Progress, Translator
from gridlstm.provenance import environment

__all__ = ["Recomputing", "SearchCase", "measure_search", "run_search"]


class Recomputing(Translator):
    """A model that carries nothing: for every new word it runs over the whole sentence again.

    Args:
        model: what it does so with.
    """

    def __init__(self, model: Translator) -> None:
        super().__init__(model.source_words, model.target_words)
        self.model = model

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """That of the model."""
        return self.model.score(source, target, lengths)

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """That of the model."""
        return self.model.map_alignment(source, target, lengths)

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """The source, and no words yet."""
        return source, lengths, source[:, :0]

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """All rows of blocks, of which the last counts."""
        source, lengths, before = progress
        target = torch.cat((before, words.unsqueeze(1)), 1)
        return self.model.score(source, target, lengths)[:, -1], (source, lengths, target)


@dataclass(frozen=True)
class SearchCase:
    """Sentences to be translated by an untrained Reencoder, which writes as long ones as it may.

    Attributes:
        sentences: how many.
        source: words of each.
        target: words of each translation.
        hidden: the length of the vectors.
        words: the number of different words, of both languages.
        beam: candidates of a sentence.
    """

    sentences: int = 16
    source: int = 12
    target: int = 10
    hidden: int = 256
    words: int = 8000
    beam: int = 20

    def build(self) -> tuple[Reencoder, list[list[int]], Rules]:
        """The model, the sentences, and what translations may look like."""
        torch.manual_seed(0)
        model = Reencoder(self.words, self.words, self.hidden).eval()
        sentences = torch.randint(self.words, (self.sentences, self.source)).tolist()
        # As long as all others have to be: the end cannot come before, and must come then.
        shortest, longest = self.target / self.source, (0.0, self.target)
        return model, sentences, Rules(1, 2, (0, 1), self.beam, shortest, longest)


def measure_search(
    case: SearchCase, rounds: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Seconds of every round, by way to search, and how many times longer the slow ones take.

    Raises:
        RuntimeError: if the ways do not find the same translations: then their times mean nothing.
    """
    model, sentences, rules = case.build()

    def together(translator: Translator) -> dict[int, Candidate]:
        return dict(search_all(translator, sentences, rules))

    def one_by_one(translator: Translator) -> dict[int, Candidate]:
        found = (dict(search_all(translator, [own], rules)) for own in sentences)
        return {place: only[0] for place, only in enumerate(found)}

    ways: dict[str, Callable[[], dict[int, Candidate]]] = {
        f"{batching}, {kind}": partial(search, translator)
        for kind, translator in (("incremental", model), ("recomputing", Recomputing(model)))
        for batching, search in (("batched", together), ("one by one", one_by_one))
    }
    expected: dict[int, Candidate] | None = None
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name, way in ways.items():
            progress(f"beam search, {name}, round {turn + 1}")
            started = time.perf_counter()
            found = way()
            seconds[name].append(time.perf_counter() - started)
            expected = found if expected is None else expected
            if any(abs(found[k].score - own.score) > 1e-3 for k, own in expected.items()):
                raise DisagreementError(f"beam search, {name}: finds other translations: not timed")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    fastest = medians["batched, incremental"]
    return {
        "seconds": seconds,
        "median": medians,
        "ratio": {name: median / fastest for name, median in medians.items()},
        "seconds a sentence": fastest / case.sentences,
    }


def run_search(options: Bench, console: Console) -> None:
    """Times beam search, tells and writes down how many times longer simpler ways take.

    Raises:
        DisagreementError: if the ways do not find the same translations.
    """
    case = SearchCase(sentences=2, source=6, target=4, hidden=64) if options.quick else SearchCase()
    before, out = torch.get_num_threads(), options.out or Path("runs/bench-search.json")
    results = []
    try:
        with console.status("") as status:
            for threads in options.threads:
                torch.set_num_threads(threads)
                rounds = min(2, options.rounds) if options.quick else options.rounds
                results.append({"threads": threads, **measure_search(case, rounds, status.update)})
    finally:
        torch.set_num_threads(before)
    write_json(
        out,
        {"kind": "search", "environment": environment(), "case": asdict(case), "results": results},
    )
    for found in results:
        for name, ratio in found["ratio"].items():
            console.print(
                f"{found['threads']} threads, {name}: {found['median'][name]:.3g} s, "
                f"{ratio:.2f} times the fastest",
                highlight=False,
            )
    console.print(f"{out}")
