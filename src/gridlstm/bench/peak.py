"""Peak memory of one training step, in a separate process: ``python -m gridlstm.bench.peak``.

The peak of a process never falls, so every measurement needs a new process. The argument is a JSON
object with the sizes of a 2-LSTM; the output is the rise of the peak in bytes.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["make_step", "peak_memory"]


def make_step(time: int, depth: int, batch: int, hidden: int, *, recompute: bool) -> Callable[[], None]:
    """A function that does one forward and backward pass."""
    grid = GridLSTM(["time", Dim("depth", size=depth)], hidden, recompute=recompute)
    entering = State(torch.ones(batch, time, hidden), torch.ones(batch, time, hidden))

    def step() -> None:
        grid({"depth": entering})["depth"].hidden.sum().backward()

    return step


def peak_memory(*, recompute: bool, **sizes: int) -> int:
    """The rise of the peak resident memory over that of a small step, in bytes."""
    arguments = json.dumps({**sizes, "recompute": recompute})
    command = [sys.executable, "-m", "gridlstm.bench.peak", arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # On Linux, getrusage includes the parent's memory at the fork.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource  # Not on Windows.

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    sizes = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    make_step(2, 2, 2, 8, recompute=False)()  # Loads libraries and fills caches.
    before = _peak()
    make_step(**sizes)()
    sys.stdout.write(str(_peak() - before))
