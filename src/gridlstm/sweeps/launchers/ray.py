"""Workers as tasks of Ray: of the cluster that ``RAY_ADDRESS`` names, or else on this machine.

Ray listens on all network interfaces of a machine, and whoever can connect can run programs there. So
it is always used with a token (``RAY_AUTH_MODE=token``): that of the cluster, or on this machine a new
one for each sweep, which is nowhere but in the environment of its processes.
"""

import os
import secrets
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from gridlstm.sweeps.directory import SweepError
from gridlstm.sweeps.launchers.remote import run_remotely, supervise
from gridlstm.sweeps.options import Launch
from gridlstm.sweeps.status import CellState
from gridlstm.sweeps.worker import Worker

__all__ = ["launch"]

SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def launch(
    worker: Worker, how: Launch, stop: Callable[[], bool], look: Callable[[list[CellState]], None]
) -> None:
    """Starts one task per worker, and waits until all cells are over.

    Raises:
        SweepError: if Ray does not start.
    """
    os.environ.update(SETTINGS)  # Ray reads them when it is imported.
    ray: Any = import_module("ray")
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    own: dict[str, Any] = {} if address else {"num_cpus": how.worker_count, "include_dashboard": False}
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="error", **own)
    except (RuntimeError, ValueError, ConnectionError) as error:
        raise SweepError(f"Ray does not start: {error}", code=1) from error
    gpus = 1 if worker.device == "cuda" else 0
    try:
        with redirect_stdout(sys.stderr):  # Ray prints there when a worker dies.
            supervise(_Tasks(ray, worker, gpus), worker, how.worker_count, stop, look)
    finally:
        ray.shutdown()


class _Tasks:
    def __init__(self, ray: Any, worker: Worker, gpus: int) -> None:
        self._ray, self._worker = ray, worker
        # A task whose process is killed is started again by Ray.
        self._run = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=3)(run_remotely)
        self._tasks: list[Any] = []

    def start(self, count: int, stop_file: Path) -> None:
        self._tasks = [self._run.remote(self._worker, stop_file) for _ in range(count)]

    def running(self) -> bool:
        if self._tasks:
            _, self._tasks = self._ray.wait(self._tasks, num_returns=len(self._tasks), timeout=0)
        return bool(self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)
