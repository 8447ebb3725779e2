"""``gridlstm bench growth``: time and peak memory against time steps, depth, batch and hidden size."""

import math
import statistics
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from gridlstm.bench.cases import Case
from gridlstm.bench.contenders import GridStep
from gridlstm.bench.options import GrowthBench
from gridlstm.bench.peak import peak_memory
from gridlstm.bench.summary import spread, spread_text
from gridlstm.bench.timing import set_threads, time_in_turn
from gridlstm.dim import Dim
from gridlstm.figures.save import save_figure
from gridlstm.files import write_json
from gridlstm.provenance import environment

__all__ = ["draw_growth", "run"]

BASE = {"time": 64, "depth": 8, "batch": 32, "hidden": 128}
FACTORS = (1, 2, 4, 8)
GATES = ("keep", "recompute")
"""What is done with the gates until the backward pass."""


def run(options: GrowthBench) -> None:
    """Measures a tied 2-LSTM, each size varied alone. Prints a table, writes results and a figure."""
    factors = FACTORS[:2] if options.quick else FACTORS
    rounds = 1 if options.quick else options.rounds
    results: dict[str, Any] = {
        "kind": "growth",
        "environment": environment(),
        "options": {"rounds": rounds, "threads": options.threads, "base": BASE},
        "axes": {},
    }
    console = Console()
    with console.status("") as status, set_threads(options.threads):
        for axis in BASE:
            sizes = [{**BASE, axis: BASE[axis] * factor} for factor in factors]
            status.update(f"{axis}: time")
            rounds_of = _times(sizes, options.threads, rounds)
            seconds = {gates: [*map(statistics.median, times)] for gates, times in rounds_of.items()}
            memory: dict[str, list[int]] = {gates: [] for gates in GATES}
            for size in sizes:
                for gates, peaks in memory.items():
                    status.update(f"{axis} {size[axis]}: memory, {gates}")
                    memory_of = peak_memory(_case(**size), recompute=gates == "recompute")
                    peaks.append(memory_of.peak)
            values = [size[axis] for size in sizes]
            results["axes"][axis] = {
                "values": values,
                "seconds": seconds,
                "spread": {gates: [*map(spread, times)] for gates, times in rounds_of.items()},
                "seconds of rounds": rounds_of,
                "bytes": memory,
                "exponent": _last_slope(values, seconds["keep"]),
            }
    write_json(options.out, results)
    save_figure(draw_growth(results["axes"]), options.out)
    console.print(_table(results["axes"]))
    console.out(f"{options.out}, with a figure beside it", highlight=False)


def _case(time: int, depth: int, batch: int, hidden: int) -> Case:
    return Case("growth", (Dim("time"), Dim("depth")), (time, depth), batch, hidden)


def _times(sizes: list[dict[str, int]], threads: int, rounds: int) -> dict[str, list[list[float]]]:
    """Seconds of every round for each size, keeping the gates and recomputing them."""
    steps = {
        f"{gates} {k}": GridStep(_case(**size), recompute=gates == "recompute")
        for gates in GATES
        for k, size in enumerate(sizes)
    }
    for step in steps.values():
        step()  # Warms up.
    seconds = time_in_turn(steps, [threads], rounds)[str(threads)]
    return {gates: [seconds[f"{gates} {k}"] for k in range(len(sizes))] for gates in GATES}


def _last_slope(values: list[int], seconds: list[float]) -> float:
    """The exponent of the growth between the two largest sizes."""
    return math.log(seconds[-1] / seconds[-2]) / math.log(values[-1] / values[-2])


def _table(axes: dict[str, Any]) -> Table:
    table = Table(
        title="Growth of a training step of a tied 2-LSTM",
        caption="n: rounds. ±: half their range, in percent. rec.: with recomputed gates.",
    )
    for title in ("axis", "size", "n", "ms", "±", "exp.", "MiB", "rec.: time", "rec.: memory"):
        table.add_column(title, justify="left" if title == "axis" else "right")
    for axis, measured in axes.items():
        for k, value in enumerate(measured["values"]):
            seconds, recompute_seconds = (measured["seconds"][gates][k] for gates in GATES)
            memory, recompute_memory = (measured["bytes"][gates][k] for gates in GATES)
            last = k == len(measured["values"]) - 1
            table.add_row(
                axis,
                str(value),
                str(len(measured["seconds of rounds"]["keep"][k])),
                f"{seconds * 1e3:,.1f}",
                spread_text(measured["seconds of rounds"]["keep"][k]),
                f"{measured['exponent']:.2f}" if last else "",
                f"{memory / 2**20:,.0f}",
                f"{recompute_seconds / seconds:.2f} x",
                f"{recompute_memory / max(memory, 1):.2f} x",
            )
    return table


def draw_growth(axes: dict[str, Any]) -> Figure:
    """Time above, memory below, a column for each axis."""
    figure = Figure(figsize=(3 * len(axes), 5), layout="constrained")
    panels = figure.subplots(2, len(axes))
    for (axis, measured), (above, below) in zip(axes.items(), panels.T, strict=True):
        values = measured["values"]
        for gates in GATES:
            above.loglog(values, measured["seconds"][gates], "o-", label=gates)
            below.loglog(values, [peak / 2**20 for peak in measured["bytes"][gates]], "o-", label=gates)
        above.set_title(f"{axis}, exponent {measured['exponent']:.2f}", fontsize=9)
        below.set_xlabel(axis)
        for panel in (above, below):
            panel.set_xticks(values, [str(value) for value in values])
            panel.minorticks_off()
    panels[0, 0].set_ylabel("seconds per step")
    panels[1, 0].set_ylabel("peak memory, MiB")
    panels[0, 0].legend()
    return figure
