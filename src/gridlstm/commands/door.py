"""The one place where a failure becomes a line and an exit code.

2: what was asked for or given is at fault. 1: it failed while running. 130: interrupted. What is
expected to happen is told in one line on standard error; anything else is a fault of the program, and
shown with its traceback. ``GRIDLSTM_DEBUG=1`` shows all tracebacks.
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

__all__ = ["door"]

OUT_OF_MEMORY = re.compile(
    r"out of memory|not enough memory|can't allocate memory|cannot allocate memory"
    r"|size calculation overflowed|multiplication overflow",
    re.IGNORECASE,
)
"""What PyTorch says, in a RuntimeError."""
NAMED = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
"""A path was given that is not what it should be."""


@contextmanager
def door(name: str) -> Iterator[None]:
    """Within it, what a command raises ends it with one line and an exit code.

    Args:
        name: what the line begins with, as ``gridlstm eval``.

    Raises:
        SystemExit: if anything is raised.
    """
    _prepare_streams()
    told = logging.StreamHandler()
    told.format = lambda record: one_line(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("gridlstm").addHandler(told)
    try:
        yield
        sys.stdout.flush()  # What cannot be written is noticed here, not when Python ends.
    except BrokenPipeError:
        discard_stdout()  # Its reader has seen enough.
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
        message = message or "this is a fault of gridlstm; please report it with the lines above"
        sys.stderr.write(f"{name}: {one_line(message)}\n")
        raise SystemExit(code) from None
    finally:
        logging.getLogger("gridlstm").removeHandler(told)


def _explain(error: BaseException) -> tuple[int, str | None]:
    """The exit code and what to say; nothing to say if it was not expected."""
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Once is enough.
        return 130, "interrupted"
    if isinstance(error, ExpectedError):
        cause = error.__cause__
        given = error.code == 2 and isinstance(cause, OSError)
        return _explain(cause)[0] if given and cause else error.code, str(error)
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error))
    ):
        return 1, f"not enough memory ({str(error).splitlines()[0]})" if str(
            error
        ) else "not enough memory"
    if isinstance(error, RecursionError):
        return 2, "a file or an argument is nested too deeply"
    if isinstance(error, OSError):
        return 2 if isinstance(error, NAMED) else 1, str(error)
    if isinstance(error, ValueError | OverflowError):
        return 2, str(error)
    return 1, None


def _escape_line(line: str) -> str:
    """A line of a traceback, with its indentation."""
    indent = len(line) - len(line.lstrip(" "))
    return f"{' ' * indent}{one_line(line)}\n"


def _prepare_streams() -> None:
    """Standard streams that are there, and take any character: where it has none, escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # Closed by whoever started this.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush() -> None:
    """What was written comes before the line about what went wrong, if it can be written at all."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()
