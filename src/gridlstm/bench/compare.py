"""``gridlstm bench compare``: how the times in two result files differ."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridlstm.bench.options import CompareBench
from gridlstm.bench.training_table import step_name
from gridlstm.errors import one_line
from gridlstm.files import read_json

__all__ = ["run"]

Times = dict[tuple[str, str], float]
"""A time, or a ratio of times, by case and number of threads."""


def run(options: CompareBench) -> None:
    """Prints the old and the new time of each case, and their ratio, for all benchmarks in both files.

    Raises:
        ValueError: if a file is not the result of a benchmark, or they have no benchmark in common.
    """
    old, new = (_load(path) for path in (options.old, options.new))
    both = [kind for kind in new if kind in old]
    if not both:
        raise ValueError(
            f"expected two result files of the same benchmark, got {options.old} of kind "
            f"{', '.join(map(repr, old))} and {options.new} of kind {', '.join(map(repr, new))}"
        )
    for kind in both:
        Console().print(_table(KINDS[kind][0], old[kind], new[kind]))


def _load(path: Path) -> dict[str, Times]:
    """The times in a result file, by kind of benchmark."""
    try:
        results = read_json(path.read_text())
        kind = results["kind"]
        if kind != ALL and kind not in KINDS:
            raise ValueError(f"its kind is {kind!r}")
        sections = {kind: results}
        if kind == ALL:
            sections = {SECTIONS[name]: results[name] for name in SECTIONS if name in results}
        times = {kind: KINDS[kind][1](section) for kind, section in sections.items()}
        if not all(0 < seconds < math.inf for found in times.values() for seconds in found.values()):
            raise ValueError("a time is not a positive number")
    except (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        reason = str(error.strerror) if isinstance(error, OSError) else reason
        raise ValueError(f"expected a result file of gridlstm bench, got {path} ({reason})") from error
    return times


def _table(title: str, old: Times, new: Times) -> Table:
    """A row for each case and number of threads of either file."""
    same = old.keys() == new.keys()
    caption = "new / old: below 1 is faster." + ("" if same else " -: not in this file.")
    table = Table(title=title, caption=caption)
    for name in ("case", "threads", "old", "new", "new / old"):
        table.add_column(name, justify="left" if name == "case" else "right")
    for key in {**old, **new}:
        times = [f"{times[key]:.2f}" if key in times else "-" for times in (old, new)]
        ratio = f"{new[key] / old[key]:.2f}" if key in old and key in new else ""
        table.add_row(*(Text(one_line(part)) for part in key), *times, ratio)
    return table


def _engine(results: dict[str, Any]) -> Times:
    """Over the products, and over contenders that do not change: on another day, seconds do."""
    size = ", quick" if results["options"]["quick"] else ""
    over = {"products": "", "loop": " over loop", "torch.nn.LSTM": " over nn.LSTM"}
    return {
        (f"{case['name']}{size}{suffix}", threads): median["wavefront"] / median[other]
        for case in results["cases"]
        for threads, median in case["median"].items()
        for other, suffix in over.items()
        if other in median
    }


def _train(results: dict[str, Any]) -> Times:
    return {
        (step_name(step), str(step["threads"])): step["median"]["update"] / step["median"]["products"]
        for step in results["steps"]
    }


def _growth(results: dict[str, Any]) -> Times:
    return {
        (f"{axis} {value}, {gates}", str(results["options"]["threads"])): 1e3 * seconds
        for axis, measured in results["axes"].items()
        for gates, medians in measured["seconds"].items()
        for value, seconds in zip(measured["values"], medians, strict=True)
    }


def _generation(results: dict[str, Any]) -> Times:
    return {
        (f"{size['layers']} x {size['hidden']}, {stepper}", "1"): 1e3 / speed
        for size in results["sizes"]
        for stepper, speed in size["characters a second"].items()
    }


def _search(results: dict[str, Any]) -> Times:
    case = results["case"]
    return {
        (f"{way}, d = {case['hidden']}", str(result["threads"])): (
            1e3 * result["median"][way] / case["sentences"]
        )
        for result in results["results"]
        for way in result["ratio"]
    }


KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], Times]]] = {
    "bench": ("Time of wavefront over that of its matrix products, and of others", _engine),
    "train": ("Time of a training step over that of its matrix products", _train),
    "growth": ("Milliseconds per training step", _growth),
    "generation": ("Milliseconds per character", _generation),
    "search": ("Milliseconds per sentence", _search),
}
"""By the kind that a result file states: what is compared, and how it is read from the file."""

ALL = "all"
SECTIONS = {"engine": "bench", "train": "train", "search": "search", "generation": "generation"}
"""The sections of the file of all benchmarks, and the kind of each."""
