"""Workers on this machine: one process per cell, as many at a time as there are workers."""

from collections.abc import Callable

from gridlstm.sweeps.options import Launch
from gridlstm.sweeps.status import CellState
from gridlstm.sweeps.worker import Worker

__all__ = ["launch"]


def launch(
    worker: Worker, how: Launch, stop: Callable[[], bool], look: Callable[[list[CellState]], None]
) -> None:
    """Works on cells until all are over, those of other workers included."""
    worker.run(slots=how.worker_count, stop=stop, look=look)
