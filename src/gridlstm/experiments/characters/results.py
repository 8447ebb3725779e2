"""The table of results of character-level language modelling. No PyTorch here."""

from collections.abc import Sequence

from gridlstm.experiments.paper import paper_results
from gridlstm.experiments.results import CollectedRun, Table, group_runs, note_for, span

__all__ = ["make_table"]


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Networks on Wikipedia, with those of the paper."""
    wikipedia = [r for r in runs if r["options"]["corpus"] == "enwik8" and not r["options"]["text"]]
    groups, rows = group_runs(wikipedia, "network", "layers", "hidden"), []
    for group in groups:
        options, summary = group.options, group.summary
        read = [samples * options["chunk"] for samples in group.summaries("samples")]
        seconds = group.summaries("seconds")
        pieces = {run["evaluation"]["streams"] for run in group.runs if run["evaluation"]}
        rows.append(
            [
                f"{options['network'].replace('-', ' ')}{group.difference}",
                f"{options['layers']} x {options['hidden']}",
                f"{summary['parameters'] / 1e6:.2f} M",
                group.seeds,
                group.outcome,
                span([characters / 1e6 for characters in read], ".1f", " M"),
                span([c / s for c, s in zip(read, seconds, strict=True)], ",.0f"),
                span([run["summary"]["best"]["bits"] for run in group.runs], ".3f"),
                span(group.evaluations("bits"), ".3f"),
                span(group.evaluations("characters", 1e-6), ".1f", f" M in {span([*pieces], 'd')}"),
            ]
        )
    for result in paper_results("characters"):
        value = result.value
        rows.append(
            [
                *(f"{result.network}, {result.place} of the paper", result.setting),
                *(value["parameters"], "", "", value.get("characters", ""), "", ""),
                *(value["bits"], ""),
            ]
        )
    titles = ["network", "layers x d", "parameters", "seeds", "ended", "characters read"]
    titles += ["characters/s", "validation bits", "test bits", "characters of test, pieces"]
    return Table(titles, rows, note=note_for(groups))
