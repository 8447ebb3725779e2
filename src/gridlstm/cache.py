"""The cache folder: compiled kernels and downloads, which can be made again."""

import os
import stat
from pathlib import Path

__all__ = ["cache_folder", "private_folder"]


def cache_folder() -> Path:
    """The cache folder: ``GRIDLSTM_CACHE``, or ``gridlstm`` in the user's cache directory.

    Raises:
        OSError: if ``GRIDLSTM_CACHE`` is not an absolute path, or is not set and the user has no home
            directory. A relative path would depend on the current directory.
    """
    chosen = os.environ.get("GRIDLSTM_CACHE")
    if chosen:
        if not Path(chosen).is_absolute():
            raise OSError(f"GRIDLSTM_CACHE: expected an absolute path, got {chosen}")
        return Path(chosen)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # By its specification a relative path is ignored.
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            caches = Path()
        if not caches.is_absolute():
            raise OSError("no home directory; set GRIDLSTM_CACHE to a folder for the cache")
    return caches / "gridlstm"


def private_folder(name: str) -> Path:
    """A folder in the cache to which only the user can write, created if missing.

    It is for content that is trusted later, such as code.

    Raises:
        OSError: if there is no cache folder or it cannot be written, or if the private folder is a
            symbolic link, belongs to another user or is accessible to others.
    """
    if not hasattr(os, "getuid"):
        raise OSError("files have no owners on this system")
    folder = cache_folder() / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{folder}: expected a folder, got a symbolic link")
    if status.st_uid != os.getuid():
        raise OSError(f"{folder}: expected a folder of user {os.getuid()}, got one of {status.st_uid}")
    if status.st_mode & 0o077:
        raise OSError(f"{folder}: expected mode 700, got {status.st_mode & 0o777:o}, open to others")
    return folder
