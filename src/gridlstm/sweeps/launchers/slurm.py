"""Workers as jobs of SLURM, by submitit."""

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from gridlstm.sweeps.directory import SweepError
from gridlstm.sweeps.launchers.remote import run_remotely, supervise
from gridlstm.sweeps.options import Launch
from gridlstm.sweeps.status import CellState
from gridlstm.sweeps.worker import Worker

__all__ = ["launch"]

TIMEOUT = 24 * 60
"""Minutes of a job. SLURM then starts it again, and it continues its cell from the checkpoint."""
_log = logging.getLogger("gridlstm")


def launch(
    worker: Worker, how: Launch, stop: Callable[[], bool], look: Callable[[list[CellState]], None]
) -> None:
    """Submits one job per worker, and waits until all cells are over.

    Raises:
        SweepError: if submitit does not take the parameters.
    """
    submitit: Any = import_module("submitit")
    executor = submitit.AutoExecutor(folder=worker.folder / "slurm")
    if executor.cluster != "slurm":
        _log.warning("SLURM not found; submitit runs the workers on this machine")
    words = dict(word.split("=", 1) for word in how.slurm)
    parameters: dict[str, Any] = {
        "name": f"gridlstm-{worker.folder.name}",
        "cpus_per_task": 1,
        "timeout_min": TIMEOUT,
        **({"gpus_per_node": 1} if worker.device == "cuda" else {}),
        **{name: int(value) if value.isdecimal() else value for name, value in words.items()},
    }
    try:
        executor.update_parameters(**parameters)
    except (NameError, TypeError, ValueError, AssertionError) as error:
        raise SweepError(f"slurm: {error}") from None
    supervise(_Jobs(executor, worker), worker, how.worker_count, stop, look)


class _Job:
    """What a job does. SLURM may preempt or end it, and start it again."""

    def __init__(self, worker: Worker, stop_file: Path) -> None:
        self.worker, self.stop_file = worker, stop_file

    def __call__(self) -> None:
        run_remotely(self.worker, self.stop_file)

    def checkpoint(self) -> Any:
        """Is called by submitit before the job is started again. Cells have their own checkpoints."""
        return import_module("submitit.helpers").DelayedSubmission(self)


class _Jobs:
    def __init__(self, executor: Any, worker: Worker) -> None:
        self._executor, self._worker = executor, worker
        self._jobs: list[Any] = []

    def start(self, count: int, stop_file: Path) -> None:
        with self._executor.batch():
            self._jobs = [self._executor.submit(_Job(self._worker, stop_file)) for _ in range(count)]

    def running(self) -> bool:
        return any(not job.done() for job in self._jobs)

    def cancel(self) -> None:
        for job in self._jobs:
            if not job.done():
                job.cancel()
