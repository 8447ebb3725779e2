"""Claims on cells: at most one process works on a cell at a time. No PyTorch here.

The claims of a cell are files ``1.json``, ``2.json``, ... in a folder, created with ``O_EXCL`` and
never removed. The one with the highest number counts. It is released by its owner, or else it is stale:
its process is gone, or has not touched the file for long. Then a process may create the next number,
which only one process can; whoever decided upon an older number than the newest fails. So nothing
depends on locks, which some file systems that machines share do not have, and no clocks are compared.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridlstm.files import make_folder, read_json, write_json

__all__ = ["Claim", "ClaimWatch", "newest_claim"]

BEAT = 5.0
"""Seconds between two signs of life."""
STALE = 90.0
"""Seconds without one after which a claim is stale."""
LOST = 75
"""The exit code of a process that has lost its claim."""


@dataclass(frozen=True)
class Claim:
    """A claim on a cell.

    Attributes:
        path: its file.
        holder: host and process of the holder, and when the process was started. Empty if it was killed
            before it could write them.
    """

    path: Path
    holder: dict[str, Any]

    @classmethod
    def take(cls, folder: Path, number: int, **details: object) -> "Claim | None":
        """Creates the claim of a number; ``None`` if another process was faster.

        Args:
            folder: of the claims of a cell.
            number: from :meth:`ClaimWatch.free_number`.
            details: what else to note.
        """
        make_folder(folder)
        process = os.getpid()
        holder = {"host": this_host(), "process": process, "started": _start_of(process), **details}
        path = folder / f"{number}.json"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            return None
        write_json(path, holder)
        return cls(path, holder)

    @property
    def number(self) -> int:
        """Its place among the claims of a cell."""
        return int(self.path.stem)

    @property
    def released(self) -> bool:
        """Whether its holder has ended its work, well or not."""
        return bool(self.holder.get("released"))

    @property
    def process_is_gone(self) -> bool:
        """Whether the holder was a process of this machine that no longer exists."""
        if self.holder.get("host") != this_host():
            return False
        return _start_of(self.holder.get("process")) != self.holder.get("started")

    def release(self) -> None:
        """Ends the claim: the next one may be taken at once."""
        write_json(self.path, {**self.holder, "released": True})

    def keep(self, parent: int, abandoned: Callable[[], None]) -> None:
        """Shows signs of life, in a thread, until the process ends.

        If another process has taken the cell over, because this one was suspended for long, the
        process ends at once and writes nothing more.

        Args:
            parent: the process that started this one.
            abandoned: is called once when the parent is gone.
        """
        threading.Thread(target=self._beat, args=(parent, abandoned), daemon=True).start()

    def _beat(self, parent: int, abandoned: Callable[[], None]) -> None:
        told, last = False, 0.0
        while True:
            if not told and os.getppid() != parent:
                told = True
                abandoned()
            if time.monotonic() - last > BEAT:
                last = time.monotonic()
                if self.path.with_name(f"{self.number + 1}.json").exists():
                    os._exit(LOST)
                with suppress(OSError):  # A shared disk may be away for a moment.
                    os.utime(self.path)
            time.sleep(0.5)


def newest_claim(folder: Path) -> Claim | None:
    """The claim that counts; ``None`` if the cell was never claimed."""
    numbers = [int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()]
    if not numbers:
        return None
    path = folder / f"{max(numbers)}.json"
    try:
        holder = read_json(path.read_text())
    except (OSError, ValueError):
        holder = None
    return Claim(path, holder if isinstance(holder, dict) else {})


class ClaimWatch:
    """Finds out which cells may be claimed, by watching their claims for a while."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, float]] = {}

    def free_number(self, claim: Claim | None) -> int | None:
        """The number of the next claim of a cell; ``None`` if somebody works on it.

        Args:
            claim: the newest one of the cell.
        """
        if claim is None:
            return 1
        if claim.released or claim.process_is_gone or self._is_silent(claim.path):
            return claim.number + 1
        return None

    def _is_silent(self, path: Path) -> bool:
        """Whether a file has not been touched for long, by the clock of this process alone."""
        now = time.monotonic()
        try:
            touched = path.stat().st_mtime_ns
        except OSError:
            return False
        before, since = self._seen.get(path, (None, now))
        if before != touched:
            since = now
        self._seen[path] = (touched, since)
        return now - since > STALE


def this_host() -> str:
    """This machine since it was started: where a number means one process."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # Elsewhere than on Linux.
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _start_of(process: object) -> str | None:
    """When a process was started, as far as the system tells; ``None`` if it is gone.

    Numbers are used again, so a number alone does not say that a process still exists.
    """
    if Path("/proc/self/stat").exists():
        try:
            state, *others = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if state in ("Z", "X") else others[18]  # A zombie has ended.
    try:
        os.kill(int(str(process)), 0)
    except (ProcessLookupError, ValueError):
        return None
    except PermissionError:
        pass
    return ""
