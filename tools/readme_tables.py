"""Writes the tables of README.md and docs/, and figures of results/: ``make readme``.

They are made from results/ and from shipped runs. A table is between ``<!-- NAME -->`` and
``<!-- end of NAME -->``. Its numbers are never written by hand: a test compares them with the results.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_tables import accuracy, bench, peers, speed, targets, training_steps
from headline import headline_table
from redraw import redraw
from zoo_table import zoo, zoo_commands

from gridlstm.bench.summary import ratio_text, with_spread
from gridlstm.experiments.parity.results import solutions_table
from gridlstm.experiments.record import import_name
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.experiments.results import CollectedRun, Table, read_runs
from gridlstm.experiments.translation.results import translation_table

ROOT = Path(__file__).parent.parent


def collected(pattern: str) -> list[CollectedRun]:
    """The runs in files that ``gridlstm collect`` wrote."""
    return read_runs(sorted((ROOT / "results").glob(pattern)))


def results(name: str, pattern: str) -> str:
    """The table of results of an experiment."""
    table: Table = import_name(EXPERIMENTS[name].table)(collected(pattern))
    return table.markdown()


def solutions() -> str:
    """Samples until a parity was solved, by network and size."""
    return solutions_table([*collected("figure-9.json"), *collected("figure-10.json")]).markdown()


def translations() -> str:
    """Translations of the first test sentences."""
    return translation_table(collected("translation-*.json")).markdown()


def beam_search() -> str:
    """Ways to run a beam search, and their time divided by that of the fastest."""
    run, source = bench("bench-search.json")
    case = run["case"]
    rows = [
        [
            way,
            f"{result['threads']}",
            str(len(result["seconds"][way])),
            with_spread(f"{result['median'][way] / case['sentences']:.2f}", result["seconds"][way]),
            ratio_text(result["seconds"][way], result["seconds"]["batched, incremental"]),
        ]
        for result in run["results"]
        for way in result["ratio"]
    ]
    note = (
        f"{case['sentences']} sentences of {case['source']} words to {case['target']} each, beam "
        f"{case['beam']}, d = {case['hidden']}, {case['words']} words; {source}"
    )
    table = Table(["beam search", "threads", "rounds", "seconds per sentence", "ratio"], rows)
    return f"{table.markdown()}\n\n{note}"


def generation() -> str:
    """Characters per second on one thread, in each of the ways to generate."""
    run, source = bench("bench-generation.json")
    rows = [
        [
            f"{size['layers']} x {size['hidden']}",
            *(f"{speed:,.0f}" for speed in size["characters a second"].values()),
        ]
        for size in run["sizes"]
    ]
    titles = {
        "C": "compiled kernel",
        "C, int8": "int8 weights",
        "stepper": "NumPy",
        "model": "the module",
    }
    ways = [titles[way] for way in run["sizes"][0]["characters a second"]]
    table = Table(["layers x d", *(f"characters/s, {way}" for way in ways)], rows)
    note = f"One thread, {source}"
    if bits := run.get("bits"):
        note = (
            f"Bits per character of {bits['characters']:,} characters of Shakespeare, with the network "
            f"of the package: {bits['float32']:.4f}, with int8 weights {bits['int8']:.4f}. {note}"
        )
    return f"{table.markdown()}\n\n{note}"


TABLES: dict[str, Callable[[], str]] = {
    "headline": headline_table,
    "speed": speed,
    "peers": peers,
    "training steps": training_steps,
    "targets": targets,
    "accuracy": accuracy,
    "experiments": partial(results, "parity", "runs-*.json"),
    "solutions": solutions,
    "characters": partial(results, "characters", "characters-*.json"),
    "translation": partial(results, "translation", "translation-*.json"),
    "translations": translations,
    "beam search": beam_search,
    "images": partial(results, "images", "images-*.json"),
    "generation": generation,
    "zoo": zoo,
    "zoo commands": zoo_commands,
}
PAGES = {
    "README.md": ("headline", "peers"),
    "docs/experiments.md": ("experiments", "solutions"),
    "docs/characters.md": ("characters", "generation"),
    "docs/engine.md": ("accuracy", "speed", "training steps", "targets"),
    "docs/images.md": ("images",),
    "docs/translation.md": ("translation", "beam search", "translations"),
    "docs/zoo.md": ("zoo", "zoo commands"),
}


def update(page: str) -> str:
    """The text of a page with all tables made anew from the results."""
    text = (ROOT / page).read_text()
    for name in PAGES[page]:
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{page}: expected {start} ... {end}, not found")
        before, after = pattern.split(text, maxsplit=1)
        text = f"{before}{start}\n{TABLES[name]()}\n{end}{after}"
    return text


if __name__ == "__main__":
    redraw()
    for page in PAGES:
        (ROOT / page).write_text(update(page))
