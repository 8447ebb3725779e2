"""The table of results of character-level language modelling. No PyTorch here."""

from collections.abc import Sequence

from gridlstm.experiments.results import CollectedRun, Table

__all__ = ["make_table"]

PAPER = [
    "2-LSTM of the paper, tied",
    "6 x 1000",
    "16.8 M",
    "20 epochs of 90 M",
    "",
    "",
    "1.47",
    "5 M in 1",
]
"""Figure 6."""


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Networks on Wikipedia, with that of the paper."""
    rows = []
    for run in runs:
        options, summary, evaluation = run["options"], run["summary"], run["evaluation"]
        if options["corpus"] != "enwik8" or options["text"] is not None:
            continue
        read = summary["samples"] * options["chunk"]
        tested = ["", ""]
        if evaluation:
            streams = f"{evaluation['characters'] / 1e6:.1f} M in {evaluation['streams']}"
            tested = [f"{evaluation['bits']:.3f}", streams]
        rows.append(
            [
                options["network"].replace("-", " "),
                f"{options['layers']} x {options['hidden']}",
                f"{summary['parameters'] / 1e6:.2f} M",
                f"{read / 1e6:.1f} M",
                f"{read / summary['seconds']:,.0f}",
                f"{summary['best']['bits']:.3f}",
                *tested,
            ]
        )
    titles = ["network", "layers x d", "parameters", "characters read", "characters/s"]
    titles += ["validation bits", "test bits", "test characters, streams"]
    return Table(titles, [*rows, PAPER])
