"""A command of the program: its options and what runs it. No PyTorch here."""

from typing import Any, NamedTuple

__all__ = ["Command"]


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
