"""Methods of the public modules that save, load and share them."""

from importlib import import_module
from os import PathLike
from typing import Any

from typing_extensions import Self

__all__ = ["Shareable"]


class Shareable:
    """A base of modules that can be saved to a folder or to the Hugging Face Hub.

    Unlike a class of ``huggingface_hub``, it needs that package only where the Hub is used, keeps the
    dtype of the parameters, and does not wrap the constructor.
    """

    @classmethod
    def from_pretrained(cls, name: str | PathLike[str], *, revision: str | None = None) -> Self:
        """Loads a module of this class, as :func:`gridlstm.hub.from_pretrained` does.

        Args:
            name: a folder, or else the name of a repository on the Hugging Face Hub, ``"user/name"``.
            revision: the branch, tag or commit of the repository. Default: its main branch.

        Raises:
            ImportError: if the packages of ``gridlstm[hub]`` are not installed.
            TypeError: if it is a module of another class.
            HubError: if the folder does not hold a module of this package.
            WeightsError: if the weights cannot be read, or are those of another module.
        """
        module = _hub().from_pretrained(name, revision=revision)
        if not isinstance(module, cls):
            raise TypeError(f"{name}: expected a {cls.__name__}, got a {type(module).__name__}")
        return module

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Writes this module to a folder, as :func:`gridlstm.hub.save_pretrained` does.

        Raises:
            ImportError: if the packages of ``gridlstm[hub]`` are not installed.
            TypeError: if the module was made with a function or a custom cell, or has parameters of
                different dtypes.
            WeightsError: if the weights cannot be written.
            OSError: if the folder cannot be written.
        """
        _hub().save_pretrained(self, folder)

    def push_to_hub(
        self, repository: str, *, private: bool | None = None, message: str | None = None
    ) -> None:
        """Uploads this module to the Hugging Face Hub, as :func:`gridlstm.hub.push_to_hub` does.

        Args:
            repository: ``"user/name"``. It is created if it is missing.
            private: whether a new repository is private. Default: the setting of the account.
            message: the message of the commit.

        Raises:
            ImportError: if the packages of ``gridlstm[hub]`` are not installed.
            TypeError: as :meth:`save_pretrained`.
        """
        named = {} if message is None else {"message": message}
        _hub().push_to_hub(self, repository, private=private, **named)


def _hub() -> Any:
    """The module ``gridlstm.hub``, which knows the classes that are made of this one."""
    return import_module("gridlstm.hub")
