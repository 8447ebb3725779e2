"""The user's cache: what the package has made or fetched, and can make or fetch again."""

import os
import stat
from pathlib import Path

__all__ = ["cache_folder", "private_folder"]


def cache_folder() -> Path:
    """Where it is: ``GRIDLSTM_CACHE``, or ``gridlstm`` among the user's other caches.

    Raises:
        OSError: if ``GRIDLSTM_CACHE`` is not an absolute path, or is not set and the user has no home
            directory. A relative path would be another folder wherever the process is started.
    """
    given = os.environ.get("GRIDLSTM_CACHE")
    if given:
        if not Path(given).is_absolute():
            raise OSError(f"GRIDLSTM_CACHE: expected an absolute path, got {given}")
        return Path(given)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            caches = Path()
        if not caches.is_absolute():
            raise OSError("no home directory; set GRIDLSTM_CACHE to a folder for the cache")
    return caches / "gridlstm"


def private_folder(name: str) -> Path:
    """A folder of the cache that only the user can have put anything into, made if it is missing.

    It is for what is trusted when it is found again, such as code.

    Raises:
        OSError: if there is no cache or it cannot be written, or if the folder is a symbolic link,
            belongs to another user or is open to others.
    """
    if not hasattr(os, "getuid"):
        raise OSError("files have no owners on this system")
    folder = cache_folder() / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{folder}: expected a folder, got a symbolic link")
    if found.st_uid != os.getuid():
        raise OSError(f"{folder}: expected a folder of user {os.getuid()}, got one of {found.st_uid}")
    if found.st_mode & 0o077:
        raise OSError(f"{folder}: expected mode 700, got {found.st_mode & 0o777:o}, open to others")
    return folder
