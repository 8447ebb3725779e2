"""Standard output that may go away: a pipe whose reader has gone, a full device, a closed terminal."""

import os
import sys
from contextlib import suppress
from typing import IO, Any, cast

__all__ = ["lasting_output", "stop_writing"]


def stop_writing() -> None:
    """Lets what is still to be written vanish; Python would complain when it flushes the rest."""
    with suppress(OSError, ValueError):  # Not every output is a file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def lasting_output() -> IO[str]:
    """Standard output for work that goes on without it: what cannot be written is dropped."""
    return cast("IO[str]", _Output())


class _Output:
    def __init__(self) -> None:
        # As it is now: a progress bar puts itself in its place. None if closed before the start.
        self._stream = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            stop_writing()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            stop_writing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
