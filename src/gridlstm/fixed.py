"""Arguments of a module that cannot change once it is made."""

from typing import Any, ClassVar

from torch import nn

__all__ = ["FixedArguments"]


class FixedArguments(nn.Module):
    """A module that refuses to set again what its parameters were made from.

    To set such an attribute would change nothing, or only some of what depends on it.

    Raises:
        AttributeError: if an attribute of ``fixed`` is set a second time.
    """

    fixed: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.fixed and name in self.__dict__:
            kind = type(self).__name__
            raise AttributeError(
                f"{name}: fixed when the {kind} was made, got {value!r}; make a new {kind} with it"
            )
        super().__setattr__(name, value)
