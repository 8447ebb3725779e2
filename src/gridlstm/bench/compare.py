"""``gridlstm bench compare``: how the times in two result files differ."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridlstm.bench.options import CompareBench
from gridlstm.errors import one_line
from gridlstm.files import read_json

__all__ = ["run"]

Times = dict[tuple[str, str], float]
"""A time, or a ratio of times, by case and number of threads."""


def run(options: CompareBench) -> None:
    """Prints the old and the new time of each case, and their ratio.

    Raises:
        ValueError: if a file is not the result of a benchmark, or they are of different benchmarks.
    """
    (old_kind, old), (new_kind, new) = (_load(path) for path in (options.old, options.new))
    if old_kind != new_kind:
        raise ValueError(
            f"expected two result files of the same benchmark, got {options.old} of kind "
            f"{old_kind!r} and {options.new} of kind {new_kind!r}"
        )
    Console().print(_table(KINDS[new_kind][0], old, new))


def _load(path: Path) -> tuple[str, Times]:
    """The kind of a result file, and its times."""
    try:
        results = read_json(path.read_text())
        kind = results["kind"]
        if kind not in KINDS:
            raise ValueError(f"its kind is {kind!r}")
        times = KINDS[kind][1](results)
        if not all(0 < seconds < math.inf for seconds in times.values()):
            raise ValueError("a time is not a positive number")
    except (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        reason = str(error.strerror) if isinstance(error, OSError) else reason
        raise ValueError(f"expected a result file of gridlstm bench, got {path} ({reason})") from error
    return kind, times


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
    size = ", quick" if results["options"]["quick"] else ""
    return {
        (f"{case['name']}{size}", threads): median["wavefront"] / median["products"]
        for case in results["cases"]
        for threads, median in case["median"].items()
    }


def _train(results: dict[str, Any]) -> Times:
    kinds = {True: ", bfloat16", False: ""}
    return {
        (
            f"{step['experiment']}, {step['preset']}, {step['optimizer']}{kinds[step['bfloat16']]}",
            str(step["threads"]),
        ): step["median"]["update"] / step["median"]["products"]
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
        (f"{way}, d = {case['hidden']}", str(result["threads"])): 1e3 * seconds / case["sentences"]
        for result in results["results"]
        for way, seconds in result["median"].items()
    }


KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], Times]]] = {
    "bench": ("Time of wavefront over that of its matrix products", _engine),
    "train": ("Time of a training step over that of its matrix products", _train),
    "growth": ("Milliseconds per training step", _growth),
    "generation": ("Milliseconds per character", _generation),
    "search": ("Milliseconds per sentence", _search),
}
"""By the kind that a result file states: what is compared, and how it is read from the file."""
