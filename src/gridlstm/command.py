"""A command of the program: its options and what runs it. No PyTorch here."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tyro.conf import Positional, arg

__all__ = ["Command", "DataFolder", "OptionalRun", "RunPath", "RunPaths"]

RunPath = Annotated[Path, Positional, arg(metavar="RUN")]
OptionalRun = Annotated[Path | None, Positional, arg(metavar="RUN")]
RunPaths = Annotated[tuple[Path, ...], Positional, arg(metavar="RUN")]
DataFolder = Annotated[Path | None, arg(metavar="PATH")]


class Command(NamedTuple):
    """A row of the table of commands.

    Attributes:
        options: a dataclass. Its docstring is the help of the command, those of its fields the help of
            its options.
        run: the function that takes the options, as ``"package.module:function"``. It is imported
            only when the command is run.
    """

    options: type[Any]
    run: str
