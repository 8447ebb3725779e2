"""The table of results of the algorithmic experiments. No PyTorch here."""

from collections.abc import Sequence
from typing import Any

from gridlstm.experiments.registry import find_experiment, from_flat
from gridlstm.experiments.results import CollectedRun, Table, span

__all__ = ["make_table"]

PAPER = {
    ("memorization", 20, "tied-grid"): "solved, < 150 K (43 layers)",
    ("memorization", 20, "tied-stacked"): "< 50 % from 16 layers on",
    ("addition", 15, "tied-grid"): "> 99 %, < 550 K (18 layers, d 400)",
    ("addition", 15, "untied-grid"): "67 %, 5 M (5 layers, d 400)",
    ("addition", 15, "tied-stacked"): "at most 51 %, 5 M",
    ("addition", 15, "untied-stacked"): "at most 51 %, 5 M",
    ("parity", 50, "tied-grid"): "solved (25 layers, d 500)",
    ("parity", 100, "tied-grid"): "solved",
    ("parity", 250, "tied-grid"): "solved (148 layers, d 500)",
    ("parity", 50, "tied-tanh"): "not solved from 35 bits on",
    ("parity", 50, "tied-relu"): "not solved from 35 bits on",
}
"""The paper's results, by experiment, size and network."""


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Runs, grouped by their settings, with the paper's results."""
    groups: dict[tuple[Any, ...], list[CollectedRun]] = {}
    for run in runs:
        experiment = find_experiment(run["experiment"])
        options = from_flat(experiment, run["options"])
        sizes = (options.network, options.layers, options.hidden)
        key = (experiment.name, experiment.unit, options.size, *sizes, _differences(run["options"]))
        groups.setdefault(key, []).append(run)
    rows = []
    for (name, unit, size, network, layers, hidden, differences), group in groups.items():
        summaries = [run["summary"] for run in group]
        solved = sum(summary["reason"] == "solved" for summary in summaries)
        rows.append(
            [
                f"{name}, {size} {unit}",
                f"{network.replace('-', ' ')}, {layers} layers, d {hidden}{differences}",
                f"{solved} of {len(group)}",
                span([summary["samples"] / 1000 for summary in summaries], ".0f", " K"),
                span([100 * run["evaluation"]["accuracy"] for run in group], ".1f", " %"),
                span([summary["seconds"] / 60 for summary in summaries], ".0f"),
                PAPER.get((name, size, network), ""),
            ]
        )
    titles = ["experiment", "network", "runs solved", "samples", "accuracy", "minutes", "paper"]
    return Table(titles, rows)


def _differences(options: dict[str, Any]) -> str:
    """The differences from the paper's settings, as text."""
    words = ""
    if options["optimizer"] == "muon":
        words += ", Muon"
    if options.get("start") == "counting":
        words += ", starts by counting"
    if options.get("pace"):
        words += f", one more digit per {options['pace'] / 1000:.0f} K samples"
    return words
