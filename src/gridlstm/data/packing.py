"""Unpacks files in limited memory, because the header of a file cannot be trusted."""

import gzip
import lzma
from typing import IO, Literal, Protocol
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

__all__ = ["BLOCK_SIZE", "MEMORY_LIMIT", "PACKINGS", "Packing", "Readable", "unpack"]

Packing = Literal["", ".xz", ".gz", ".zip"]
"""The suffix of a packed file; ``""`` for a plain one."""
PACKINGS: tuple[Packing, ...] = (".xz", ".gz", ".zip")

BLOCK_SIZE = 2**20
"""Bytes to read at once."""
MEMORY_LIMIT = 256 * 2**20
"""Bytes for unpacking: enough for a dictionary of 128 MiB, twice that of ``xz -9``."""


class Readable(Protocol):
    """A stream that can be read once, from beginning to end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most ``size``; empty at the end."""


def unpack(packed: IO[bytes], packing: Packing, member: str) -> Readable:
    """The content of a packed file; for a zip archive, that of a member.

    Raises:
        zipfile.BadZipFile: if there is no such member, or its compression is neither of the usual two.
    """
    if packing == ".xz":
        return _XzStream(packed)
    if packing == ".gz":
        return gzip.GzipFile(fileobj=packed)
    if packing == ".zip":
        archive = ZipFile(packed)
        if member not in archive.namelist():
            raise BadZipFile(f"no {member} in the archive")
        if archive.getinfo(member).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadZipFile(f"{member} is neither stored nor deflated")  # Others may need gigabytes.
        return archive.open(member)
    return packed


class _XzStream:
    """The first stream of an xz file. ``lzma.LZMAFile`` would allocate what the header asks for."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._stream = lzma.LZMADecompressor(memlimit=MEMORY_LIMIT)

    def read(self, size: int, /) -> bytes:
        block = b""
        while not block and not self._stream.eof:
            data = self._packed.read(BLOCK_SIZE) if self._stream.needs_input else b""
            if self._stream.needs_input and not data:
                raise EOFError("it ends early")
            block = self._stream.decompress(data, size)
        return block
