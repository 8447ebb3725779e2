"""What can go wrong without anything being wrong with the program."""

__all__ = ["ExpectedError"]


class ExpectedError(RuntimeError):
    """Something that cannot be done, and why. The command line shows it as one line.

    Attributes:
        code: what a command exits with: 2 if what was given is at fault, 1 if it failed while running.
    """

    code = 2
