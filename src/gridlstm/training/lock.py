"""A lock on a directory, which goes away with the process that holds it, however that ends."""

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

__all__ = ["LOCK", "LockedError", "locked"]

LOCK = ".lock"
"""The file that is locked. It stays: removing it would let two processes lock two files."""
_log = logging.getLogger("gridlstm")


class LockedError(RuntimeError):
    """Another process holds the lock; the message says which one."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within it, no other process holds the lock of a directory.

    Where the file system has no locks, as some network file systems, it does nothing.

    Raises:
        LockedError: if another process holds it.
        OSError: if nothing can be written there.
    """
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(folder, handle)
        yield
    finally:
        os.close(handle)


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
    with suppress(OSError):  # Who holds it helps whoever finds it locked, no more.
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
