"""Packages that the layer does not need: those of the extra ``experiments``."""

from importlib.util import find_spec

__all__ = ["check_installed"]

NEEDED = ("tyro", "rich", "matplotlib", "safetensors", "PIL")


def check_installed(what: str) -> None:
    """Checks that the packages of the extra ``experiments`` are installed, without importing them.

    Args:
        what: what needs them, as the beginning of the message.

    Raises:
        ImportError: if one is missing.
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise ImportError(
            f"{what} needs packages that are not installed: pip install 'gridlstm[experiments]'"
        )
