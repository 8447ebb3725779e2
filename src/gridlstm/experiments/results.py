"""Tables of results, from runs that ``gridlstm collect`` wrote. No PyTorch here."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gridlstm.training.rundir import RunDir

__all__ = [
    "CollectedRun",
    "RunGroup",
    "Table",
    "collect_run",
    "compared_options",
    "describe_value",
    "group_runs",
    "is_uncommitted",
    "note_for",
    "read_runs",
    "span",
]

CollectedRun = dict[str, Any]
"""A run as ``gridlstm collect`` writes it: options, sessions, summary, evaluation, curve."""

NOT_COMPARED = ("seed", "minutes", "checkpoint_minutes")
"""Options in which the runs of a row may differ: they do not change what a run computes."""
ENDINGS = {"solved": "solved", "samples": "out of samples"}
"""How a run ended, by the reason in its summary; with any other reason it was cut off."""
POINTS = 200
"""The most rows of a learning curve that are kept."""
UNCOMMITTED = "\\* some of it from a working tree with uncommitted changes"


class Table(NamedTuple):
    """A table of text.

    Attributes:
        titles: of the columns.
        rows: one cell per column.
        numbers: align all columns but the first to the right.
        note: a line below the table.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = True
    note: str = ""

    def markdown(self) -> str:
        """The table in Markdown.

        >>> print(Table(["network", "error"], [["3-LSTM", "0.44 %"]]).markdown())
        | network | error |
        | --- | ---: |
        | 3-LSTM | 0.44 % |
        """
        rule = ["---", *["---:" if self.numbers else "---"] * (len(self.titles) - 1)]
        lines = [f"| {' | '.join(row)} |" for row in (self.titles, rule, *self.rows)]
        return "\n".join([*lines, *(["", self.note] if self.note else [])])


def collect_run(run: RunDir, points: int = POINTS) -> CollectedRun:
    """What is worth keeping of a run, with about this many points of its learning curve at most."""
    config, rows = run.config(), run.metrics()
    every = -(-len(rows) // points) or 1
    thinned = [row for k, row in enumerate(rows) if k % every == 0 or k == len(rows) - 1]
    return {
        "run": run.path.name,
        "experiment": config["experiment"],
        "options": config["options"],
        "sessions": run.sessions(),
        "summary": run.summary(),
        **{name: run.read_result(f"{name}.json") for name in ("evaluation", "ensemble")},
        "curve": thinned,
    }


def read_runs(paths: Iterable[Path]) -> list[CollectedRun]:
    """The runs in files that ``gridlstm collect`` wrote."""
    return [run for path in paths for run in json.loads(path.read_text())["runs"]]


def is_uncommitted(run: CollectedRun) -> bool:
    """Whether a run or its evaluation is from a working tree with uncommitted changes."""
    results = [run.get(name) or {} for name in ("evaluation", "ensemble")]
    environments = [*run["sessions"], *(result.get("environment") for result in results)]
    commits = [e.get("commit") for e in environments if isinstance(e, dict)]
    return any(str(commit).endswith("-dirty") for commit in commits)


class RunGroup(NamedTuple):
    """Runs that differ in nothing but the seed: a row of a table.

    Attributes:
        runs: at least one.
        difference: the options that distinguish this group from others with the same network and
            size, as ``", rate 0.03"``.
    """

    runs: list[CollectedRun]
    difference: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """The options that all runs share, and the seed of the first."""
        shared: dict[str, Any] = self.runs[0]["options"]
        return shared

    @property
    def summary(self) -> dict[str, Any]:
        """How the first run ended."""
        first: dict[str, Any] = self.runs[0]["summary"]
        return first

    @property
    def seeds(self) -> str:
        """The number of different seeds."""
        return str(len({run["options"]["seed"] for run in self.runs}))

    @property
    def outcome(self) -> str:
        """How the runs ended, as ``2 solved, 1 cut off``; with a star for uncommitted changes."""
        endings = Counter(ENDINGS.get(run["summary"]["reason"], "cut off") for run in self.runs)
        words = ", ".join(f"{count} {ending}" for ending, count in endings.items())
        return f"{words} \\*" if self.uncommitted else words

    @property
    def uncommitted(self) -> bool:
        """Whether one of the runs is from a working tree with uncommitted changes."""
        return any(map(is_uncommitted, self.runs))

    def summaries(self, name: str, scale: float = 1) -> list[float]:
        """A number in the summaries of all runs."""
        return [run["summary"][name] * scale for run in self.runs]

    def evaluations(self, name: str, scale: float = 1) -> list[float]:
        """A number in the evaluations of all runs that have one."""
        return [run["evaluation"][name] * scale for run in self.runs if run["evaluation"]]


def group_runs(runs: Iterable[CollectedRun], *alike: str) -> list[RunGroup]:
    """Runs in groups that differ in nothing but the seed, in the order of their first runs.

    Args:
        runs: of any experiments.
        alike: options that a row shows anyway. Groups that are equal in these are distinguished by
            the others in which they differ.
    """
    groups: dict[str, list[CollectedRun]] = {}
    for run in runs:
        # An option that is None is one that older runs do not have.
        given = {k: v for k, v in compared_options(run["options"]).items() if v is not None}
        key = json.dumps([run["experiment"], given], sort_keys=True)
        groups.setdefault(key, []).append(run)
    rows = [RunGroup(members) for members in groups.values()]
    return [row._replace(difference=_difference(row, rows, alike)) for row in rows]


def compared_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that decide what a run computes."""
    left_out = set(NOT_COMPARED)
    if options["schedule"] == "constant":
        left_out.add("samples")  # Then it says only when to stop.
    return {name: value for name, value in options.items() if name not in left_out}


def _difference(row: RunGroup, rows: Sequence[RunGroup], alike: Sequence[str]) -> str:
    def shown(group: RunGroup) -> list[Any]:
        first = group.runs[0]
        return [first["experiment"], *(first["options"].get(name) for name in alike)]

    similar = [compared_options(other.options) for other in rows if shown(other) == shown(row)]
    options = compared_options(row.options)
    names = [name for name in options if any(o.get(name) != options[name] for o in similar)]
    return "".join(f", {name.replace('_', ' ')} {describe_value(options[name])}" for name in names)


def describe_value(value: Any) -> str:
    """The value of an option, as tables and legends show it."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def span(values: Sequence[float], form: str, unit: str = "") -> str:
    """From the smallest to the largest value, as they are printed; empty if there are none.

    >>> span([23.9, 38.2], ".0f", " K")
    '24 to 38 K'
    """
    if not values:
        return ""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def note_for(groups: Iterable[RunGroup]) -> str:
    """What a star means, if there is one."""
    return UNCOMMITTED if any(group.uncommitted for group in groups) else ""
