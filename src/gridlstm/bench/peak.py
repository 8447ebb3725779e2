"""Memory of one training step, in a separate process: ``python -m gridlstm.bench.peak``.

The peak of a process never falls, so every measurement needs a new process. The argument is a JSON
object with a case; the output is a JSON list of bytes.
"""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gridlstm.bench.cases import Case
from gridlstm.bench.contenders import GridStep
from gridlstm.dim import Dim

__all__ = ["Memory", "peak_memory"]


class Memory(NamedTuple):
    """Bytes of resident memory above those before a step, when weights and inputs exist already.

    Attributes:
        peak: the most during the step.
        held: what the step holds between its forward and its backward pass.
    """

    peak: int
    held: int


def peak_memory(case: Case, *, recompute: bool) -> Memory:
    """Measures a training step of a case in a process of its own, on as many threads as here."""
    described = {"case": asdict(case), "recompute": recompute, "threads": torch.get_num_threads()}
    command = [sys.executable, "-m", "gridlstm.bench.peak", json.dumps(described)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Memory(*json.loads(done.stdout))


def _read_case(described: dict[str, Any]) -> Case:
    """The case that ``asdict`` described."""
    given = {field.name for field in fields(Dim) if field.init}
    dims = [Dim(**{key: dim[key] for key in given}) for dim in described["dims"]]
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in described.items()}
    return Case(**(values | {"dims": tuple(dims)}))


def _measure(case: Case, *, recompute: bool) -> Memory:
    step = GridStep(case, recompute=recompute)
    _forget_peak()
    before, before_peak = _status("VmRSS"), _status("VmHWM")
    out = step.forward()
    held = _status("VmRSS")
    step.backward(out)
    return Memory(_status("VmHWM") - before_peak, held - before)


def _forget_peak() -> None:
    """Sets the peak to the memory of now, on Linux. Elsewhere, what rises above the old one counts."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    status = Path("/proc/self/status")
    if status.exists():  # On Linux, getrusage includes the parent's memory at the fork.
        line = next(line for line in status.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024
    import resource  # Not on Windows.

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(asked["threads"])
    warm_up = GridStep(Case("warm-up", (Dim("time"), Dim("depth")), (2, 2), 2, 8))
    warm_up.backward(warm_up.forward())  # Loads libraries and fills caches.
    memory = _measure(_read_case(asked["case"]), recompute=asked["recompute"])
    sys.stdout.write(json.dumps(memory))
