"""The user's cache: what the package has made or fetched, and can make or fetch again."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Where it is: ``GRIDLSTM_CACHE``, or ``gridlstm`` among the user's other caches."""
    given = os.environ.get("GRIDLSTM_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gridlstm"
