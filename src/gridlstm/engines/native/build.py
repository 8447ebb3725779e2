"""Compiles the kernel on the machine that uses it, once, and caches the result for the user.

A cached library is loaded only if no other user can have written it and it is complete: it lies in a
private folder, ends with its checksum, and is loaded from a copy in memory. So neither a planted nor a
truncated file is ever mapped.
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

__all__ = ["Kernel", "kernel_name", "library", "load_kernel"]

_log = logging.getLogger("gridlstm")
_SOURCE = Path(__file__).with_name("kernel.c")
_INCLUDED = [Path(__file__).with_name(name) for name in ("product.h", "step.h")]
_CHECKSUM = hashlib.sha256().digest_size


class Kernel(ctypes.CDLL):
    """The compiled kernel.

    Args:
        content: the bytes of the shared library.
        key: identifies the kernel: a hash of source, compiler, options and processor.

    Raises:
        OSError: if it is not a library, or its structures differ in size from those in ``layout``.
    """

    def __init__(self, content: bytes, key: str) -> None:
        try:
            with _in_memory(content) as path:
                super().__init__(path)
        except (OSError, AttributeError):  # No such files on this system, or not executable.
            with TemporaryDirectory(prefix="gridlstm-") as private:
                path = str(Path(private) / "kernel.so")
                Path(path).write_bytes(content)
                super().__init__(path)
        self.key = key
        sizes = (ctypes.c_int64 * len(SIZES))()
        self.struct_sizes(sizes, ctypes.c_int64(len(SIZES)))
        if list(sizes) != SIZES:
            raise OSError(
                f"expected structures of {SIZES} bytes, got {list(sizes)} in the compiled kernel"
            )


def library() -> Kernel | None:
    """The compiled kernel, or ``None`` if there is none."""
    kernel = load_kernel()
    return None if isinstance(kernel, str) else kernel


@lru_cache(maxsize=1)
def load_kernel() -> Kernel | str:
    """The compiled kernel, or the reason why there is none. A failure is logged once as a warning.

    Set ``GRIDLSTM_NATIVE=0`` to disable it, ``CC`` to choose the compiler, and ``GRIDLSTM_CACHE`` to
    choose where it is cached.
    """
    if os.environ.get("GRIDLSTM_NATIVE") == "0":
        return "GRIDLSTM_NATIVE=0 is set"
    try:
        return _load()
    except (OSError, ValueError) as error:
        _log.warning("gridlstm: no compiled kernel, the slower PyTorch path is used (%s)", error)
        return str(error)


def kernel_name() -> str:
    """The kernel that this process uses: ``"pytorch"``, or ``"c"`` and the key of the compiled kernel.

    Runs with the same kernel name are bit-identical, other things being equal.
    """
    kernel = library()
    return "pytorch" if kernel is None else f"c {kernel.key}"


def _load() -> Kernel:
    compiler = Compiler.find()
    sources = [path.read_bytes() for path in (_SOURCE, *_INCLUDED)]
    identity = b"\0".join([*sources, compiler.description.encode(errors="surrogateescape")])
    key = hashlib.sha256(identity).hexdigest()[:16]
    cache_error: OSError | None = None
    with ExitStack() as stack:
        try:
            path = private_folder("kernels") / f"kernel-{key}.so"
            content = _read(path)
            if content is None:
                stack.enter_context(_locked(path.with_suffix(".lock")))
                content = _read(path)  # Another process may have compiled it while this one waited.
        except OSError as error:
            cache_error, content = error, None
        if content is not None:
            return Kernel(content, key)
        content = compiler.compile(_SOURCE)
        kernel = Kernel(content, key)  # Before it is cached: only what can be loaded is.
        try:
            if cache_error is None:
                _write(path, content)
        except OSError as error:
            cache_error = error
    if cache_error is not None:
        _log.warning(
            "gridlstm: cannot cache the kernel, so every process compiles it (%s)", cache_error
        )
    return kernel


def _read(path: Path) -> bytes | None:
    """What :func:`_write` wrote; ``None`` if the file is missing, damaged or not private."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        private = status.st_uid == os.getuid() and not status.st_mode & 0o022
        if not private or not stat.S_ISREG(status.st_mode):
            return None
        whole = file.read()
    content, checksum = whole[:-_CHECKSUM], whole[-_CHECKSUM:]
    return content if hashlib.sha256(content).digest() == checksum else None


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as beside:
        beside.write_bytes(content + hashlib.sha256(content).digest())
    path.chmod(0o600)  # Whatever the umask; The folder is private in any case.


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lets one process in at a time, so that many processes that start at once compile only once.

    Raises:
        TimeoutError: if another process does not release the lock in the time allowed for compiling.
    """
    import fcntl  # Not on Windows, where there is no private folder to lock.

    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + 2 * TIMEOUT
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path}: locked for {2 * TIMEOUT:g} seconds")
            time.sleep(0.05)
        yield
    finally:
        os.close(handle)


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """An anonymous file, which no other process can truncate while it is mapped."""
    handle = os.memfd_create("gridlstm-kernel")
    try:
        path = f"/proc/self/fd/{handle}"
        Path(path).write_bytes(content)
        yield path
    finally:
        os.close(handle)
