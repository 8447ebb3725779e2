"""The user's cache: what the package has made or fetched, and can make or fetch again."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Where it is: ``GRIDLSTM_CACHE``, or ``gridlstm`` among the user's other caches.

    Raises:
        OSError: if the user has no home directory.
    """
    given = os.environ.get("GRIDLSTM_CACHE")
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gridlstm"
    except RuntimeError as error:
        raise OSError("no home directory: set GRIDLSTM_CACHE to a directory for the cache") from error
