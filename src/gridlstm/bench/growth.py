"""How time and peak memory grow with time steps, depth, batch and hidden size."""

import math
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
from rich.console import Console
from rich.table import Table

from gridlstm.bench.options import Bench
from gridlstm.bench.peak import make_step, peak_memory
from gridlstm.files import write_json
from gridlstm.provenance import environment

__all__ = ["run_growth"]

BASE = {"time": 64, "depth": 8, "batch": 32, "hidden": 128}
FACTORS = (1, 2, 4, 8)


def run_growth(options: Bench, console: Console) -> None:
    """Measures a tied 2-LSTM, each size varied alone."""
    factors = FACTORS[:2] if options.quick else FACTORS
    rounds = 1 if options.quick else options.rounds
    torch.set_num_threads(options.threads[0])
    results: dict[str, Any] = {
        "kind": "growth",
        "environment": environment(),
        "options": {"rounds": rounds, "threads": options.threads[0], "base": BASE},
        "axes": {},
    }
    with console.status("") as status:
        for axis in BASE:
            sizes = [{**BASE, axis: BASE[axis] * factor} for factor in factors]
            status.update(f"{axis}: time")
            seconds = _times(sizes, rounds)
            memory: dict[str, list[int]] = {"keep": [], "recompute": []}
            for size in sizes:
                for name, peaks in memory.items():
                    status.update(f"{axis} {size[axis]}: memory, {name}")
                    peaks.append(peak_memory(recompute=name == "recompute", **size))
            values = [size[axis] for size in sizes]
            results["axes"][axis] = {
                "values": values,
                "seconds": seconds,
                "bytes": memory,
                "exponent": _last_slope(values, seconds["keep"]),
            }
    out = options.out or Path("runs/bench-growth.json")
    write_json(out, results)
    _save_plot(results, out)
    console.print(_table(results))
    console.print(f"{out}, with a plot beside it")


def _times(sizes: list[dict[str, int]], rounds: int) -> dict[str, list[float]]:
    """Median seconds of a step for each size, in turn, keeping the gates and computing them anew."""
    names = ("keep", "recompute")
    steps = {
        name: [make_step(**size, recompute=name == "recompute") for size in sizes] for name in names
    }
    found: dict[str, list[list[float]]] = {name: [[] for _ in sizes] for name in names}
    for turn in range(rounds + 1):
        for name, times in found.items():
            for step, seconds in zip(steps[name], times, strict=True):
                start = time.perf_counter()
                step()
                if turn > 0:  # The first round warms up.
                    seconds.append(time.perf_counter() - start)
    return {name: [statistics.median(seconds) for seconds in times] for name, times in found.items()}


def _last_slope(values: list[int], seconds: list[float]) -> float:
    """The exponent of the growth between the two largest sizes."""
    slopes = [
        math.log(later / before) / math.log(big / small)
        for (small, big), (before, later) in zip(pairwise(values), pairwise(seconds), strict=True)
    ]
    return slopes[-1]


def _table(results: dict[str, Any]) -> Table:
    table = Table(title="Growth of a training step of a tied 2-LSTM")
    for title in ("axis", "size", "ms", "exponent", "MiB", "recompute: time", "recompute: memory"):
        table.add_column(title, justify="left" if title == "axis" else "right")
    for axis, found in results["axes"].items():
        for k, value in enumerate(found["values"]):
            keep, again = (found["seconds"][name][k] for name in ("keep", "recompute"))
            kept, less = (found["bytes"][name][k] for name in ("keep", "recompute"))
            last = k == len(found["values"]) - 1
            table.add_row(
                axis,
                str(value),
                f"{keep * 1e3:,.1f}",
                f"{found['exponent']:.2f}" if last else "",
                f"{kept / 2**20:,.0f}",
                f"{again / keep:.2f} x",
                f"{less / max(kept, 1):.2f} x",
            )
    return table


def _save_plot(results: dict[str, Any], path: Path) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    axes = results["axes"]
    figure, panels = plt.subplots(2, len(axes), figsize=(3 * len(axes), 5), layout="constrained")
    for (axis, found), (above, below) in zip(axes.items(), panels.T, strict=True):
        for name in ("keep", "recompute"):
            above.loglog(found["values"], found["seconds"][name], "o-", label=name)
            below.loglog(found["values"], [b / 2**20 for b in found["bytes"][name]], "o-", label=name)
        above.set_title(f"{axis}, exponent {found['exponent']:.2f}", fontsize=9)
        below.set_xlabel(axis)
        for panel in (above, below):
            panel.set_xticks(found["values"], [str(value) for value in found["values"]])
            panel.minorticks_off()
    panels[0, 0].set_ylabel("seconds a step")
    panels[1, 0].set_ylabel("peak memory, MiB")
    panels[0, 0].legend()
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=120)
    plt.close(figure)
