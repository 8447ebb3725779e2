"""The table of results of the algorithmic experiments. No PyTorch here."""

from collections.abc import Sequence
from typing import Any

from gridlstm.experiments.paper import paper_result
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import find_experiment, flat, from_flat
from gridlstm.experiments.results import CollectedRun, Table, group_runs, note_for, span

__all__ = ["make_table"]

SHOWN = ("digits", "length", "vocabulary", "bits", "network", "layers", "hidden")
"""Options that every row shows."""
NAMED = ("optimizer", "pace", "fill", "zeros", "start")
"""Options that a row names wherever they differ from the paper's settings."""


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Runs in groups that differ only in their seed, with the paper's results."""
    groups, rows = group_runs(runs, *SHOWN, *NAMED), []
    for group in groups:
        experiment = find_experiment(group.runs[0]["experiment"])
        options = from_flat(experiment, group.options)
        paper = paper_result(experiment.name, options.network, options.size)
        rows.append(
            [
                f"{experiment.name}, {options.size} {experiment.unit}",
                f"{options.network.replace('-', ' ')}, {options.layers} x {options.hidden}"
                f"{_unlike_paper(experiment, options)}{group.difference}",
                group.seeds,
                group.outcome,
                span(group.summaries("samples", 1e-3), ".0f", " K"),
                span(group.evaluations("accuracy", 100), ".1f", " %"),
                span(group.summaries("seconds", 1 / 60), ".0f"),
                f"{', '.join(paper.value.values())} ({paper.setting})" if paper else "",
            ]
        )
    titles = ["experiment", "network, layers x d", "seeds", "ended", "samples", "accuracy", "minutes"]
    return Table([*titles, "paper"], rows, note=note_for(groups))


def _unlike_paper(experiment: Experiment[Any], options: Any) -> str:
    """What is not as in the paper, in words."""
    ours, paper = flat(options), flat(experiment.presets["paper"])
    names = [name for name in NAMED if name in ours and ours[name] != paper[name]]
    return "".join(f", {name} {ours[name]}" for name in names)
