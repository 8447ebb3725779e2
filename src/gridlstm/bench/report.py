"""Benchmark results as tables and plots."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich import box
from rich.table import Table

__all__ = ["compare", "ratio_table", "save_plot"]

# Column title, and the two contenders whose times it divides.
RATIOS = (
    ("floor", "wavefront", "products"),
    ("eager", "wavefront, not compiled", "wavefront"),
    ("recomp", "wavefront, recompute", "wavefront"),
    ("bf16", "wavefront, bfloat16", "wavefront"),
    ("loop", "loop", "wavefront"),
    ("ref.", "reference", "wavefront"),
    ("LSTM", "torch.nn.LSTM", "wavefront"),
)


def ratio_rows(results: dict[str, Any]) -> list[list[str]]:
    """For each case and number of threads: milliseconds, GFLOP/s, and the ratios."""
    rows = []
    for case in results["cases"]:
        for threads, median in case["median"].items():
            row = [case["name"], threads]
            seconds = median["wavefront"]
            row += [
                f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:.0f}",
                f"{case['flops'] / seconds / 1e9:.0f}",
            ]
            for _, upper, lower in RATIOS:
                ratio = median[upper] / median[lower] if upper in median else None
                row.append("" if ratio is None else f"{ratio:.3g}" if ratio > 10 else f"{ratio:.2f}")
            rows.append(row)
    return rows


TITLES = ["case", "thr", "ms", "GF/s", *(title for title, _, _ in RATIOS)]


def ratio_table(results: dict[str, Any]) -> Table:
    """The table for a terminal."""
    table = Table(
        title="A step of the wavefront engine, and the time of others beside it",
        caption="floor: wavefront's time over that of its matrix products alone. Right of it, the time "
        "of others over wavefront's: without the compiled kernel, recomputing, in bfloat16, a plain "
        "loop over blocks, the reference engine, torch.nn.LSTM of equal FLOPs.",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    rows = ratio_rows(results)
    shown = [k for k in range(len(TITLES)) if any(row[k] for row in rows)]
    for k in shown:
        table.add_column(TITLES[k], justify="left" if k == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[k] for k in shown))
    return table


def compare(old: dict[str, Any], new: dict[str, Any]) -> Table:
    """How the wavefront engine's time over its products has changed: below 1 is faster."""
    table = Table(title="wavefront's time over that of its products")
    for title in ("case", "threads", "old", "new", "new / old"):
        table.add_column(title, justify="left" if title == "case" else "right")
    before = _over_products(old)
    for key, value in _over_products(new).items():
        if key in before:
            table.add_row(*key, f"{before[key]:.2f}", f"{value:.2f}", f"{value / before[key]:.2f}")
    return table


def _over_products(results: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {
        (case["name"], threads): median["wavefront"] / median["products"]
        for case in results["cases"]
        for threads, median in case["median"].items()
    }


def save_plot(results: dict[str, Any], path: Path) -> None:
    """GFLOP/s of every contender, a group of bars for each case and number of threads."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = ("products", "wavefront", "torch.nn.LSTM", "wavefront, not compiled", "loop")
    groups = [
        (f"{case['name']}\n{threads} thread{'s' if threads != '1' else ''}", case["flops"], median)
        for case in results["cases"]
        for threads, median in case["median"].items()
    ]
    figure, axes = plt.subplots(figsize=(max(6, 1.1 * len(groups)), 4.2), layout="constrained")
    for k, name in enumerate(names):
        places = [g + (k - 2) * 0.16 for g, (_, _, median) in enumerate(groups) if name in median]
        rates = [flops / median[name] / 1e9 for _, flops, median in groups if name in median]
        axes.bar(places, rates, width=0.15, label=name)
    axes.set_xticks(range(len(groups)), [label for label, _, _ in groups], fontsize=7)
    axes.set_ylabel("GFLOP/s")
    axes.legend(fontsize=8)
    axes.set_title("Forward and backward: matrix products alone, and all of it")
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=120)
    plt.close(figure)
