"""A lock on a directory. The system releases it when the process ends, in whatever way."""

import errno
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: without a lock.
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK_FILE", "LockedError", "is_abandoned", "locked"]

LOCK_FILE = ".lock"
"""The file that is locked. It is never removed: otherwise two processes could lock two files."""
_log = logging.getLogger("gridlstm")


class LockedError(RuntimeError):
    """Another process holds the lock; the message says which one."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a directory within the context.

    Does nothing on file systems without locks, such as some network file systems.

    Raises:
        LockedError: if another process holds the lock.
        OSError: if the lock file cannot be written.
    """
    handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(folder, handle)
        yield
    finally:
        os.close(handle)


def is_abandoned(folder: Path) -> bool:
    """Whether the process that last held the lock is gone. Does not touch the lock.

    A process on another machine, or one that cannot be asked, counts as alive.
    """
    try:
        holder = (folder / LOCK_FILE).read_text().split()
        _, process, _, host = holder
        if fcntl is None or host != socket.gethostname():
            return False
        os.kill(int(process), 0)  # No signal: it only looks for the process.
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return False


def _lock(folder: Path, handle: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            _log.info("%s: not locked (%s)", folder, error)
            return
        holder = os.read(handle, 200).decode(errors="replace").split("\n")[0]
        message = f"{folder}: in use by {holder or 'another process'}"
        raise LockedError(f"{message}; stop it first or pass another --out") from None
    with suppress(OSError):  # The holder's name is only a hint for error messages.
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
