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


def load(name: str) -> dict[str, Any]:
    """A result file."""
    found: dict[str, Any] = json.loads((ROOT / "results" / name).read_text())
    return found


def markdown(titles: list[str], rows: list[list[str]]) -> str:
    """A table, numbers to the right."""
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def speed() -> str:
    """A training step of the wavefront engine, and others beside it."""
    results = load("bench-engine.json")
    titles = ["case", "threads", "ms", "GFLOP/s", "over products", "loop", "`nn.LSTM`", "recompute"]
    rows = []
    for case in results["cases"]:
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
    environment = results["environment"]
    return (
        f"{markdown(titles, rows)}\n\n{environment['machine']['processor']}, "
        f"PyTorch {environment['versions']['torch']}, commit {environment['commit']}, "
        f"`results/bench-engine.json`."
    )


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
