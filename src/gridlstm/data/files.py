"""Files of data sets: found in the user's folder, in the cache, or fetched from their public address.

Whatever is handed out is known to be whole: of the right size and checksum. A file is unpacked beside
its place in the cache and renamed, so what has its name is never half-written, and processes that do
the same at once only repeat each other's work.
"""

import gzip
import hashlib
import logging
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Literal, Protocol
from urllib.request import Request, urlopen
from zipfile import BadZipFile, ZipFile

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from gridlstm.cache import cache_folder
from gridlstm.files import write_text

__all__ = ["DataError", "Packing", "Source", "check_size", "embedded", "explained", "find"]

Packing = Literal["", ".xz", ".gz", ".zip"]
"""How a file is packed, as its name ends; ``""`` for a plain one."""

BLOCK = 2**20
TIMEOUT = 30.0
"""Seconds without an answer after which a download is given up."""
_PACKED: tuple[Packing, ...] = (".xz", ".gz", ".zip")
# What reading and writing, the network and the three ways of packing can raise; damaged archives also
# raise the last two.
_BROKEN = (
    *(OSError, EOFError, HTTPException, lzma.LZMAError, zlib.error, BadZipFile),
    *(RuntimeError, ValueError),
)
_log = logging.getLogger("gridlstm")


class DataError(ValueError):
    """Data that is missing or not what it should be, and what to do about it."""


@dataclass(frozen=True)
class Source:
    """A file of a data set: what it is, and where it can be had."""

    name: str
    """The data set and the plain file, as ``enwik8/enwik8``."""
    size: int
    """Bytes of the plain file."""
    sha256: str
    """Checksum of the plain file."""
    address: str
    """Where it can be downloaded."""
    packing: Packing = ""
    """How it is packed there. In a zip archive it has the name of the plain file."""

    @property
    def file(self) -> str:
        """The plain file's own name."""
        return self.name.rpartition("/")[2]


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def find(source: Source, folder: Path | None = None) -> Path:
    """The plain file, known to be whole.

    It is looked for in the folder of the user, plain or packed, directly or below one of the data set's
    name; then in the cache; then it is downloaded into the cache.

    Args:
        source: which file.
        folder: of the user; the environment's ``GRIDLSTM_DATA`` if not given.

    Raises:
        DataError: if there is no such folder, the file in it is damaged or cannot be read, it is
            nowhere and cannot be downloaded, or the cache cannot be written.
    """
    named = folder or os.environ.get("GRIDLSTM_DATA")
    base = Path(named).expanduser() if named else None
    target = cache_folder() / "data" / source.name
    with explained(f"{base or target}: cannot be read"):
        return _found(source, base, target) or _fetch(source, base, target)


def embedded(name: str, sha256: str) -> bytes:
    """A small file that is part of the package, unpacked.

    Raises:
        DataError: if the package is damaged.
    """
    path = Path(__file__).with_name("embedded") / f"{name}.xz"
    with explained(f"{path}: cannot be read"):
        content = lzma.decompress(path.read_bytes())
    _check_sum(str(path), sha256, hashlib.sha256(content).hexdigest())
    return content


@contextmanager
def explained(failed: str) -> Iterator[None]:
    """Within it, reading and writing that fail raise a :class:`DataError`.

    >>> with explained("text.txt: cannot be read"):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    gridlstm.data.files.DataError: text.txt: cannot be read (Permission denied)
    """
    try:
        yield
    except DataError:
        raise
    except _BROKEN as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        raise DataError(f"{failed} ({reason or type(error).__name__})") from error


def _found(source: Source, base: Path | None, target: Path) -> Path | None:
    if base is not None and not base.is_dir():
        raise DataError(f"data: expected a folder, got {base}")
    places = [] if base is None else [base / source.name, base / source.file]
    for path in places:
        if path.is_file():
            _verify(source, path)
            return path
    if target.is_file():
        with suppress(DataError):  # Damaged: it is made anew.
            _verify(source, target)
            return target
    for place in places:
        for packing in _PACKED:
            path = place.with_name(place.name + packing)
            if path.is_file():
                with explained(f"{path}: cannot be read"), path.open("rb") as packed:
                    return _store(source, packed, packing, str(path), target)
    return None


def _fetch(source: Source, base: Path | None, target: Path) -> Path:
    """Downloads a file into the cache, through one without a name: nothing is left of a part."""
    with explained(f"{target}: cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=target.parent) as packed:
            _download(source, packed, "" if base is None else f" in {base}")
            packed.seek(0)
            return _store(source, packed, source.packing, source.address, target)


def _download(source: Source, into: IO[bytes], where: str) -> None:
    failed = (
        f"{source.name}: not found{where}, and not downloaded; put {source.file}{source.packing} from "
        f"{source.address} into a folder named by --data or GRIDLSTM_DATA"
    )
    request = Request(source.address, headers={"User-Agent": "gridlstm"})  # Some refuse Python's own.
    _log.info("downloading %s", source.address)
    with explained(failed):
        response = urlopen(request, timeout=TIMEOUT)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with response, Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        total = int(response.headers.get("Content-Length") or 0)
        task, got = bar.add_task(source.name, total=total or None), 0
        for block in _blocks(response, failed):
            got += into.write(block)
            bar.update(task, completed=got)
    if got < total:  # A connection that is closed early looks like the end.
        raise DataError(f"{failed} (truncated: expected {total} bytes, got {got})")


def _store(source: Source, packed: IO[bytes], packing: Packing, origin: str, target: Path) -> Path:
    """Unpacks and verifies a file beside its place, and moves it there when it is whole."""
    damaged = f"{origin}: truncated or damaged"
    with explained(damaged):
        plain = _open(packed, packing, source.file)
    with explained(f"{target}: cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=".") as work:
            beside = Path(work) / target.name
            size, digest = 0, hashlib.sha256()
            with beside.open("wb") as file:
                for block in _blocks(plain, damaged):
                    size += file.write(block)
                    digest.update(block)
                    if size > source.size:  # However much more it would unpack to.
                        raise DataError(f"{origin}: changed: expected {source.size} bytes, got more")
                file.flush()
                os.fsync(file.fileno())
            check_size(origin, source.size, size)
            _check_sum(origin, source.sha256, digest.hexdigest())
            beside.replace(target)
    _remember(_stamp(target), source.sha256)
    return target


def _open(packed: IO[bytes], packing: Packing, member: str) -> _Readable:
    if packing == ".xz":
        return lzma.LZMAFile(packed)
    if packing == ".gz":
        return gzip.GzipFile(fileobj=packed)
    if packing == ".zip":
        archive = ZipFile(packed)
        if member not in archive.namelist():
            raise BadZipFile(f"there is no {member} in it")
        return archive.open(member)
    return packed


def _blocks(stream: _Readable, failed: str) -> Iterator[bytes]:
    """What a stream holds. Only reading is explained here, not what is done with a block."""
    with explained(failed):
        while block := stream.read(BLOCK):
            yield block


def _verify(source: Source, path: Path) -> None:
    """Checks a plain file: its size always, its checksum if it was not this file's the last time.

    Raises:
        DataError: if it is another file or cannot be read.
    """
    unreadable = f"{path}: cannot be read"
    with explained(unreadable):
        check_size(str(path), source.size, path.stat().st_size)
        stamp = _stamp(path)
        with suppress(OSError):
            if stamp.read_bytes() == source.sha256.encode():
                return
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for block in _blocks(file, unreadable):
                digest.update(block)
    _check_sum(str(path), source.sha256, digest.hexdigest())
    _remember(stamp, source.sha256)


def _stamp(path: Path) -> Path:
    """Where the checksum of a file is remembered for as long as the file is not written to."""
    found = path.stat()
    key = b"\0".join([os.fsencode(path.resolve()), b"%d %d" % (found.st_size, found.st_mtime_ns)])
    return cache_folder() / "data" / "sums" / hashlib.sha256(key).hexdigest()


def _remember(stamp: Path, sha256: str) -> None:
    with suppress(OSError):  # Then it is computed again.
        write_text(stamp, sha256)


def check_size(origin: str, expected: int, got: int) -> None:
    """Checks how many bytes there are.

    Raises:
        DataError: if they are fewer or more than expected.
    """
    if got != expected:
        kind = "truncated" if got < expected else "changed"
        raise DataError(f"{origin}: {kind}: expected {expected} bytes, got {got}")


def _check_sum(origin: str, expected: str, got: str) -> None:
    if got != expected:
        raise DataError(f"{origin}: changed: expected sha256 {expected}, got {got}")
