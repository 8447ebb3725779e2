"""Atomic writes, checksums and JSON.

Everything the package writes goes through :func:`atomic_write`: the new content is written to a
temporary file in the same folder, forced to disk and renamed. A process that is killed leaves the old
file, and perhaps the temporary one, ``.NAME.tmp-*``.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = [
    "atomic_write",
    "checksum",
    "make_folder",
    "read_json",
    "write_bytes",
    "write_json",
    "write_text",
]

_HOST = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:32]


@contextmanager
def atomic_write(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yields a temporary path, which is renamed to ``path`` at the end of the context.

    Files get the mode of any new file. If anything fails, the temporary path is removed and ``path`` is
    unchanged.

    Args:
        path: the file or folder to write. Missing parents are created.
        folder: yield an empty folder instead of an empty file. It cannot replace an existing folder.

    Raises:
        OSError: if it cannot be written.
    """
    make_folder(path.parent)
    # The host is part of it, because several machines may share the disk.
    unique = f"{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name[:40]}.tmp-{unique}")  # Names are limited to 255 bytes.
    try:
        if folder:
            temporary.mkdir()
        else:
            temporary.touch(exist_ok=False)
        mode = temporary.stat().st_mode & 0o666
        yield temporary
        for file in temporary.iterdir() if folder else [temporary]:
            file.chmod(mode)  # Some libraries write files that only the owner can read.
            _fsync(file)
        if folder:
            _fsync(temporary)
        temporary.replace(path)
        _fsync(path.parent)
    except BaseException:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically. Raises what :func:`atomic_write` does."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes a file atomically. Raises what :func:`atomic_write` does."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: object) -> None:
    """Writes a file atomically. Raises what :func:`atomic_write` does."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def read_json(text: str) -> Any:
    """Parses JSON.

    Raises:
        ValueError: if it is not JSON, or nested too deeply for Python's parser.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def make_folder(path: Path) -> None:
    """Creates a folder and its missing parents, and forces them to disk."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _fsync(path.parent)


def _fsync(path: Path) -> None:
    """Forces a file or folder to disk, so that a power cut after the rename loses nothing."""
    if os.name == "nt" and path.is_dir():  # Windows does not open folders.
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
