"""The table of results of the experiment on images. No PyTorch here."""

from collections.abc import Sequence

from gridlstm.experiments.results import CollectedRun, Table

__all__ = ["make_table"]

NETWORKS = {
    "untied-grid": "3-LSTM",
    "tied-grid": "3-LSTM, tied",
    "untied-relu-grid": "3-LSTM with ReLU depth",
    "tied-relu-grid": "3-LSTM with ReLU depth, tied",
    "multidimensional": "Multidimensional LSTM",
    "renet": "ReNet",
    "convolutional": "convolutional network",
}
PAPER = [
    ["3-LSTM of the paper", "4 x 100, 2, 4096", "", "", "", "", "0.32 %"],
    ["3-LSTM with ReLU depth of the paper", "4 x 100, 3, 2048", "", "", "", "", "0.36 %"],
]
"""Figure 12."""


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Networks on MNIST, with those of the paper."""
    rows = []
    for run in runs:
        options, summary = run["options"], run["summary"]
        epoch = 60_000 if options["retrain"] else 50_000
        rows.append(
            [
                NETWORKS[options["network"]],
                f"{options['layers']} x {options['hidden']}, {options['patch']}, {options['relu']}",
                f"{summary['parameters'] / 1e6:.2f} M",
                f"{summary['samples'] / epoch:.0f}",
                f"{summary['seconds'] / 60:.0f}",
                "" if options["retrain"] else f"{100 * summary['best']['error']:.2f} %",
                f"{100 * run['evaluation']['error']:.2f} %",
            ]
        )
    titles = ["network", "layers x d, patch, ReLUs", "parameters", "epochs", "minutes"]
    return Table([*titles, "validation error", "test error"], [*rows, *PAPER])
