"""What launchers on other machines share: a worker that stops when asked, and a watch over workers."""

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

from gridlstm.files import write_text
from gridlstm.sweeps.directory import SweepDir, SweepError
from gridlstm.sweeps.status import CellState, SweepWatch
from gridlstm.sweeps.worker import LOOK, Worker
from gridlstm.training.stop import stop_on_signals

__all__ = ["WorkerPool", "run_remotely", "supervise"]

LINGER = 5.0
"""Seconds that a worker waits when others work on all cells that are left."""
ROUNDS = 3
"""Workers are started again if they end while cells are left; not if this happens so often in a row
without a cell ended."""


class WorkerPool(Protocol):
    """Workers on other machines."""

    def start(self, count: int, stop_file: Path) -> None:
        """Starts workers, each of which calls :func:`run_remotely`."""

    def running(self) -> bool:
        """Whether a worker runs, or waits to run."""

    def cancel(self) -> None:
        """Ends workers that do not run yet or do not react."""


def run_remotely(worker: Worker, stop_file: Path) -> None:
    """Works on one cell after the other until none is left, a file appears or a signal comes."""
    main = threading.current_thread() is threading.main_thread()
    with stop_on_signals() if main else nullcontext() as signals:
        worker.run(
            stop=lambda: stop_file.exists() or (signals is not None and signals.signal is not None),
            linger=LINGER,
        )


def supervise(
    pool: WorkerPool,
    worker: Worker,
    count: int,
    stop: Callable[[], bool],
    look: Callable[[list[CellState]], None],
) -> None:
    """Starts workers, and more of them if they end before all cells are over.

    Raises:
        SweepError: if workers end again and again without a cell ended.
    """
    stop_file = worker.folder / "stop" / secrets.token_hex(8)
    watch, rounds, over_before = SweepWatch(SweepDir.open(worker.folder)), 0, -1
    try:
        while not stop():
            states = watch.look()
            look(states)
            left = [state for state in states if not state.over]
            if not left:
                break
            if not pool.running():
                over = len(states) - len(left)
                rounds = rounds + 1 if over == over_before else 1
                over_before = over
                if rounds > ROUNDS:
                    raise SweepError(f"workers ended {ROUNDS} times without a cell ended", code=1)
                pool.start(min(count, len(left)), stop_file)
            time.sleep(LOOK)
    finally:
        write_text(stop_file, "")
        patience = time.monotonic() + 60
        while pool.running() and time.monotonic() < patience:
            look(watch.look())
            time.sleep(LOOK)
        pool.cancel()
        look(watch.look())
