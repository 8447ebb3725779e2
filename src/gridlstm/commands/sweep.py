"""The command ``gridlstm sweep``. No PyTorch here: each cell has a process of its own."""

import shlex
import sys
from pathlib import Path
from typing import Any

from gridlstm.errors import ExpectedError, one_line
from gridlstm.experiments.registry import experiment_of
from gridlstm.pipes import print_json
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.options import Sweep
from gridlstm.sweeps.plan import SweepPlan, parse_over
from gridlstm.sweeps.results import count_states
from gridlstm.sweeps.run import run_sweep
from gridlstm.sweeps.screen import SweepScreen
from gridlstm.sweeps.source import read_plan
from gridlstm.sweeps.status import CellState, SweepWatch

__all__ = ["run"]


def run(options: Sweep[Any]) -> None:
    """Runs a sweep, or shows how far it is.

    Raises:
        ValueError: if an option or a value to vary makes no sense.
        ExpectedError: if the sweep cannot be run as asked, or cells failed.
        SystemExit: 128 plus its number if a signal stops it.
    """
    plan, asked = _make_plan(options), options.run
    joined = asked.source if asked.source is not None and asked.source.is_dir() else None
    folder = joined or asked.out or Path("sweeps") / plan.name
    screen = SweepScreen(plan.experiment.measure.name)
    if asked.status:
        screen.show(SweepWatch(SweepDir.open(folder)).look())
        return
    try:
        with screen:
            states = run_sweep(plan, folder, asked, screen.update)
    except SystemExit:  # Stopped by a signal.
        sys.stderr.write(f"Continue it with: gridlstm sweep {one_line(shlex.quote(str(folder)))}\n")
        raise
    _tell(screen, states, folder)


def _make_plan(options: Sweep[Any]) -> SweepPlan:
    experiment, asked = experiment_of(options.experiment), options.run
    if asked.preset not in experiment.presets:
        expected = ", ".join(experiment.presets)
        raise ValueError(f"preset: expected one of {expected}, got {asked.preset}")
    if asked.source is None:
        grids: Any = [parse_over(experiment, asked.over)]
    elif asked.over:
        raise ValueError(f"over: expected none, because {asked.source} has some")
    else:
        grids = read_plan(asked.source).over
    return SweepPlan(experiment, options.experiment, grids, asked.test_samples)


def _tell(screen: SweepScreen, states: list[CellState], folder: Path) -> None:
    """How all cells ended, and where the results are."""
    screen.show(states)
    if sys.stdout.isatty():
        files = ", ".join(f"sweep.{suffix}" for suffix in ("json", "png", "svg"))
        sys.stdout.write(f"{one_line(folder)}: {files}\n")
    else:
        print_json({"end": {"sweep": str(folder), **count_states(states)}})
    failed = [state for state in states if state.state == "failed"]
    if failed:
        lines = "; ".join(f"{state.cell.name} ({state.detail})" for state in failed)
        message = f"{len(failed)} of {len(states)} cells failed: {lines}; see {folder / 'logs'}; "
        raise ExpectedError(f"{message}--retry-failed tries them again", code=1)
