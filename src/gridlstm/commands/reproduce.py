"""The command ``gridlstm reproduce``: a figure of the paper, from the runs that it needs."""

import sys
from dataclasses import replace

from gridlstm.commands.reproduce_options import FIGURES, ReproduceOptions
from gridlstm.errors import ExpectedError, one_line
from gridlstm.experiments.record import import_name
from gridlstm.experiments.results import Table, collect_run
from gridlstm.figures.save import save_figure
from gridlstm.files import write_json, write_text
from gridlstm.provenance import environment
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.plan import SweepPlan
from gridlstm.sweeps.run import run_sweep
from gridlstm.sweeps.screen import SweepScreen

__all__ = ["run"]

TESTED = 20
"""Samples that networks of the smoke scale are tested on."""


def run(options: ReproduceOptions) -> None:
    """Runs what is missing of each figure, then writes the figure and its table.

    Raises:
        ExpectedError: if a run failed. What the others gave is written nevertheless.
        SystemExit: 128 plus its number if a signal stops it; the same command continues.
    """
    failed = [number for number in options.numbers if not _reproduce(number, options)]
    if failed:
        raise ExpectedError(
            f"figure {', '.join(failed)}: runs failed; --retry-failed tries them again", code=1
        )


def _reproduce(number: str, options: ReproduceOptions) -> bool:
    """Makes one figure; whether all of its runs succeeded."""
    experiment, figure = FIGURES[number]
    runs = figure.plans[options.scale]
    shared = replace(runs.options, training=replace(runs.options.training, bfloat16=options.bfloat16))
    samples = TESTED if options.scale == "smoke" else None
    plan = SweepPlan(experiment, shared, runs.over, samples)
    out = options.out / options.scale / f"figure-{number}"
    sys.stdout.write(f"Figure {number}. {figure.about}: {len(plan.cells)} runs\n")
    sys.stdout.flush()
    with SweepScreen(experiment.measure.name) as screen:
        states = run_sweep(plan, out, options, screen.update)
    sweep = SweepDir.open(out)
    ended = [sweep.run(state.cell.name) for state in states if state.state != "failed"]
    if ended:
        collected = [collect_run(run) for run in ended]
        about = {"kind": "runs", "figure": number, "scale": options.scale}
        write_json(out.with_suffix(".json"), {**about, "environment": environment(), "runs": collected})
        table: Table = import_name(experiment.table)(collected)
        write_text(out.with_suffix(".md"), f"{_title(number, options)}\n\n{table.markdown()}\n")
        paths = save_figure(import_name(figure.draw)(ended), out)
        for path in (out.with_suffix(".md"), *paths):
            sys.stdout.write(f"{one_line(path)}\n")
    return len(ended) == len(states)


def _title(number: str, options: ReproduceOptions) -> str:
    experiment, figure = FIGURES[number]
    title = f"# Figure {number}, {options.scale} scale"
    return f"{title}\n\n{figure.about} (`gridlstm train {experiment.name}`)."
