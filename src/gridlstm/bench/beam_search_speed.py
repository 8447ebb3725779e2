"""``gridlstm bench search``: beam search, and its cost without carried state or without batches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from gridlstm.bench.limits import limit_flops, make_limits, share_of_limit
from gridlstm.bench.measure import DisagreementError
from gridlstm.bench.options import SearchBench
from gridlstm.bench.plain_table import fill, make_plain_table
from gridlstm.bench.recorded import record_products
from gridlstm.bench.summary import ratio_text, spread_text, summarise
from gridlstm.bench.timing import time_in_turn
from gridlstm.files import write_json
from gridlstm.models.beam_search import Candidate, Rules, search_all
from gridlstm.models.reencoder import Reencoder
from gridlstm.models.translator import Progress, Translator
from gridlstm.provenance import environment

__all__ = [
    "RecomputingTranslator",
    "SearchCase",
    "measure_search",
    "run",
    "search_section",
    "search_table",
]

FASTEST = "batched, incremental"


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
    case: SearchCase,
    rounds: int,
    threads: Sequence[int] = (1,),
    patience: float = math.inf,
    *,
    quick: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """For each number of threads: seconds of every round for each way to search, and their ratios.

    Args:
        case: what is searched.
        rounds: how many rounds there are.
        threads: the numbers of threads.
        patience: see :func:`time_in_turn`; the slow ways get fewer rounds.
        quick: whether the limit is that of a small product.
        progress: is told what is timed.

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

    expected: dict[int, Candidate] = {}

    def checked(name: str, search: Callable[[], dict[int, Candidate]]) -> None:
        found = search()
        expected.update({k: best for k, best in found.items() if k not in expected})
        if any(abs(found[k].score - best.score) > 1e-3 for k, best in expected.items()):
            raise DisagreementError(f"beam search, {name}: finds other translations, so not timed")

    ways: dict[str, Callable[[], object]] = {
        f"{batching}, {kind}": partial(checked, f"{batching}, {kind}", partial(search, translator))
        for kind, translator in (("incremental", model), ("recomputing", RecomputingTranslator(model)))
        for batching, search in (("batched", together), ("one by one", one_by_one))
    }
    limits = make_limits(bfloat16=False, quick=quick)
    flops = {name: sum(p.flops for p in record_products(ways[name])) for name in (FASTEST,)}
    measured = time_in_turn(
        {**limits, **ways},
        threads,
        rounds,
        patience,
        main=(*limits, FASTEST),
        slow=[name for name in ways if name != FASTEST],
        single=ways,
        progress=lambda what: progress(f"beam search: {what}"),
    )
    results = []
    for count, seconds in measured.items():
        summary = summarise(seconds)
        median = summary["median"]
        results.append(
            {
                "threads": int(count),
                **summary,
                "ratio": {name: median[name] / median[FASTEST] for name in ways if name in median},
                "seconds a sentence": median[FASTEST] / case.sentences,
                "flops": flops,
                "share of limit": {
                    name: share_of_limit(flops[name], median, name, quick=quick) for name in flops
                },
            }
        )
    return results


def run(options: SearchBench) -> None:
    """Times beam search, prints and writes how many times longer simpler ways take.

    Raises:
        DisagreementError: if the ways do not find the same translations.
    """
    console = Console()
    with console.status("") as status:
        section = search_section(options, status.update)
    write_json(options.out, {"kind": "search", "environment": environment(), **section})
    console.print(search_table(section))
    console.out(options.out, highlight=False)


def search_section(options: SearchBench, progress: Callable[[str], None]) -> dict[str, Any]:
    """The case and its times, as in a result file.

    Raises:
        DisagreementError: if the ways do not find the same translations.
    """
    case = SearchCase(sentences=2, source=6, target=4, hidden=64) if options.quick else SearchCase()
    rounds = min(2, options.rounds) if options.quick else options.rounds
    results = measure_search(
        case, rounds, options.threads, options.patience, quick=options.quick, progress=progress
    )
    return {
        "case": asdict(case),
        "limit flops": limit_flops(quick=options.quick),
        "results": results,
    }


def search_table(section: dict[str, Any]) -> Table:
    """Each way to search, by number of threads."""
    table = make_plain_table(
        title="Beam search with a Reencoder",
        caption="n: rounds. ±: half their range, in percent. ratio: time over that of the fastest way. "
        "peak: the rate of its matrix products over that of a large one.",
    )
    rows = []
    for result in section["results"]:
        for way in result["ratio"]:
            times, share = result["seconds"][way], result["share of limit"].get(way)
            rows.append(
                {
                    "beam search": way,
                    "thr": str(result["threads"]),
                    "n": str(len(times)),
                    "s": f"{result['median'][way]:.3g}",
                    "±": spread_text(times),
                    "ratio": ratio_text(times, result["seconds"][FASTEST]),
                    "peak": "" if share is None else f"{share:.2f}",
                }
            )
    return fill(table, rows, left=("beam search",))
