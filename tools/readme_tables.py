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


PAPER = {
    ("memorization", 20, "tied-grid"): "solved, < 150 K (43 layers)",
    ("memorization", 20, "tied-stacked"): "< 50 % from 16 layers on",
    ("addition", 15, "tied-grid"): "> 99 %, < 550 K (18 layers, d 400)",
    ("addition", 15, "untied-grid"): "67 %, 5 M (5 layers, d 400)",
    ("addition", 15, "tied-stacked"): "at most 51 %, 5 M",
    ("addition", 15, "untied-stacked"): "at most 51 %, 5 M",
}
"""What the paper reports, by experiment, size and network."""
UNITS = {"memorization": "symbols", "addition": "digits", "parity": "bits"}


def experiments() -> str:
    """Runs in groups that differ only in their seed, the paper's results beside them."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for path in sorted((ROOT / "results").glob("runs-*.json")):
        for run in json.loads(path.read_text())["runs"]:
            options = run["options"]
            size = next(iter(options.values()))
            key = (run["experiment"], size, options["network"], options["layers"], options["hidden"])
            groups.setdefault(key, []).append(run)
    rows = []
    for (experiment, size, network, layers, hidden), runs in groups.items():
        solved = [run["summary"]["reason"] == "solved" for run in runs]
        samples = [run["summary"]["samples"] / 1000 for run in runs]
        accuracy = [100 * run["evaluation"]["accuracy"] for run in runs]
        minutes = [run["summary"]["seconds"] / 60 for run in runs]
        rows.append(
            [
                f"{experiment}, {size} {UNITS[experiment]}",
                f"{network.replace('-', ' ')}, {layers} layers, d {hidden}",
                f"{sum(solved)} of {len(runs)}",
                _range(samples, ".0f", " K"),
                _range(accuracy, ".1f", " %"),
                _range(minutes, ".0f", ""),
                PAPER.get((experiment, size, network), ""),
            ]
        )
    titles = ["experiment", "network", "seeds solved", "samples", "accuracy", "minutes", "paper"]
    return markdown(titles, rows)


def _range(values: list[float], form: str, unit: str) -> str:
    """From the least to the greatest, as they are written down."""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


TABLES: dict[str, Callable[[], str]] = {"speed": speed, "experiments": experiments}


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
