"""The figure of ``gridlstm bench engine``: how fast the engine and others are."""

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
    """GFLOP/s of the main contenders: a panel per number of threads, a row per case."""
    counts = sorted({threads for case in cases for threads in case["median"]}, key=int)
    figure = Figure(figsize=(9, 1.6 + 0.32 * len(cases)), layout="constrained")
    panels = figure.subplots(1, len(counts), squeeze=False, sharey=True)[0]
    for panel, threads in zip(panels, counts, strict=True):
        for name, (label, marker, colour) in SHOWN.items():
            rates = [
                (case["flops"] / case["median"][threads][name] / 1e9, row)
                for row, case in enumerate(cases)
                if name in case["median"].get(threads, {})
            ]
            bar = marker == "|"
            panel.plot(
                [rate for rate, _ in rates],
                [row for _, row in rates],
                marker,
                color=colour,
                label=label,
                markersize=13 if bar else 6,
                markeredgewidth=2 if bar else 0.5,
            )
        panel.set_title(f"{threads} thread{'s' if threads != '1' else ''}", fontsize=10)
        panel.set_xlabel("GFLOP/s of a training step: more is better")
        panel.set_xlim(left=0)
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(cases)), [case["name"] for case in cases], fontsize=9)
    panels[0].set_ylim(len(cases) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure
