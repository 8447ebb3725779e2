"""The program ``gridlstm``.

At the top it imports only the standard library, so that help is fast and Ctrl-C works from the start.
"""

import os
import signal
import sys
from importlib import import_module
from types import FrameType

from gridlstm.extras import check_installed

__all__ = ["main"]


def main() -> None:
    """Runs the command that the arguments name.

    Afterwards SIGINT has the default action of the system, which ends the process at once.

    Raises:
        SystemExit: 0 after help, 2 if an argument or a file is wrong, 1 if the command failed while
            running, 130 if it was interrupted.
    """
    # Under nohup, for instance, SIGINT is ignored, and stays so.
    handles_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles_interrupts:
        signal.signal(signal.SIGINT, _exit_at_once)
    try:
        _run(sys.argv[1:], handles_interrupts)
    finally:
        if handles_interrupts:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(arguments: list[str], handles_interrupts: bool) -> None:
    from gridlstm.commands.exit_codes import exit_on_error

    try:
        check_installed("the command")
    except ImportError as error:
        sys.stderr.write(f"gridlstm: {error}\n")
        raise SystemExit(2) from None

    with exit_on_error("gridlstm"):
        if arguments[:1] == ["--version"]:
            sys.stdout.write(f"gridlstm {import_module('gridlstm').__version__}\n")
            return
        from gridlstm.commands.parser import parse

        name, place, options = parse(arguments)
    with exit_on_error(f"gridlstm {name}"):
        module, _, function = place.partition(":")
        run = getattr(import_module(module), function)
        if handles_interrupts:  # From here on there may be something to clean up.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run(options)


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    """Ends the process during imports, which might catch an exception."""
    os.write(2, b"gridlstm: interrupted\n")
    os._exit(130)
