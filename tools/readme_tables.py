"""Writes the tables of README.md from the files in results/: ``make readme``.

A table stands between ``<!-- NAME -->`` and ``<!-- end of NAME -->``. No number there is written by
hand, and a test compares.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def newest_cases() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each benchmark case, with the environment of its newest run among ``results/bench-*.json``."""
    runs = [json.loads(path.read_text()) for path in sorted((ROOT / "results").glob("bench-*.json"))]
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for run in sorted(
        (r for r in runs if r["kind"] == "bench"), key=lambda r: r["environment"]["time"]
    ):
        found |= {case["name"]: (case, run["environment"]) for case in run["cases"]}
    return list(found.values())


def markdown(titles: list[str], rows: list[list[str]]) -> str:
    """A table, numbers to the right."""
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def speed() -> str:
    """A training step of the wavefront engine, and others beside it."""
    titles = ["case", "threads", "ms", "GFLOP/s", "over products", "loop", "`nn.LSTM`", "recompute"]
    rows, sources = [], set()
    for case, environment in newest_cases():
        for threads, median in case["median"].items():
            seconds = median["wavefront"]
            row = [
                case["name"],
                threads,
                f"{seconds * 1e3:,.0f}",
                f"{case['flops'] / seconds / 1e9:.0f}",
            ]
            row.append(f"{seconds / median['products']:.2f}")
            others = ("loop", "torch.nn.LSTM", "wavefront, recompute")
            row += [f"{median[name] / seconds:.1f}" if name in median else "" for name in others]
            rows.append(row)
        machine, torch = environment["machine"]["processor"], environment["versions"]["torch"]
        sources.add(f"{machine}, PyTorch {torch}, commit {environment['commit']}")
    note = "; ".join(sorted(sources))
    return f"{markdown(titles, rows)}\n\n{note}; the newest run of each case in `results/bench-*.json`."


TABLES: dict[str, Callable[[], str]] = {"speed": speed}


def update(text: str) -> str:
    """The text with every table replaced by what the results give."""
    for name, make in TABLES.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"README.md: expected {start} and {end}, got neither")
        before, after = pattern.split(text, maxsplit=1)
        text = f"{before}{start}\n{make()}\n{end}{after}"
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(update(readme.read_text()))
