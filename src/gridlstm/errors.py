"""Errors that are not bugs of the program."""

import re

__all__ = ["ExpectedError", "one_line"]


class ExpectedError(RuntimeError):
    """An error that a user can cause or run into. Commands print it as one line, without a traceback.

    Args:
        message: what failed, and why.
        code: the exit code: 2 if an argument or a file is wrong, 1 if the command failed while running.
            Default: that of the class.
    """

    code = 2

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = type(self).code if code is None else code


def one_line(text: object) -> str:
    r"""Formats a text as one line that is safe for a terminal: control characters are escaped.

    >>> one_line("a\n b\x1b[31m")
    'a b\\x1b[31m'
    """
    line = re.sub(r"\s*\n\s*", " ", str(text).strip())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
