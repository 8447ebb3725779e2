"""Locates files of data sets: in the user's folder, in the cache, or at their public address.

Every file has been verified by size and checksum. Files are written to the cache atomically, so
processes that do so at the same time only repeat each other's work.
"""

import hashlib
import logging
import lzma
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from zipfile import BadZipFile

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from gridlstm.cache import cache_folder, private_folder
from gridlstm.data.download import Download
from gridlstm.data.packing import BLOCK_SIZE, MEMORY_LIMIT, PACKINGS, Packing, Readable, unpack
from gridlstm.files import atomic_write, write_text

__all__ = [
    "DataError",
    "Packing",
    "Source",
    "as_data_error",
    "check_size",
    "embedded",
    "find",
    "open_file",
]

# Errors of reading, writing, the network and unpacking. Damaged archives also raise those of the last
# line.
_READ_ERRORS = (
    *(OSError, EOFError, MemoryError, HTTPException, lzma.LZMAError, zlib.error, BadZipFile),
    *(RuntimeError, ValueError, OverflowError, struct.error),
)
_log = logging.getLogger("gridlstm")


class DataError(ValueError):
    """Data is missing, damaged or not as expected."""


@dataclass(frozen=True)
class Source:
    """A file of a data set."""

    name: str
    """The name of the data set and of the plain file, such as ``enwik8/enwik8``."""
    size: int
    """Bytes of the plain file."""
    sha256: str
    """Checksum of the plain file."""
    address: str
    """The address to download it from."""
    packing: Packing = ""
    """How it is packed there. The member of a zip archive has the name of the plain file."""

    @property
    def file(self) -> str:
        """The name of the plain file without that of the data set."""
        return self.name.rpartition("/")[2]


def find(source: Source, folder: Path | None = None) -> Path:
    """The path of the plain file, after verifying it.

    Looks in the user's folder, for a plain or packed file, directly or in a subfolder named like the
    data set; then in the cache; then downloads the file into the cache.

    Args:
        source: the file.
        folder: the user's folder. Default: the environment variable ``GRIDLSTM_DATA``.

    Raises:
        DataError: if the folder is missing, the file is damaged or cannot be read, it is nowhere and
            cannot be downloaded, or the cache cannot be written.
    """
    chosen = folder or os.environ.get("GRIDLSTM_DATA")
    base = Path(chosen).expanduser() if chosen else None
    with as_data_error(f"{source.name}: cannot be read"):
        return _find_local(source, base) or _fetch(source, base)


def embedded(name: str, sha256: str) -> bytes:
    """The content of a small file that is part of the package.

    Raises:
        DataError: if the package is damaged.
    """
    path = Path(__file__).with_name("embedded") / f"{name}.xz"
    with as_data_error(f"{path}: cannot be read"):
        content = lzma.decompress(path.read_bytes(), memlimit=MEMORY_LIMIT)
    _check_checksum(str(path), sha256, hashlib.sha256(content).hexdigest())
    return content


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Opens a regular file for reading. Opening a pipe or device could block for ever.

    Raises:
        DataError: if it is missing, not a file, or cannot be read.
    """
    with as_data_error(f"{path}: cannot be read"):
        if not path.is_file():
            if not path.exists():
                raise DataError(f"{path}: file not found")
            kind = "a folder" if path.is_dir() else "a pipe or device"
            raise DataError(f"{path}: expected a file, got {kind}")
        with path.open("rb") as file:
            yield file


@contextmanager
def as_data_error(message: str) -> Iterator[None]:
    """Within the context, errors of reading, writing and unpacking become a :class:`DataError`.

    >>> with as_data_error("text.txt: cannot be read"):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    gridlstm.data.locate.DataError: text.txt: cannot be read (Permission denied)
    """
    try:
        yield
    except DataError:
        raise
    except _READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        line = " ".join(str(reason).split()) or type(error).__name__
        raise DataError(f"{message} ({line})") from error


def _find_local(source: Source, base: Path | None) -> Path | None:
    if base is not None and not base.is_dir():
        raise DataError(f"data: expected a folder, got {base}")
    paths = [] if base is None else [base / source.name, base / source.file]
    for path in paths:
        if path.is_file():
            _verify(source, path)
            return path
    target = _cache_path(source)
    if target.is_file():
        with suppress(DataError):  # Damaged: it is replaced.
            _verify(source, target)
            return target
    for path in paths:
        for packing in PACKINGS:
            packed_path = path.with_name(path.name + packing)
            if packed_path.is_file():
                with open_file(packed_path) as packed:
                    return _store(source, packed, packing, str(packed_path), target)
    return None


def _cache_path(source: Source) -> Path:
    return cache_folder() / "data" / source.name


def _fetch(source: Source, base: Path | None) -> Path:
    """Downloads a file into the cache, through an unnamed file: nothing is left if it fails."""
    target = _cache_path(source)
    with as_data_error(f"{target}: cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=target.parent) as packed:
            _download(source, packed, "" if base is None else f" in {base}")
            packed.seek(0)
            return _store(source, packed, source.packing, source.address, target)


def _download(source: Source, output: IO[bytes], where: str) -> None:
    message = (
        f"{source.name}: not found{where}, and not downloaded; put {source.file}{source.packing} from "
        f"{source.address} into a folder named by --data or GRIDLSTM_DATA"
    )
    limit = source.size + source.size // 100 + 1000  # Packing does not make a file much larger.
    _log.info("downloading %s", source.address)
    with as_data_error(message):
        response = Download(source.address, limit)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with response, Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task, got = bar.add_task(source.name, total=response.length), 0
        for block in _blocks(response, message):
            got += output.write(block)
            bar.update(task, completed=got)


def _store(source: Source, packed: IO[bytes], packing: Packing, origin: str, target: Path) -> Path:
    """Unpacks and verifies a file, and writes it to the cache atomically."""
    damaged = f"{origin}: truncated or damaged"
    with as_data_error(damaged):
        plain = unpack(packed, packing, source.file)
    with as_data_error(f"{target}: cannot be written"), atomic_write(target) as temporary:
        size, digest = 0, hashlib.sha256()
        with temporary.open("wb") as file:
            for block in _blocks(plain, damaged):
                size += file.write(block)
                digest.update(block)
                if size > source.size:  # It may unpack to any size.
                    raise DataError(f"{origin}: changed: expected {source.size} bytes, got more")
        check_size(origin, source.size, size)
        _check_checksum(origin, source.sha256, digest.hexdigest())
    _remember(_checksum_record(target), source.sha256)
    return target


def _blocks(stream: Readable, message: str) -> Iterator[bytes]:
    """The content of a stream. Errors of reading, but not of using a block, get the message."""
    with as_data_error(message):
        while block := stream.read(BLOCK_SIZE):
            yield block


def _verify(source: Source, path: Path) -> None:
    """Checks a plain file: its size always, its checksum unless the file has been verified before.

    Raises:
        DataError: if it is another file or cannot be read.
    """
    with open_file(path) as file:
        check_size(str(path), source.size, path.stat().st_size)
        record = _checksum_record(path)
        with suppress(OSError):
            if record is not None and record.read_bytes() == source.sha256.encode():
                return
        digest = hashlib.sha256()
        while block := file.read(BLOCK_SIZE):
            digest.update(block)
    _check_checksum(str(path), source.sha256, digest.hexdigest())
    _remember(record, source.sha256)


def _checksum_record(path: Path) -> Path | None:
    """The cache file of a verified checksum. Its name depends on the file's path, size and time."""
    status = path.stat()
    key = b"\0".join([os.fsencode(path.resolve()), b"%d %d" % (status.st_size, status.st_mtime_ns)])
    try:
        return private_folder("sums") / hashlib.sha256(key).hexdigest()
    except OSError:
        return None


def _remember(record: Path | None, sha256: str) -> None:
    with suppress(OSError):  # Then it is computed again.
        if record is not None:
            write_text(record, sha256)


def check_size(origin: str, expected: int, got: int) -> None:
    """Checks the size of a file.

    Raises:
        DataError: if it is smaller or larger than expected.
    """
    if got != expected:
        kind = "truncated" if got < expected else "changed"
        raise DataError(f"{origin}: {kind}: expected {expected} bytes, got {got}")


def _check_checksum(origin: str, expected: str, got: str) -> None:
    if got != expected:
        raise DataError(f"{origin}: changed: expected sha256 {expected}, got {got}")
