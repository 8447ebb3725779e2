"""Tables of speed and memory, from ``results/bench.json``: the file of ``gridlstm bench all``.

Without it, they are made from the files of single benchmarks, as far as these have what is needed.
"""

import json
import statistics
from pathlib import Path
from typing import Any

from gridlstm.bench.summary import UNDERCUT, floor_text, ratio_text, with_spread
from gridlstm.bench.targets import judge
from gridlstm.bench.training_table import PARTS, step_name
from gridlstm.experiments.results import Table

RESULTS = Path(__file__).parent.parent / "results"
PEERS = {
    "loop": "a plain loop over blocks",
    "gate by gate": "a layout with one module per block and one product per gate",
    "layer by layer": "a layout that runs one layer after the other",
    "torch.nn.LSTM": "`torch.nn.LSTM` with as many FLOPs",
    "torch.nn.LSTM, torch.compile": "the same under `torch.compile`",
}
"""Contenders in the sentence about peers; the layouts are those of published implementations."""


def all_benchmarks() -> dict[str, Any] | None:
    """The content of ``results/bench.json``; ``None`` if there is none."""
    path = RESULTS / "bench.json"
    return json.loads(path.read_text()) if path.exists() else None


def bench(name: str) -> tuple[dict[str, Any], str]:
    """A section of ``results/bench.json``, and a sentence about its origin.

    Args:
        name: the file of the single benchmark, which is read if there is no such section.
    """
    found = all_benchmarks()
    if found is not None:
        run, name = found[name.removeprefix("bench-").removesuffix(".json")], "bench.json"
        return run, f"{_origin(found['environment'])}; `results/{name}`."
    run = json.loads((RESULTS / name).read_text())
    return run, f"{_origin(run['environment'])}; `results/{name}`."


def newest_cases() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each case of the engine with its environment: of ``bench.json``, or the newest of other files."""
    found = all_benchmarks()
    if found is not None:
        return [(case, found["environment"]) for case in found["engine"]["cases"]]
    runs = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("bench-*.json"))]
    newest: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for run in sorted(
        (r for r in runs if r["kind"] == "bench"), key=lambda r: r["environment"]["time"]
    ):
        newest |= {case["name"]: (case, run["environment"]) for case in run["cases"]}
    return list(newest.values())


def speed() -> str:
    """The time of a training step of the wavefront engine, next to alternatives."""
    titles = ["case", "threads", "rounds", "ms", "GFLOP/s", "peak", "over products"]
    titles += ["loop", "`nn.LSTM`", "recompute", "its memory"]
    rows, sources = [], set()
    for case, environment in newest_cases():
        for threads, seconds in case["seconds"].items():
            engine, median = seconds["wavefront"], case["median"][threads]["wavefront"]
            share = case.get("share of limit", {}).get(threads, {}).get("wavefront")
            memory = (case.get("memory") or {}).get("ratio")
            alternatives = ("loop", "torch.nn.LSTM", "wavefront, recompute")
            rows.append(
                [
                    case["name"],
                    threads,
                    str(len(engine)),
                    with_spread(f"{median * 1e3:,.0f}", engine),
                    f"{case['flops'] / median / 1e9:.0f}",
                    "" if share is None else f"{share:.2f}",
                    floor_text(engine, seconds["products"]),
                    *(ratio_text(seconds[k], engine) if k in seconds else "" for k in alternatives),
                    "" if memory is None else f"{memory:.2f}",
                ]
            )
        sources.add(f"{_origin(environment)}, PyTorch {environment['versions']['torch']}")
    file = "bench-*.json" if all_benchmarks() is None else "bench.json"
    note = f"{UNDERCUT} {'; '.join(sorted(sources))}; `results/{file}`."
    return f"{_filled(titles, rows)}\n\n{note}"


def training_steps() -> str:
    """Whole training steps: their time, beside the limits, and their parts."""
    found = all_benchmarks()
    if found is None:
        return "Not measured yet: there is no `results/bench.json`."
    titles = ["step", "threads", "rounds", "ms", "peak", "over products", "engine", "and products"]
    rows = []
    for step in found["train"]["steps"]:
        seconds, share = step["seconds"], step["share of limit"]
        update = seconds["update"]
        rows.append(
            [
                step_name(step),
                str(step["threads"]),
                str(len(update)),
                with_spread(f"{1e3 * step['median']['update']:,.0f}", update),
                "" if share is None else f"{share:.2f}",
                floor_text(update, seconds["products"]),
                f"{step['engine']:.2f}",
                f"{step['engine and products']:.2f}",
                *(f"{100 * step['shares'][part]:.0f} %" for part in PARTS),
            ]
        )
    note = f"{_origin(found['environment'])}; `results/bench.json`."
    return f"{Table([*titles, *PARTS], rows).markdown()}\n\n{note}"


def targets() -> str:
    """What the benchmarks should reach, and what they do."""
    found = all_benchmarks()
    if found is None:
        return "Not measured yet: there is no `results/bench.json`."
    words = {True: "yes", False: "**no**", None: "not measured"}
    rows = [
        [
            target["target"],
            target["wanted"],
            "" if target["reached"] is None else f"{target['reached']:.4g}",
            words[target["met"]],
            target["where"] or "",
        ]
        for target in judge(found)
    ]
    return Table(["target", "wanted", "reached", "met", "worst case"], rows).markdown()


def peers() -> str:
    """How much longer others take, in a sentence."""
    ratios: dict[str, list[float]] = {}
    for case, _ in newest_cases():
        median = case["median"].get("1", {}) if case["train"] else {}
        for name in PEERS:
            if name in median:
                ratios.setdefault(name, []).append(median[name] / median["wavefront"])
    parts = [
        f"{PEERS[name]} {min(found):.1f} to {max(found):.1f} times "
        f"(median {statistics.median(found):.1f}, {len(found)} cases)"
        for name, found in ratios.items()
    ]
    return f"Time of a training step over that of the engine, on one thread: {'; '.join(parts)}."


def accuracy() -> str:
    """The errors of the kernel's functions and of bfloat16, in a sentence."""
    found = all_benchmarks()
    runs = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("bench-*.json"))]
    sections = [run for run in runs if run["kind"] == "bench"] if found is None else [found["engine"]]
    units = next(run["kernel errors"] for run in sections if run.get("kernel errors"))
    errors = {case["name"]: case["errors"].get("wavefront, bfloat16", 0) for case, _ in newest_cases()}
    worst = max(errors, key=lambda name: errors[name])
    return (
        f"Measured: at most {units['sigmoid']:.1f} (sigmoid) and {units['tanh']:.1f} (tanh) units in "
        f"the last place; with bfloat16, at most {100 * errors[worst]:.1f} % ({worst})."
    )


def _origin(environment: dict[str, Any]) -> str:
    return f"{environment['machine']['processor']}, commit {environment['commit']}"


def _filled(titles: list[str], rows: list[list[str]]) -> str:
    """A table without the columns that have no content."""
    kept = [k for k in range(len(titles)) if any(row[k] for row in rows)]
    return Table([titles[k] for k in kept], [[row[k] for k in kept] for row in rows]).markdown()
