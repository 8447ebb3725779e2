"""The figure of ``gridlstm bench engine``: how fast the engine and others are."""

import statistics
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

__all__ = ["draw_rates"]

SHOWN = {
    "products": ("matrix products alone", "|", "#6b7280"),
    "wavefront": ("gridlstm", "o", "#2563eb"),
    "wavefront, not compiled": ("gridlstm without its compiled kernel", "v", "#0d9488"),
    "torch.nn.LSTM": ("torch.nn.LSTM with as many FLOPs", "D", "#c2570c"),
    "loop": ("plain loop over blocks", "X", "#a21caf"),
}
"""The contenders in the figure: label, marker, colour."""


def draw_rates(cases: Sequence[dict[str, Any]]) -> Figure:
    """GFLOP/s of the main contenders: a panel per number of threads, a row per case.

    Thin bars are the range of the rounds, the dashed line is the limit of the machine.
    """
    counts = sorted({threads for case in cases for threads in case["median"]}, key=int)
    figure = Figure(figsize=(9, 1.6 + 0.32 * len(cases)), layout="constrained")
    panels = figure.subplots(1, len(counts), squeeze=False, sharey=True)[0]
    for panel, threads in zip(panels, counts, strict=True):
        for name, (label, marker, colour) in SHOWN.items():
            shown = [
                (row, case["flops"] / 1e9, case["seconds"][threads][name])
                for row, case in enumerate(cases)
                if name in case["median"].get(threads, {})
            ]
            if not shown:
                continue
            bar = marker == "|"
            rates = [flops / statistics.median(times) for _, flops, times in shown]
            spreads = [
                [
                    rate - flops / max(times)
                    for rate, (_, flops, times) in zip(rates, shown, strict=True)
                ],
                [
                    flops / min(times) - rate
                    for rate, (_, flops, times) in zip(rates, shown, strict=True)
                ],
            ]
            panel.errorbar(
                rates,
                [row for row, _, _ in shown],
                xerr=spreads,
                fmt=marker,
                color=colour,
                label=label,
                elinewidth=0.7,
                markersize=13 if bar else 6,
                markeredgewidth=2 if bar else 0.5,
            )
        limits = [limit for case in cases if (limit := _limit(case, threads)) is not None]
        if limits:
            label = "limit: a large matrix product"
            panel.axvline(statistics.median(limits), color="#111827", ls="--", lw=1, label=label)
        panel.set_title(f"{threads} thread{'s' if threads != '1' else ''}", fontsize=10)
        panel.set_xlabel("GFLOP/s of a training step: more is better")
        panel.set_xlim(left=0)
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(cases)), [case["name"] for case in cases], fontsize=9)
    panels[0].set_ylim(len(cases) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _limit(case: dict[str, Any], threads: str) -> float | None:
    """The rate of a large product in the rounds of a case; ``None`` in files of older versions."""
    share = case.get("share of limit", {}).get(threads, {}).get("wavefront")
    return case["flops"] / case["median"][threads]["wavefront"] / share / 1e9 if share else None
