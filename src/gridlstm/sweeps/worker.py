"""A worker: starts a process for one cell after the other, or for several at a time. No PyTorch here.

A cell has a process of its own, which holds the claim. If it is killed, the claim is stale and the cell
is taken up again from its checkpoint. If the worker is killed, its cells notice, write a checkpoint and
stop.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

from gridlstm.sweeps.directory import SweepDir, SweepError
from gridlstm.sweeps.status import CellState, SweepWatch

__all__ = ["Worker"]

POLL = 0.25
"""Seconds between two looks at the processes of this worker."""
LOOK = 1.0
"""Seconds between two looks at the cells."""
CELL_PROCESS = "gridlstm.commands.sweep_cell"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Worker:
    """Works on the cells of a sweep until none is left.

    Attributes:
        folder: the directory of the sweep.
        data: that of data sets.
        device: where to compute.
    """

    folder: Path
    data: Path | None = None
    device: str = "cpu"

    def run(
        self,
        *,
        slots: int = 1,
        stop: Callable[[], bool] = lambda: False,
        look: Callable[[list[CellState]], None] = lambda states: None,
        linger: float = inf,
    ) -> None:
        """Works until all cells are over, or until it is to stop.

        Args:
            slots: cells at a time.
            stop: whether to stop: running cells write a checkpoint.
            look: is called with the states of all cells about once a second.
            linger: seconds to wait for cells of other workers, which may have to be taken over.

        Raises:
            SweepError: if the processes of cells do not start or cannot write.
        """
        sweep = SweepDir.open(self.folder)
        watch, running = SweepWatch(sweep), dict[str, _Process]()
        looked, busy = -inf, time.monotonic()
        try:
            while not stop():
                ended = [name for name, process in running.items() if process.poll()]
                for name in ended:
                    running.pop(name).check(sweep)
                if ended or time.monotonic() - looked > LOOK:
                    states, looked = watch.look(), time.monotonic()
                    look(states)
                    for state in states:
                        name, number = state.cell.name, state.next_claim
                        if number is not None and len(running) < slots and name not in running:
                            running[name] = _Process(self, sweep, name, number)
                    if running:
                        busy = time.monotonic()
                    elif all(state.over for state in states) or time.monotonic() - busy > linger:
                        return
                time.sleep(POLL)
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()
        look(watch.look())


class _Process:
    """The process of a cell."""

    def __init__(self, worker: Worker, sweep: SweepDir, name: str, number: int) -> None:
        self.name, self.claim = name, sweep.claims(name) / f"{number}.json"
        arguments = [str(sweep.path), name, str(number), str(os.getpid()), worker.device]
        if worker.data is not None:
            arguments.append(str(worker.data.absolute()))
        with sweep.log(name).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", CELL_PROCESS, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # Ctrl-C is for the worker, which then stops its cells.
            )

    def poll(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self) -> None:
        self._process.wait()

    def check(self, sweep: SweepDir) -> None:
        """Raises an error if it could not do its work at all, and would fail again and again."""
        code = self._process.returncode
        recorded = sweep.failure(self.name) is not None
        if not recorded and (0 < code < 64 or (code and not self.claim.exists())):
            line = sweep.last_line(self.name)
            raise SweepError(f"{self.name}: its process ended with code {code}: {line}", code=1)
