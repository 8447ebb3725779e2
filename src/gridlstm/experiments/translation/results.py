"""The tables of results of translation. No PyTorch here."""

from collections.abc import Sequence

from gridlstm.experiments.results import CollectedRun, Table

__all__ = ["make_table", "translation_table"]

PAPER = [
    ["BTEC: 3-LSTM of the paper, 7 models", "2 x 450", "", "0.5", "", "", "42.4", "60.2 (15)", ""],
    ["BTEC: CDEC, phrase-based", "", "", "", "", "", "41", "58.9 (15)", ""],
    ["BTEC: DGLSTM with attention", "", "", "", "", "", "34.5", "", ""],
]
"""Figure 8."""


def make_table(runs: Sequence[CollectedRun]) -> Table:
    """Networks and ensembles on the same sentences, and those of the paper on other sentences."""
    rows = []
    for run in runs:
        options, summary = run["options"], run["summary"]
        for result in (run["evaluation"], run["ensemble"]):
            if result is None:
                continue
            models = 1 + len(result.get("ensemble", ()))
            sides = options.get("side_dropout", 0)
            dropout = f"{options['dropout']:g}" + (f", sides {sides:g}" if sides else "")
            read = f"{summary['samples'] / 1000:,.0f} K"
            rows.append(
                [
                    options["network"] + (f", {models} models" if models > 1 else ""),
                    f"{options['layers']} x {options['hidden']}",
                    f"{models * summary['parameters'] / 1e6:.1f} M",
                    *((dropout, read) if models == 1 else ("", "")),
                    f"{result['perplexity']:.1f}",
                    f"{result['bleu 1']:.1f}",
                    f"{result['bleu all']:.1f}",
                    f"{1000 * result['seconds a sentence']:.0f}",
                ]
            )
    titles = ["network", "layers x d", "parameters", "dropout", "pairs read", "perplexity"]
    return Table([*titles, "BLEU 1", "BLEU all", "ms per sentence, beam 20"], [*rows, *PAPER])


def translation_table(runs: Sequence[CollectedRun]) -> Table:
    """Translations of the first test sentences: by the first ensemble, or by one model."""
    result = next(run[kind] for kind in ("ensemble", "evaluation") for run in runs if run[kind])
    rows = [
        [pair["source"], pair["translation"], pair["references"][0]] for pair in result["translations"]
    ]
    return Table(["Chinese", "translation", "main reference"], rows, numbers=False)
