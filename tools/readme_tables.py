"""Writes the tables of README.md and of docs/ from the files in results/: ``make readme``.

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


def markdown(titles: list[str], rows: list[list[str]], *, numbers: bool = True) -> str:
    """A table, numbers to the right."""
    lines = [titles, ["---", *["---:" if numbers else "---"] * (len(titles) - 1)], *rows]
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
    ("parity", 50, "tied-grid"): "solved (25 layers, d 500)",
    ("parity", 100, "tied-grid"): "solved",
    ("parity", 250, "tied-grid"): "solved (148 layers, d 500)",
    ("parity", 50, "tied-tanh"): "not solved from 35 bits on",
    ("parity", 50, "tied-relu"): "not solved from 35 bits on",
}
"""What the paper reports, by experiment, size and network."""
IMAGE_NETWORKS = {
    "untied-grid": "3-LSTM",
    "tied-grid": "3-LSTM, tied",
    "untied-relu-grid": "3-LSTM with ReLU depth",
    "tied-relu-grid": "3-LSTM with ReLU depth, tied",
    "multidimensional": "Multidimensional LSTM",
    "renet": "ReNet",
    "convolutional": "convolutional network",
}
UNITS = {"memorization": "symbols", "addition": "digits", "parity": "bits"}


def collected(pattern: str) -> list[dict[str, Any]]:
    """The runs in files that ``gridlstm collect`` wrote."""
    paths = sorted((ROOT / "results").glob(pattern))
    return [run for path in paths for run in json.loads(path.read_text())["runs"]]


def bench(name: str) -> tuple[dict[str, Any], str]:
    """A file that ``gridlstm bench`` wrote, and where it comes from, in words."""
    run = json.loads((ROOT / "results" / name).read_text())
    found = run["environment"]
    source = f"{found['machine']['processor']}, commit {found['commit']}; `results/{name}`."
    return run, source


def search() -> str:
    """Runs of a search, each by what sets it apart."""
    rows = []
    for run in collected("search-*.json"):
        options, last = run["options"], run["curve"][-1]
        solved = run["summary"]["reason"] == "solved"
        rows.append(
            [
                f"{run['experiment']}, {next(iter(options.values()))} {UNITS[run['experiment']]}",
                f"{options['network'].replace('-', ' ')}, {options['layers']} x {options['hidden']}",
                f"{options['optimizer']}, {options['schedule']}",
                *(f"{options[name]}" for name in ("forget_bias", "rate", "warmup", "clip", "batch")),
                f"{last['samples'] / 1000:.1f} K" if solved else "",
                ""
                if solved
                else f"{100 * last['accuracy']:.0f} % after {last['samples'] / 1000:.0f} K",
            ]
        )
    titles = ["task", "network", "optimiser", "forget bias", "rate", "warm-up", "clip", "batch"]
    return markdown([*titles, "solved after", "else"], rows)


def experiments() -> str:
    """Runs in groups that differ only in their seed, the paper's results beside them."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in collected("runs-*.json"):
        options = run["options"]
        size = next(iter(options.values()))
        sizes = (options["network"], options["layers"], options["hidden"])
        groups.setdefault((run["experiment"], size, *sizes, _apart(options)), []).append(run)
    rows = []
    for (experiment, size, network, layers, hidden, apart), runs in groups.items():
        solved = [run["summary"]["reason"] == "solved" for run in runs]
        samples = [run["summary"]["samples"] / 1000 for run in runs]
        accuracy = [100 * run["evaluation"]["accuracy"] for run in runs]
        minutes = [run["summary"]["seconds"] / 60 for run in runs]
        rows.append(
            [
                f"{experiment}, {size} {UNITS[experiment]}",
                f"{network.replace('-', ' ')}, {layers} layers, d {hidden}{apart}",
                f"{sum(solved)} of {len(runs)}",
                _range(samples, ".0f", " K"),
                _range(accuracy, ".1f", " %"),
                _range(minutes, ".0f", ""),
                PAPER.get((experiment, size, network), ""),
            ]
        )
    titles = ["experiment", "network", "seeds solved", "samples", "accuracy", "minutes", "paper"]
    return markdown(titles, rows)


def _apart(options: dict[str, Any]) -> str:
    """What sets a run apart from one as in the paper, in words."""
    found = ""
    if options["optimizer"] == "muon":
        found += ", Muon"
    if options.get("start") == "counting":
        found += ", starts by counting"
    if options.get("pace"):
        found += f", a digit more in {options['pace'] / 1000:.0f} K samples"
    return found


def characters() -> str:
    """Networks of one size on Wikipedia, the paper's beside them."""
    rows = []
    for run in collected("characters-*.json"):
        options, summary = run["options"], run["summary"]
        if options["corpus"] != "enwik8" or options["text"] is not None:
            continue
        read = summary["samples"] * options["chunk"]
        rows.append(
            [
                options["network"].replace("-", " "),
                f"{options['layers']} x {options['hidden']}",
                f"{summary['parameters'] / 1e6:.2f} M",
                f"{read / 1e6:.1f} M",
                f"{read / summary['seconds']:,.0f}",
                f"{summary['best']['bits']:.3f}",
                f"{run['evaluation']['bits']:.3f}" if run["evaluation"] else "",
                f"{run['evaluation']['characters'] / 1e6:.1f} M in {run['evaluation']['streams']}"
                if run["evaluation"]
                else "",
            ]
        )
    paper = [
        "2-LSTM of the paper, tied",
        "6 x 1000",
        "16.8 M",
        "20 epochs of 90 M",
        "",
        "",
        "1.47",
        "5 M in 1",
    ]
    titles = ["network", "layers x d", "parameters", "characters read", "characters/s"]
    return markdown(
        [*titles, "validation bits", "test bits", "characters of test, pieces"], [*rows, paper]
    )


def translation() -> str:
    """Networks on the same sentences, alone and together; the paper's beside them, on others."""
    rows = []
    for run in collected("translation-*.json"):
        options, summary = run["options"], run["summary"]
        for found in (run["evaluation"], run["ensemble"]):
            if found is None:
                continue
            together = 1 + len(found.get("ensemble", ()))
            sides = options.get("side_dropout", 0)
            dropout = f"{options['dropout']:g}" + (f", sides {sides:g}" if sides else "")
            read = f"{summary['samples'] / 1000:,.0f} K"
            rows.append(
                [
                    options["network"] + (f", {together} models" if together > 1 else ""),
                    f"{options['layers']} x {options['hidden']}",
                    f"{together * summary['parameters'] / 1e6:.1f} M",
                    *((dropout, read) if together == 1 else ("", "")),
                    f"{found['perplexity']:.1f}",
                    f"{found['bleu 1']:.1f}",
                    f"{found['bleu all']:.1f}",
                    f"{1000 * found['seconds a sentence']:.0f}",
                ]
            )
    paper = [  # Figure 8
        ["BTEC: 3-LSTM of the paper, 7 models", "2 x 450", "", "0.5", "", "", "42.4", "60.2 (15)", ""],
        ["BTEC: CDEC, phrase-based", "", "", "", "", "", "41", "58.9 (15)", ""],
        ["BTEC: DGLSTM with attention", "", "", "", "", "", "34.5", "", ""],
    ]
    titles = ["network", "layers x d", "parameters", "dropout", "pairs read", "perplexity"]
    return markdown([*titles, "BLEU 1", "BLEU all", "ms a sentence, beam 20"], [*rows, *paper])


def translations() -> str:
    """What the ensemble made of the first test sentences, or one model if there is none."""
    runs = collected("translation-*.json")
    found = next(run[kind] for kind in ("ensemble", "evaluation") for run in runs if run[kind])
    rows = [[own["source"], own["translation"], own["references"][0]] for own in found["translations"]]
    return markdown(["Chinese", "translation", "main reference"], rows, numbers=False)


def beam_search() -> str:
    """Ways to search, and how many times longer they take than the fastest."""
    run, source = bench("bench-search.json")
    case = run["case"]
    rows = [
        [way, f"{found['threads']}", f"{seconds / case['sentences']:.2f}", f"{found['ratio'][way]:.1f}"]
        for found in run["results"]
        for way, seconds in found["median"].items()
    ]
    note = (
        f"{case['sentences']} sentences of {case['source']} words to {case['target']} each, beam "
        f"{case['beam']}, d = {case['hidden']}, {case['words']} words; {source}"
    )
    return f"{markdown(['way', 'threads', 'seconds a sentence', 'ratio'], rows)}\n\n{note}"


def images() -> str:
    """Networks on MNIST after the same number of epochs, the paper's beside them."""
    rows = []
    for run in collected("images-*.json"):
        options, summary, found = run["options"], run["summary"], run["evaluation"]
        rows.append(
            [
                IMAGE_NETWORKS[options["network"]],
                f"{options['layers']} x {options['hidden']}, {options['patch']}, {options['relu']}",
                f"{summary['parameters'] / 1e6:.2f} M",
                f"{summary['samples'] / (60_000 if options['retrain'] else 50_000):.0f}",
                f"{summary['seconds'] / 60:.0f}",
                "" if options["retrain"] else f"{100 * summary['best']['error']:.2f} %",
                f"{100 * found['error']:.2f} %",
            ]
        )
    paper = [  # Figure 12
        ["3-LSTM of the paper", "4 x 100, 2, 4096", "", "", "", "", "0.32 %"],
        ["3-LSTM with ReLU depth of the paper", "4 x 100, 3, 2048", "", "", "", "", "0.36 %"],
    ]
    titles = ["network", "layers x d, patch, ReLUs", "parameters", "epochs", "minutes"]
    return markdown([*titles, "validation error", "test error"], [*rows, *paper])


def generation() -> str:
    """Characters a second on one thread, with and without the stepper."""
    run, source = bench("bench-generation.json")
    rows = [
        [
            f"{size['layers']} x {size['hidden']}",
            *(f"{speed:,.0f}" for speed in size["characters a second"].values()),
        ]
        for size in run["sizes"]
    ]
    return f"{markdown(['layers x d', 'characters/s', 'by the module'], rows)}\n\nOne thread, {source}"


def _range(values: list[float], form: str, unit: str) -> str:
    """From the least to the greatest, as they are written down."""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


TABLES: dict[str, Callable[[], str]] = {
    "speed": speed,
    "experiments": experiments,
    "search": search,
    "characters": characters,
    "translation": translation,
    "translations": translations,
    "beam search": beam_search,
    "images": images,
    "generation": generation,
}
PAGES = {
    "README.md": ("speed", "experiments", "characters", "translation", "images"),
    "docs/experiments.md": ("search",),
    "docs/characters.md": ("generation",),
    "docs/translation.md": ("beam search", "translations"),
}


def update(page: str) -> str:
    """The text of a page with every table replaced by what the results give."""
    text = (ROOT / page).read_text()
    for name in PAGES[page]:
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{page}: expected {start} and {end}, got neither")
        before, after = pattern.split(text, maxsplit=1)
        text = f"{before}{start}\n{TABLES[name]()}\n{end}{after}"
    return text


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(update(page))
