"""The tables of a report: runs, results, options and environments. No PyTorch here."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gridlstm.errors import one_line
from gridlstm.experiments.record import Experiment, import_name
from gridlstm.experiments.registry import flat
from gridlstm.experiments.results import Table
from gridlstm.pages.report.runs import ReportedRun

__all__ = ["Option", "differing", "environments", "format_value", "results", "runs_table", "shared"]

LONGEST = 200
"""Characters of a value that are shown."""


def format_value(value: object) -> str:
    """A value of a file as a short text on one line."""
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < 2**63 else "a large number"
    text = one_line(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def differing(runs: Sequence[ReportedRun]) -> list[str]:
    """The options in which runs differ, the seed last."""
    begun = [run.options for run in runs if run.collected]
    names = dict.fromkeys(name for options in begun for name in options)
    found = [name for name in names if any(o.get(name) != begun[0].get(name) for o in begun)]
    return sorted(found, key=lambda name: name == "seed")


def runs_table(experiment: Experiment[Any], runs: Sequence[ReportedRun]) -> Table:
    """One row per run: in which options it differs from the others, how it ended, what it measured."""
    measure, varied = experiment.measure, differing(runs)
    names = [*varied, *([] if "seed" in varied else ["seed"])]
    titles = ["run", *(name.replace("_", " ") for name in names)]
    titles += ["ended", "samples", "minutes", measure.name, f"best {measure.name}", "on test data"]
    rows = []
    for run in runs:
        seconds = run.last("seconds")
        values = (run.last(measure.name), run.best(measure), run.tested(measure.name))
        rows.append(
            [
                run.name,
                *(format_value(run.options.get(name)) for name in names),
                f"{run.state} *" if run.uncommitted else run.state,
                format_value(run.last("samples")),
                "–" if seconds is None else f"{seconds / 60:.1f}",
                *("–" if value is None else f"{value:.4f}" for value in values),
            ]
        )
    note = "* from a working tree with uncommitted changes" if any(r.uncommitted for r in runs) else ""
    return Table(titles, rows, note=note)


def results(experiment: Experiment[Any], runs: Sequence[ReportedRun]) -> Table | str:
    """The table of the experiment, with the paper's results; or why there is none."""
    make_table = import_name(experiment.table)
    ended = [run.collected for run in runs if run.collected and run.collected["summary"]]
    try:
        table: Table = make_table(ended)
        paper: Table = make_table([])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return f"The files of a run are damaged, or from another version: {one_line(repr(error))}"
    if len(table.rows) == len(paper.rows):
        return "" if ended else "No run has ended yet."
    plain = [[cell.replace("\\*", "*") for cell in row] for row in table.rows]
    left = len(runs) - len(ended)
    missing = f"{left} of {len(runs)} runs have not ended and are not included." if left else ""
    note = " ".join(text for text in (table.note.replace("\\*", "*"), missing) if text)
    return Table(table.titles, plain, table.numbers, note)


class Option(NamedTuple):
    """An option that all runs share.

    Attributes:
        name: of the option.
        value: that of the runs.
        paper: that of the preset ``paper``, if it is another one.
    """

    name: str
    value: str
    paper: str = ""


def shared(experiment: Experiment[Any], runs: Sequence[ReportedRun]) -> list[Option]:
    """The options that all runs share, those that are unlike the paper's first."""
    begun = [run.options for run in runs if run.collected]
    varied, paper = differing(runs), flat(experiment.presets["paper"])
    options = [
        Option(
            name, format_value(value), format_value(paper[name]) if _other(paper, name, value) else ""
        )
        for name, value in (begun[0] if begun else {}).items()
        if name not in varied
    ]
    return sorted(options, key=lambda option: not option.paper)


def _other(paper: Mapping[str, Any], name: str, value: object) -> bool:
    theirs = paper.get(name, value)
    return (list(theirs) if isinstance(theirs, tuple) else theirs) != value


def environments(runs: Sequence[ReportedRun]) -> Table:
    """Where runs were trained and tested: one row per commit, machine and versions."""
    where: dict[tuple[str, ...], dict[str, None]] = {}
    for run in runs:
        collected = run.collected or {"sessions": []}
        for session in collected["sessions"]:
            where.setdefault(("training", *_environment(session)), {})[run.name] = None
        if evaluation := collected.get("evaluation"):
            tested = _environment(_object(evaluation.get("environment")))
            where.setdefault(("test", *tested), {})[run.name] = None
    rows = []
    for environment, names in where.items():
        many = "all runs" if len(names) == len(runs) else f"{len(names)} runs"
        rows.append([", ".join(names) if len(names) <= 2 else many, *environment])
    titles = [
        "runs",
        "what",
        "commit",
        "processor",
        "memory",
        "system",
        "Python",
        "versions",
        "threads",
    ]
    return Table(titles, rows, numbers=False)


def _environment(session: Mapping[str, Any]) -> tuple[str, ...]:
    machine, versions = (_object(session.get(name)) for name in ("machine", "versions"))
    commit = format_value(session.get("commit"))
    memory = machine.get("memory_gib")
    return (
        commit.replace("-dirty", ", uncommitted changes"),
        f"{format_value(machine.get('processor'))}, {format_value(machine.get('cores'))} cores",
        f"{format_value(memory)} GiB" if memory is not None else "–",
        format_value(machine.get("system")),
        format_value(session.get("python")),
        format_value(", ".join(f"{name} {version}" for name, version in versions.items())),
        _threads(session),
    )


def _threads(session: Mapping[str, Any]) -> str:
    threads, processes = session.get("threads"), session.get("processes", 1)
    return (
        format_value(threads)
        if processes == 1
        else (f"{format_value(threads)} in each of {format_value(processes)} processes")
    )


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
