"""Turns exceptions into one line on standard error and an exit code.

2: an argument or a file is wrong. 1: the command failed while running. 130: it was interrupted. Any
other exception is a bug of the program and printed with its traceback. ``GRIDLSTM_DEBUG=1`` prints all
tracebacks.
"""

import io
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from gridlstm.errors import ExpectedError, one_line
from gridlstm.pipes import discard_stdout

__all__ = ["exit_on_error"]

OUT_OF_MEMORY = re.compile(
    r"out of memory|not enough memory|can't allocate memory|cannot allocate memory"
    r"|size calculation overflowed|multiplication overflow",
    re.IGNORECASE,
)
"""Messages of PyTorch, in a RuntimeError."""
PATH_ERRORS = (
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
"""A path in the arguments is wrong."""


@contextmanager
def exit_on_error(name: str) -> Iterator[None]:
    """A context that turns exceptions into one line and an exit code.

    Args:
        name: the beginning of the line, as ``gridlstm eval``.

    Raises:
        SystemExit: if anything is raised.
    """
    _prepare_streams()
    handler = logging.StreamHandler()
    handler.format = lambda record: one_line(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("gridlstm").addHandler(handler)
    try:
        yield
        sys.stdout.flush()  # An error of writing is raised here, not when Python exits.
    except BrokenPipeError:
        discard_stdout()  # The reader has closed the pipe, as ``head`` does.
        raise SystemExit(0) from None
    except SystemExit:
        _flush()
        raise
    except BaseException as error:
        _flush()
        code, message = _explain(error)
        if message is None or os.environ.get("GRIDLSTM_DEBUG") == "1":
            sys.stderr.write(
                "".join(map(_escape_line, traceback.format_exc().splitlines(keepends=True)))
            )
        message = message or "this is a bug in gridlstm; please report it with the lines above"
        sys.stderr.write(f"{name}: {one_line(message)}\n")
        raise SystemExit(code) from None
    finally:
        logging.getLogger("gridlstm").removeHandler(handler)


def _explain(error: BaseException) -> tuple[int, str | None]:
    """The exit code and the message; no message if the error was not expected."""
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # A second Ctrl-C must not interrupt the exit.
        return 130, "interrupted"
    if isinstance(error, ExpectedError):
        cause = error.__cause__
        # A file that is wrong, or a disk that is full?
        if error.code == 2 and isinstance(cause, OSError):
            return _explain(cause)[0], str(error)
        return error.code, str(error)
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error))
    ):
        return 1, f"not enough memory ({str(error).splitlines()[0]})" if str(
            error
        ) else "not enough memory"
    if isinstance(error, RecursionError):
        return 2, "a file or an argument is nested too deeply"
    if isinstance(error, OSError):
        return 2 if isinstance(error, PATH_ERRORS) else 1, str(error)
    if isinstance(error, ValueError | OverflowError):
        return 2, str(error)
    return 1, None


def _escape_line(line: str) -> str:
    """A line of a traceback with control characters escaped, keeping its indentation."""
    indent = len(line) - len(line.lstrip(" "))
    return f"{' ' * indent}{one_line(line)}\n"


def _prepare_streams() -> None:
    """Makes sure that the standard streams exist and accept any character, escaped if necessary."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # It was closed before the program started.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush() -> None:
    """Flushes standard output, so that it comes before the error message."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()
