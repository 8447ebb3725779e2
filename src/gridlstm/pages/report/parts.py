"""What a report is about: directories of runs, sweeps and reproductions, in parts. No PyTorch here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridlstm.errors import ExpectedError, one_line
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.run_record import record_and_options
from gridlstm.sweeps.directory import PLAN, SweepDir
from gridlstm.training.rundir import RunDir

__all__ = ["Part", "ReportError", "find_parts"]

FIGURE = re.compile(r"figure-(\d+)")
"""The directories of ``gridlstm reproduce``."""

CAPTION = "What was measured at the end. Points are runs; lines join the means over seeds."
"""What the figure of a sweep shows."""


class ReportError(ExpectedError):
    """There is nothing to report on."""


@dataclass(frozen=True)
class Part:
    """Runs of one experiment that belong together: a section of the page.

    Attributes:
        title: the heading.
        experiment: of all runs.
        runs: by name. Those of a sweep need not have begun.
        sweep: the sweep that they are the cells of, if they are.
        about: what the runs are for.
        figure: the file of the figure that was drawn from the runs, without suffix, if there is one.
        caption: what that figure shows.
    """

    title: str
    experiment: Experiment[Any]
    runs: dict[str, RunDir]
    sweep: SweepDir | None = None
    about: str = ""
    figure: Path | None = None
    caption: str = ""


def find_parts(paths: Sequence[Path]) -> list[Part]:
    """The parts of a report: one per experiment of the runs, per sweep and per figure.

    Args:
        paths: directories of runs, sweeps, or figures that ``gridlstm reproduce`` made.

    Raises:
        ReportError: if a path is none of them.
        RunError: if a run cannot be read.
        SweepError: if the plan of a sweep cannot be read.
    """
    runs: dict[str, list[Path]] = {}
    sweeps: list[Part] = []
    for path in paths:
        if (path / "config.json").exists():
            experiment, _ = record_and_options(RunDir(path))
            runs.setdefault(experiment.name, []).append(path)
        elif found := sorted({plan.parent for plan in _plans(path)}, key=_number):
            sweeps += (_sweep_part(SweepDir.open(folder)) for folder in found)
        else:
            raise ReportError(f"{path}: expected a run, a sweep or a reproduction; found none")
    return [*(_runs_part(members) for members in runs.values()), *sweeps]


def _plans(path: Path) -> list[Path]:
    """The plan of a sweep, or those of the figures of one scale or of all scales."""
    if (path / PLAN).exists():
        return [path / PLAN]
    return [plan for depth in ("*", "*/*") for plan in path.glob(f"{depth}/{PLAN}")]


def _number(folder: Path) -> tuple[str, int, str]:
    """Orders figures by their numbers."""
    figure = FIGURE.fullmatch(folder.name)
    return str(folder.parent), int(figure[1]) if figure else 0, folder.name


def _runs_part(paths: Sequence[Path]) -> Part:
    distinct = list(dict.fromkeys(path.resolve() for path in paths))
    names = [path.name for path in distinct]
    # Runs of the same name are told apart by their directories.
    labels = names if len(set(names)) == len(names) else [str(path) for path in distinct]
    runs = {one_line(label): RunDir(path) for label, path in zip(labels, distinct, strict=True)}
    experiment, _ = record_and_options(next(iter(runs.values())))
    title = next(iter(runs)) if len(runs) == 1 else f"{len(runs)} runs of {experiment.name}"
    return Part(title, experiment, runs, about=experiment.about)


def _sweep_part(sweep: SweepDir) -> Part:
    experiment, path = sweep.plan.experiment, sweep.path
    runs = {cell: sweep.run(cell) for cell in sweep.plan.cells}
    number = FIGURE.fullmatch(path.name)
    if number is None or number[1] not in experiment.paper_figures:
        title = f"Sweep {one_line(path.name)}"
        return Part(title, experiment, runs, sweep, experiment.about, path / "sweep", CAPTION)
    title = f"Figure {number[1]}, {one_line(path.parent.name)} scale"
    about = experiment.paper_figures[number[1]].about
    return Part(title, experiment, runs, sweep, about, path, f"Figure {number[1]}. {about}")
