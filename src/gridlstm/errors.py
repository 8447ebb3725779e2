"""What can go wrong without anything being wrong with the program."""

import re

__all__ = ["ExpectedError", "shown"]


class ExpectedError(RuntimeError):
    """Something that cannot be done, and why. The command line shows it as one line.

    Args:
        message: what, and why.
        code: what a command exits with: 2 if what was given is at fault, 1 if it failed while running.
            Default: that of the class.
    """

    code = 2

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = type(self).code if code is None else code


def shown(text: object) -> str:
    r"""A text as one line that is safe for a terminal: control characters are escaped.

    >>> shown("a\n b\x1b[31m")
    'a b\\x1b[31m'
    """
    line = re.sub(r"\s*\n\s*", " ", str(text).strip())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
