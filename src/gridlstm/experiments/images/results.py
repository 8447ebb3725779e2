"""The table of results of the experiment on images. No PyTorch here."""

from collections.abc import Sequence

from gridlstm.experiments.images.options import NETWORKS
from gridlstm.experiments.paper import paper_results
from gridlstm.experiments.results import CollectedRun, RunGroup, Table, group_runs, note_for, span

__all__ = ["epochs", "make_table"]

TRAINING_IMAGES, RETRAINING_IMAGES = 50_000, 60_000
"""Of MNIST, without and with those for validation."""


def epochs(group: RunGroup) -> str:
    """How often runs on MNIST have seen each training image."""
    images = RETRAINING_IMAGES if group.options["retrain"] else TRAINING_IMAGES
    return span(group.summaries("samples", 1 / images), ".0f")


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Networks on MNIST, with those of the paper."""
    groups, rows = group_runs(runs, "network", "layers", "hidden", "patch", "relu", "retrain"), []
    for group in groups:
        options = group.options
        on_mnist = options["dataset"] == "mnist" and not options.get("folder")
        best = [100 * run["summary"]["best"]["error"] for run in group.runs if run["summary"]["best"]]
        retrained = ", validation images used too" if options["retrain"] else ""
        rows.append(
            [
                f"{NETWORKS[options['network']]}{retrained}{group.difference}",
                f"{options['layers']} x {options['hidden']}, {options['patch']}, {options['relu']}",
                f"{group.summary['parameters'] / 1e6:.2f} M",
                group.seeds,
                group.outcome,
                epochs(group) if on_mnist else "",
                span(group.summaries("seconds", 1 / 60), ".0f"),
                "" if options["retrain"] else span(best, ".2f", " %"),
                span(group.evaluations("error", 100), ".2f", " %"),
            ]
        )
    for result in paper_results("images"):
        name = f"{result.network}, {result.place} of the paper"
        rows.append([name, result.setting, "", "", "", "", "", "", result.value["error"]])
    titles = ["network", "layers x d, patch, ReLUs", "parameters", "seeds", "ended", "epochs"]
    return Table([*titles, "minutes", "validation error", "test error"], rows, note=note_for(groups))
