"""Benchmark results as tables and plots."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.table import Table

__all__ = ["compare", "ratio_table", "save_plot"]

# Column title, and the two contenders whose times it divides.
RATIOS = (
    ("over products", "wavefront", "products"),
    ("not compiled", "wavefront, not compiled", "wavefront"),
    ("recompute", "wavefront, recompute", "wavefront"),
    ("bfloat16", "wavefront, bfloat16", "wavefront"),
    ("loop", "loop", "wavefront"),
    ("reference", "reference", "wavefront"),
    ("nn.LSTM", "torch.nn.LSTM", "wavefront"),
)


def ratio_rows(results: dict[str, Any]) -> list[list[str]]:
    """For each case and number of threads: milliseconds, GFLOP/s, and the ratios."""
    rows = []
    for case in results["cases"]:
        for threads, median in case["median"].items():
            row = [case["name"], threads]
            seconds = median["wavefront"]
            row += [f"{seconds * 1e3:,.1f}", f"{case['flops'] / seconds / 1e9:.0f}"]
            for _, upper, lower in RATIOS:
                row.append(f"{median[upper] / median[lower]:.2f}" if upper in median else "")
            rows.append(row)
    return rows


TITLES = ["case", "threads", "ms", "GFLOP/s", *(title for title, _, _ in RATIOS)]


def ratio_table(results: dict[str, Any]) -> Table:
    """The table for a terminal."""
    table = Table(
        title="A step of the wavefront engine, and the time of others beside it",
        caption="over products: wavefront's time over that of its matrix products alone. "
        "Right of it: the others' time over wavefront's.",
    )
    for title in TITLES:
        table.add_column(title, justify="left" if title == "case" else "right")
    for row in ratio_rows(results):
        table.add_row(*row)
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
