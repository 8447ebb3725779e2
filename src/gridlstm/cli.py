"""The command ``gridlstm``. Everything but the standard library is imported by what needs it.

So the help comes at once, and Ctrl-C is heard from the very beginning.
"""

import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from types import FrameType

__all__ = ["main"]

NEEDED = ("tyro", "rich", "matplotlib", "safetensors", "PIL")
"""Packages that the layer does without: the extra ``experiments``."""


def main() -> None:
    """Runs the command that the arguments name.

    It is the whole program: it leaves SIGINT to the system, which ends the process at once.

    Raises:
        SystemExit: 0 after help, 2 if what was asked for or given is at fault, 1 if it failed while
            running, 130 if it was interrupted.
    """
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, _leave)
    try:
        _run(sys.argv[1:], heard)
    finally:
        if heard:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(arguments: list[str], heard: bool) -> None:
    from gridlstm.commands.door import door

    if any(find_spec(name) is None for name in NEEDED):
        sys.stderr.write(
            "gridlstm: the command needs packages that are not installed: "
            "pip install 'gridlstm[experiments]'\n"
        )
        raise SystemExit(2)

    with door("gridlstm"):
        if arguments[:1] == ["--version"]:
            sys.stdout.write(f"gridlstm {import_module('gridlstm').__version__}\n")
            return
        from gridlstm.commands.parser import parse

        name, place, options = parse(arguments)
    with door(f"gridlstm {name}"):
        module, _, function = place.partition(":")
        run = getattr(import_module(module), function)
        if heard:  # From here on there may be something to clean up.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run(options)


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process while there are only imports, in which exceptions may be swallowed."""
    os.write(2, b"gridlstm: interrupted\n")
    os._exit(130)
