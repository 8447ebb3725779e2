"""Compiles the kernel on the machine that uses it, once, and keeps the result in the user's cache.

What is kept is loaded only if nobody else can have written it and it is whole: from a folder of the
user that is closed to others, with its checksum at its end, through a copy in memory. So neither a
planted nor a truncated file is ever mapped.
"""

import ctypes
import hashlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from gridlstm.cache import private_folder
from gridlstm.engines.native.compiler import TIMEOUT, Compiler
from gridlstm.engines.native.layout import SIZES
from gridlstm.files import atomic_write

__all__ = ["Kernel", "kernel_name", "library"]

_log = logging.getLogger("gridlstm")
_SOURCE = Path(__file__).with_name("kernel.c")
_CHECKSUM = hashlib.sha256().digest_size


class Kernel(ctypes.CDLL):
    """The compiled kernel.

    Args:
        content: of the shared library.
        key: what tells it from other kernels: source, compiler, options and processor.

    Raises:
        OSError: if it is not a library, or its structures are not those that ``layout`` mirrors.
    """

    def __init__(self, content: bytes, key: str) -> None:
        try:
            with _in_memory(content) as path:
                super().__init__(path)
        except (OSError, AttributeError):  # Not everywhere are there such files, or may they be run.
            with TemporaryDirectory(prefix="gridlstm-") as private:
                path = str(Path(private) / "kernel.so")
                Path(path).write_bytes(content)
                super().__init__(path)
        self.key = key
        sizes = (ctypes.c_int64 * len(SIZES))()
        self.struct_sizes(sizes)
        if list(sizes) != SIZES:
            raise OSError(f"structures of {SIZES} bytes expected, the compiled ones have {list(sizes)}")


@lru_cache(maxsize=1)
def library() -> Kernel | None:
    """The compiled kernel, or ``None`` where it cannot be compiled; a warning says so once.

    Set ``GRIDLSTM_NATIVE=0`` to do without it, ``CC`` to choose the compiler, and
    ``GRIDLSTM_CACHE`` to choose where the result is kept.
    """
    if os.environ.get("GRIDLSTM_NATIVE") == "0":
        return None
    try:
        return _load()
    except (OSError, ValueError) as error:
        _log.warning("gridlstm: no compiled kernel, so the slower PyTorch path is used (%s)", error)
        return None


def kernel_name() -> str:
    """Which kernel this process uses: ``"pytorch"``, or ``"c"`` and the compiled one's key.

    Runs of the same name are the same bit for bit, other things being equal.
    """
    kernel = library()
    return "pytorch" if kernel is None else f"c {kernel.key}"


def _load() -> Kernel:
    compiler = Compiler.find()
    told_apart = b"\0".join(
        [_SOURCE.read_bytes(), compiler.description.encode(errors="surrogateescape")]
    )
    key = hashlib.sha256(told_apart).hexdigest()[:16]
    trouble: OSError | None = None
    with ExitStack() as held:
        try:
            path = private_folder("kernels") / f"kernel-{key}.so"
            content = _read(path)
            if content is None:
                held.enter_context(_locked(path.with_suffix(".lock")))
                content = _read(path)  # Another process may have compiled it while this one waited.
        except OSError as error:
            trouble, content = error, None
        if content is not None:
            return Kernel(content, key)
        content = compiler.compile(_SOURCE)
        kernel = Kernel(content, key)  # Before it is kept: what cannot be loaded is not.
        try:
            if trouble is None:
                _write(path, content)
        except OSError as error:
            trouble = error
    if trouble is not None:
        _log.warning("gridlstm: the kernel is compiled by every process, not kept (%s)", trouble)
    return kernel


def _read(path: Path) -> bytes | None:
    """What :func:`_write` has written, or ``None`` if that is not what is there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        own = found.st_uid == os.getuid() and not found.st_mode & 0o022
        if not own or not stat.S_ISREG(found.st_mode):
            return None
        whole = file.read()
    content, checksum = whole[:-_CHECKSUM], whole[-_CHECKSUM:]
    return content if hashlib.sha256(content).digest() == checksum else None


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as beside:
        beside.write_bytes(content + hashlib.sha256(content).digest())
    path.chmod(0o600)  # Whatever the umask; the folder has been closed to others all the time.


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time, so that many that start at once compile once.

    Raises:
        TimeoutError: if another one has not done in the time that it has for compiling.
    """
    import fcntl  # Where files have owners; elsewhere there is no private folder to lock.

    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + 2 * TIMEOUT
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > end:
                raise TimeoutError(f"{path}: locked for {2 * TIMEOUT:g} seconds")
            time.sleep(0.05)
        yield
    finally:
        os.close(handle)


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A file without a name, which nobody else can truncate while it is mapped."""
    handle = os.memfd_create("gridlstm-kernel")
    try:
        path = f"/proc/self/fd/{handle}"
        Path(path).write_bytes(content)
        yield path
    finally:
        os.close(handle)
