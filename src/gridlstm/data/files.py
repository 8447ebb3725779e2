"""Files of data sets: found in the user's folder, in the cache, or fetched from their public address.

Whatever is handed out is known to be whole: of the right size and checksum. A file is unpacked beside
its place in the cache and renamed, so what has its name is never half-written, and processes that do
the same at once only repeat each other's work.
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
from gridlstm.data.packing import BLOCK, MEMORY, PACKED, Packing, Readable, unpack
from gridlstm.files import replacing, write_text

__all__ = ["DataError", "Packing", "Source", "check_size", "embedded", "explained", "find", "open_file"]

# What reading and writing, the network and the three ways of packing can raise; damaged archives also
# raise those of the last line.
_BROKEN = (
    *(OSError, EOFError, MemoryError, HTTPException, lzma.LZMAError, zlib.error, BadZipFile),
    *(RuntimeError, ValueError, OverflowError, struct.error),
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
    with explained(f"{source.name}: cannot be read"):
        return _found(source, base) or _fetch(source, base)


def embedded(name: str, sha256: str) -> bytes:
    """A small file that is part of the package, unpacked.

    Raises:
        DataError: if the package is damaged.
    """
    path = Path(__file__).with_name("embedded") / f"{name}.xz"
    with explained(f"{path}: cannot be read"):
        content = lzma.decompress(path.read_bytes(), memlimit=MEMORY)
    _check_sum(str(path), sha256, hashlib.sha256(content).hexdigest())
    return content


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """A file, to be read within the context. To open anything else that has a name may take for ever.

    Raises:
        DataError: if it is missing, not a file, or cannot be read.
    """
    with explained(f"{path}: cannot be read"):
        if not path.is_file():
            if not path.exists():
                raise DataError(f"{path}: file not found")
            kind = "a folder" if path.is_dir() else "a pipe or device"
            raise DataError(f"{path}: expected a file, got {kind}")
        with path.open("rb") as file:
            yield file


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
        line = " ".join(str(reason).split()) or type(error).__name__
        raise DataError(f"{failed} ({line})") from error


def _found(source: Source, base: Path | None) -> Path | None:
    if base is not None and not base.is_dir():
        raise DataError(f"data: expected a folder, got {base}")
    places = [] if base is None else [base / source.name, base / source.file]
    for path in places:
        if path.is_file():
            _verify(source, path)
            return path
    target = _target(source)
    if target.is_file():
        with suppress(DataError):  # Damaged: it is made anew.
            _verify(source, target)
            return target
    for place in places:
        for packing in PACKED:
            path = place.with_name(place.name + packing)
            if path.is_file():
                with open_file(path) as packed:
                    return _store(source, packed, packing, str(path), target)
    return None


def _target(source: Source) -> Path:
    return cache_folder() / "data" / source.name


def _fetch(source: Source, base: Path | None) -> Path:
    """Downloads a file into the cache, through one without a name: nothing is left of a part."""
    target = _target(source)
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
    most = source.size + source.size // 100 + 1000  # Packing does not make a file much larger.
    _log.info("downloading %s", source.address)
    with explained(failed):
        response = Download(source.address, most)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with response, Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task, got = bar.add_task(source.name, total=response.length), 0
        for block in _blocks(response, failed):
            got += into.write(block)
            bar.update(task, completed=got)


def _store(source: Source, packed: IO[bytes], packing: Packing, origin: str, target: Path) -> Path:
    """Unpacks and verifies a file beside its place, and moves it there when it is whole."""
    damaged = f"{origin}: truncated or damaged"
    with explained(damaged):
        plain = unpack(packed, packing, source.file)
    with explained(f"{target}: cannot be written"), replacing(target) as beside:
        size, digest = 0, hashlib.sha256()
        with beside.open("wb") as file:
            for block in _blocks(plain, damaged):
                size += file.write(block)
                digest.update(block)
                if size > source.size:  # However much more it would unpack to.
                    raise DataError(f"{origin}: changed: expected {source.size} bytes, got more")
        check_size(origin, source.size, size)
        _check_sum(origin, source.sha256, digest.hexdigest())
    _remember(_stamp(target), source.sha256)
    return target


def _blocks(stream: Readable, failed: str) -> Iterator[bytes]:
    """What a stream holds. Only reading is explained here, not what is done with a block."""
    with explained(failed):
        while block := stream.read(BLOCK):
            yield block


def _verify(source: Source, path: Path) -> None:
    """Checks a plain file: its size always, its checksum if it was not this file's the last time.

    Raises:
        DataError: if it is another file or cannot be read.
    """
    with open_file(path) as file:
        check_size(str(path), source.size, path.stat().st_size)
        stamp = _stamp(path)
        with suppress(OSError):
            if stamp is not None and stamp.read_bytes() == source.sha256.encode():
                return
        digest = hashlib.sha256()
        while block := file.read(BLOCK):
            digest.update(block)
    _check_sum(str(path), source.sha256, digest.hexdigest())
    _remember(stamp, source.sha256)


def _stamp(path: Path) -> Path | None:
    """Where the checksum of a file is remembered for as long as the file is not written to."""
    found = path.stat()
    key = b"\0".join([os.fsencode(path.resolve()), b"%d %d" % (found.st_size, found.st_mtime_ns)])
    try:
        return private_folder("sums") / hashlib.sha256(key).hexdigest()
    except OSError:
        return None


def _remember(stamp: Path | None, sha256: str) -> None:
    with suppress(OSError):  # Then it is computed again.
        if stamp is not None:
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
