"""What can go wrong without anything being wrong with the program."""

__all__ = ["ExpectedError"]


class ExpectedError(RuntimeError):
    """Something that cannot be done, and why. The command line shows it as one line.

    Args:
        message: what, and why.
        code: what a command exits with: 2 if what was given is at fault, 1 if it failed while running.
            That of the class unless given.
    """

    code = 2

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = type(self).code if code is None else code
