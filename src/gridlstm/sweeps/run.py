"""Runs a sweep. No PyTorch here: each cell has a process of its own."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from gridlstm.experiments.record import import_name
from gridlstm.sweeps.directory import SweepDir, SweepError
from gridlstm.sweeps.options import Launch
from gridlstm.sweeps.plan import SweepPlan
from gridlstm.sweeps.results import write_results
from gridlstm.sweeps.status import CellState, SweepWatch
from gridlstm.sweeps.worker import Worker
from gridlstm.training.stop import stop_on_signals

__all__ = ["run_sweep"]

LAUNCHERS = {name: f"gridlstm.sweeps.launchers.{name}:launch" for name in ("local", "slurm", "ray")}
NEEDED = {"slurm": "submitit", "ray": "ray"}
"""Packages that launchers need. The extra has the name of the launcher."""


def run_sweep(
    plan: SweepPlan,
    folder: Path,
    how: Launch | None = None,
    look: Callable[[list[CellState]], None] = lambda states: None,
) -> list[CellState]:
    """Runs the cells of a plan that are not over yet, and writes results and a figure.

    Several processes, on several machines that share the directory, may do so at the same time.

    Args:
        plan: what to run.
        folder: the directory of the sweep. If it has been started, it is continued.
        how: where and how cells are run. Default: on this machine, one cell per core.
        look: is called with the states of all cells about once a second.

    Returns:
        The cells as they ended. Those that failed have the state ``failed``.

    Raises:
        ExpectedError: if the sweep cannot be started or continued as asked.
        SystemExit: 128 plus its number if a signal stops it. Running cells have then written a
            checkpoint, and the same call continues them.
    """
    how = how or Launch()
    if how.launcher in NEEDED and find_spec(NEEDED[how.launcher]) is None:
        extra = f"pip install 'gridlstm[{how.launcher}]'"
        raise SweepError(f"--launcher {how.launcher} needs {NEEDED[how.launcher]}: {extra}")
    launch = import_name(LAUNCHERS[how.launcher])
    sweep = SweepDir.create(folder, plan)
    if how.retry_failed:
        sweep.forget_failures()
    with stop_on_signals() as stop:
        worker = Worker(sweep.path, how.data, how.device)
        launch(worker, how, lambda: stop.signal is not None, look)
    states = SweepWatch(sweep).look()
    if stop.signal is not None:
        raise SystemExit(128 + stop.signal)
    write_results(sweep, states)
    return states
