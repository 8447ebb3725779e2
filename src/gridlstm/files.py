"""Files that take their place whole or not at all, and only once they are on the disk.

Everything the package writes goes through :func:`replacing`: the new content is written beside its
place under a name no other process uses, forced to the disk and renamed. A process that is killed
leaves what was there before, and perhaps a temporary file ``.NAME.tmp-*``.
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
    "checksum",
    "make_folder",
    "read_json",
    "replacing",
    "write_bytes",
    "write_json",
    "write_text",
]

_HOST = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:32]


@contextmanager
def replacing(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Gives a temporary path beside ``path``; what is written there takes its place at the end.

    The file, and each file of a folder, gets the mode that new files have. If anything fails, the
    temporary path is removed and ``path`` is as it was.

    Args:
        path: what to write or to replace. Missing parents are made.
        folder: give an empty folder instead of an empty file. It cannot replace a folder that exists.

    Raises:
        OSError: if it cannot be written.
    """
    make_folder(path.parent)
    unique = f"{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"  # Also among machines that share a disk.
    beside = path.with_name(f".{path.name[:40]}.tmp-{unique}")  # A name may have 255 bytes.
    try:
        if folder:
            beside.mkdir()
        else:
            beside.touch(exist_ok=False)
        usual = beside.stat().st_mode & 0o666
        yield beside
        for file in beside.iterdir() if folder else [beside]:
            file.chmod(usual)  # Some libraries write files that only their owner can read.
            _force(file)
        if folder:
            _force(beside)
        beside.replace(path)
        _force(path.parent)
    except BaseException:
        if folder:
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; raises what :func:`replacing` does."""
    with replacing(path) as beside:
        beside.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all; raises what :func:`replacing` does."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: object) -> None:
    """Writes a file whole or not at all; raises what :func:`replacing` does."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def read_json(text: str) -> Any:
    """What a JSON text holds.

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
    """Makes a folder and its missing parents, and forces them to the disk."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _force(path.parent)


def _force(path: Path) -> None:
    """To the disk, so that a power cut after the rename finds the content there."""
    if os.name == "nt" and path.is_dir():  # Windows does not open folders.
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
