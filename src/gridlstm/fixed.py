"""Arguments of a module that cannot change after construction."""

from typing import Any, ClassVar

from torch import nn

__all__ = ["FixedArguments"]


class FixedArguments(nn.Module):
    """A module whose attributes listed in ``fixed`` can be set only once.

    Parameters were created from them, so a change would have no effect, or only part of it.

    Raises:
        AttributeError: if an attribute of ``fixed`` is set again.
    """

    fixed: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.fixed and name in self.__dict__:
            kind = type(self).__name__
            raise AttributeError(f"{name}: cannot be changed to {value!r}; create a new {kind} instead")
        super().__setattr__(name, value)
