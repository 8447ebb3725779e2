"""Packed files, unpacked in limited memory: what a file says about itself may be a lie."""

import gzip
import lzma
from typing import IO, Literal, Protocol
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

__all__ = ["BLOCK", "MEMORY", "PACKED", "Packing", "Readable", "unpack"]

Packing = Literal["", ".xz", ".gz", ".zip"]
"""How a file is packed, as its name ends; ``""`` for a plain one."""
PACKED: tuple[Packing, ...] = (".xz", ".gz", ".zip")

BLOCK = 2**20
"""Bytes that are read at once."""
MEMORY = 256 * 2**20
"""Bytes that unpacking may need: enough for a dictionary of 128 MiB, twice that of ``xz -9``."""


class Readable(Protocol):
    """What can be read once, from its beginning to its end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most this many; none at the end."""


def unpack(packed: IO[bytes], packing: Packing, member: str) -> Readable:
    """The plain file in a packed one, which in a zip archive is that of the given name.

    Raises:
        zipfile.BadZipFile: if it is not there, or packed in an unusual way.
    """
    if packing == ".xz":
        return _Xz(packed)
    if packing == ".gz":
        return gzip.GzipFile(fileobj=packed)
    if packing == ".zip":
        archive = ZipFile(packed)
        if member not in archive.namelist():
            raise BadZipFile(f"there is no {member} in it")
        if archive.getinfo(member).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadZipFile(f"{member} is neither stored nor deflated")  # It may need gigabytes.
        return archive.open(member)
    return packed


class _Xz:
    """The first stream of an xz file. ``lzma.LZMAFile`` would take what memory its header asks for."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._stream = lzma.LZMADecompressor(memlimit=MEMORY)

    def read(self, size: int, /) -> bytes:
        block = b""
        while not block and not self._stream.eof:
            given = self._packed.read(BLOCK) if self._stream.needs_input else b""
            if self._stream.needs_input and not given:
                raise EOFError("it ends early")
            block = self._stream.decompress(given, size)
        return block
