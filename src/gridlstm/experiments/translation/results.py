"""The tables of results of translation. No PyTorch here."""

from collections.abc import Sequence
from typing import Any

from gridlstm.experiments.paper import paper_results
from gridlstm.experiments.results import CollectedRun, RunGroup, Table, group_runs, note_for, span

__all__ = ["make_table", "translation_table"]


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Networks on the same sentences, alone and as ensembles, with those of the paper on others."""
    groups, rows = group_runs(runs, "network", "layers", "hidden"), []
    for group in groups:
        evaluations = [run["evaluation"] for run in group.runs if run["evaluation"]]
        if evaluations:
            rows.append(_row(group, evaluations, 1))
        ensembles = [run["ensemble"] for run in group.runs if run["ensemble"]]
        rows.extend(_row(group, [result], 1 + len(result["ensemble"])) for result in ensembles)
    for result in paper_results("translation"):
        name = f"{result.network}, {result.place} of the paper, on BTEC"
        scores = [result.value.get(measure, "") for measure in ("bleu 1", "bleu all")]
        rows.append([name, result.setting, "", "", "", "", "", *scores, ""])
    titles = ["network", "layers x d", "parameters", "seeds", "ended", "pairs read", "perplexity"]
    titles += ["BLEU 1", "BLEU all", "ms per sentence, beam 20"]
    return Table(titles, rows, note=note_for(groups))


def _row(group: RunGroup, results: Sequence[dict[str, Any]], models: int) -> list[str]:
    """A network, or an ensemble that begins with it."""
    options = group.options
    name = options["network"] + (f", {models} models" if models > 1 else group.difference)
    of_runs = [group.seeds, group.outcome, span(group.summaries("samples", 1e-3), ",.0f", " K")]
    return [
        name,
        f"{options['layers']} x {options['hidden']}",
        f"{models * group.summary['parameters'] / 1e6:.1f} M",
        *(of_runs if models == 1 else ("", "", "")),
        span([result["perplexity"] for result in results], ".1f"),
        span([result["bleu 1"] for result in results], ".1f"),
        span([result["bleu all"] for result in results], ".1f"),
        span([1000 * result["seconds a sentence"] for result in results], ".0f"),
    ]


def translation_table(runs: Sequence[CollectedRun]) -> Table:
    """Translations of the first test sentences: by the first ensemble, or by one model."""
    result = next(run[kind] for kind in ("ensemble", "evaluation") for run in runs if run[kind])
    rows = [
        [pair["source"], pair["translation"], pair["references"][0]] for pair in result["translations"]
    ]
    return Table(["Chinese", "translation", "main reference"], rows, numbers=False)
