"""Standard output that may fail: a pipe without a reader, a full device, a closed terminal."""

import json
import os
import sys
from contextlib import suppress
from typing import IO, Any, cast

__all__ = ["best_effort_stdout", "discard_stdout", "print_json"]


def discard_stdout() -> None:
    """Discards all further output. Otherwise Python would report an error when it flushes at exit."""
    with suppress(OSError, ValueError):  # Not every output has a file descriptor.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def best_effort_stdout() -> IO[str]:
    """Standard output for work that must not stop if it fails: what cannot be written is dropped."""
    return cast("IO[str]", _BestEffortStdout())


def print_json(row: dict[str, Any], output: IO[str] | None = None) -> None:
    """Prints a line of JSON.

    Args:
        row: the content.
        output: where to print. Default: standard output.
    """
    output = output or sys.stdout
    output.write(json.dumps(row) + "\n")
    output.flush()


class _BestEffortStdout:
    def __init__(self) -> None:
        # A progress bar replaces sys.stdout later. It is None if it was closed before the start.
        self._stream = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            discard_stdout()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            discard_stdout()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
