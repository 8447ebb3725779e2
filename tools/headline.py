"""The headline results, as a table and a figure: the paper's best network and ours, by experiment."""

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from matplotlib.figure import Figure

from gridlstm.experiments.images.results import epochs
from gridlstm.experiments.paper import PAPER, PaperResult
from gridlstm.experiments.registry import find_experiment, from_flat
from gridlstm.experiments.results import (
    CollectedRun,
    RunGroup,
    Table,
    group_runs,
    note_for,
    read_runs,
    span,
)

RESULTS = Path(__file__).parent.parent / "results"


class Kind(NamedTuple):
    """What is compared in an experiment.

    Attributes:
        title: of the task.
        measure: what is measured.
        pattern: the files of the runs.
        paper: where the paper's value is in ``PaperResult.value``; empty for the size of the task.
        value: ours, of one run; ``None`` if the run does not count.
        form: how to print a value, and its unit.
        higher: whether more is better.
        apart: in what else ours differs from the paper's, of a group of runs.
    """

    title: str
    measure: str
    pattern: str
    paper: str
    value: Callable[[CollectedRun], float | None]
    form: tuple[str, str]
    higher: bool
    apart: Callable[[RunGroup], str]


def _evaluated(name: str, scale: float = 1.0) -> Callable[[CollectedRun], float | None]:
    return lambda run: scale * run["evaluation"][name] if run["evaluation"] else None


def _solved(value: Callable[[CollectedRun], float]) -> Callable[[CollectedRun], float | None]:
    return lambda run: value(run) if run["summary"]["reason"] == "solved" else None


def _read(unit: str, scale: float, form: str) -> Callable[[RunGroup], str]:
    return lambda group: f"{span(group.summaries('samples', scale), form)} {unit}"


def _addition(group: RunGroup) -> str:
    easier = {
        "fill": "second numbers mostly zeros at first",
        "pace": "fewer digits at first",
        "zeros": "many zeros in second numbers",
    }
    words = [f"{text}, unlike in the paper" for name, text in easier.items() if group.options.get(name)]
    return ", ".join([_read("K samples", 1e-3, ".0f")(group), *words])


def _images(group: RunGroup) -> str:
    retrained = ["validation images used too"] if group.options["retrain"] else []
    return ", ".join([f"{epochs(group)} epochs", *retrained])


def _characters(group: RunGroup) -> str:
    read = span([n * group.options["chunk"] / 1e6 for n in group.summaries("samples")], ".0f")
    return f"{group.summary['parameters'] / 1e6:.2f} M weights, {read} M characters read"


KINDS = {
    "addition": Kind(
        "addition of 15 digits", "digits right", "runs-*.json", "accuracy",
        _evaluated("accuracy", 100), (".1f", " %"), True, _addition,
    ),
    "memorization": Kind(
        "memorization of 20 symbols", "samples until solved", "runs-*.json", "samples",
        _solved(lambda run: run["summary"]["samples"] / 1000), (".0f", " K"), False, lambda group: "",
    ),
    "parity": Kind(
        "parity of many bits", "most bits solved", "figure-9.json", "",
        _solved(lambda run: run["options"]["bits"]), (".0f", " bits"), True,
        _read("K samples", 1e-3, ".0f"),
    ),
    "characters": Kind(
        "characters of Wikipedia", "bits per character", "characters-*.json", "bits",
        _evaluated("bits"), (".2f", ""), False, _characters,
    ),
    "translation": Kind(
        "Chinese to English", "BLEU, one reference", "translation-*.json", "bleu 1",
        _evaluated("bleu 1"), (".1f", ""), True,
        lambda group: "one model, other sentences (Tatoeba, not BTEC)",
    ),
    "images": Kind(
        "handwritten digits", "test error", "images-*.json", "error",
        _evaluated("error", 100), (".2f", " %"), False, _images,
    ),
}  # fmt: skip


class Headline(NamedTuple):
    """An experiment: the paper's network, and the best group of our runs of the same network."""

    kind: Kind
    paper: PaperResult
    group: RunGroup
    values: list[float]

    @property
    def paper_value(self) -> str:
        """As the paper reports it."""
        return self.paper.value[self.kind.paper] if self.kind.paper else f"{self.paper.size} bits"

    @property
    def ours(self) -> str:
        """The values of the group."""
        form, unit = self.kind.form
        return span(self.values, form, unit)

    @property
    def setting(self) -> str:
        """Layers and length of vectors of our network."""
        return f"{self.group.options['layers']} x {self.group.options['hidden']}"

    @property
    def ended(self) -> str:
        """How our runs ended, how many seeds they had, and what else differs."""
        seeds = f"{self.group.seeds} seed{'s' * (self.group.seeds != '1')}"
        return ", ".join(filter(None, [seeds, self.group.outcome, self.kind.apart(self.group)]))


def headlines() -> list[Headline]:
    """One per experiment."""
    return [_headline(name, kind) for name, kind in KINDS.items()]


def _headline(name: str, kind: Kind) -> Headline:
    paper = max(
        (r for r in PAPER if r.experiment == name and r.ours),
        key=lambda r: (r.size or 0, -PAPER.index(r)),
    )
    experiment = find_experiment(name)
    runs = [
        run
        for run in read_runs(sorted(RESULTS.glob(kind.pattern)))
        if run["experiment"] == name and run["options"]["network"] == paper.ours
    ]
    if kind.paper and paper.size is not None:
        runs = [run for run in runs if from_flat(experiment, run["options"]).size == paper.size]
    found: list[tuple[float, Headline]] = []
    for group in group_runs(runs):
        values = [kind.value(run) for run in group.runs]
        counted = [value for value in values if value is not None]
        if len(counted) == len(values):  # A setting counts only if it worked with every seed.
            middle = sorted(counted)[len(counted) // 2]
            found.append((middle if kind.higher else -middle, Headline(kind, paper, group, counted)))
    if not found:
        raise SystemExit(f"{kind.pattern}: expected a run of {name} with {paper.ours}, found none")
    return max(found, key=lambda pair: (pair[0], int(pair[1].group.seeds)))[1]


def headline_table() -> str:
    """The paper's value and ours, and how ours came about."""
    lines = headlines()
    rows = [
        [
            line.kind.title,
            line.kind.measure,
            f"{line.paper_value} ({line.paper.network}, {line.paper.setting.split(',')[0]})",
            f"{line.ours} ({line.setting})",
            line.ended,
        ]
        for line in lines
    ]
    titles = ["experiment", "measure", "paper (layers x d)", "here (layers x d)", "how it ended here"]
    return Table(titles, rows, numbers=False, note=note_for(line.group for line in lines)).markdown()


def draw_headline() -> Figure:
    """One panel per experiment, two bars each."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots(2, 3)
    for panel, line in zip(axes.flat, headlines(), strict=True):
        number = float(re.sub(r"[^\d.]", "", line.paper_value))
        here = sorted(line.values)[len(line.values) // 2]
        names = [f"here\n{line.setting}", f"paper\n{line.paper.setting.split(',')[0]}"]
        bars = panel.barh(names, [here, number], color=["#2563eb", "#9ca3af"], height=0.6)
        panel.bar_label(bars, labels=[line.ours, line.paper_value], padding=4, fontsize=9)
        better = "more is better" if line.kind.higher else "less is better"
        panel.set_title(f"{line.kind.title}\n{line.kind.measure}, {better}", fontsize=9, loc="left")
        panel.set_xlim(0, 1.45 * max(here, number))
        panel.set_xticks([])
        note = "\n".join(wrap(line.ended.replace("\\*", "*"), 48))
        panel.set_xlabel(f"here: {note}", fontsize=7, loc="left")
        panel.tick_params(axis="y", length=0, labelsize=8)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    return figure
