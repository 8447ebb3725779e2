"""Compiles the kernel on the machine that uses it, once, and keeps the result in the user's cache."""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import torch

from gridlstm.cache import cache_folder

__all__ = ["library"]

_log = logging.getLogger("gridlstm")
_SOURCE = Path(__file__).with_name("kernel.c")
# No -ffast-math: NaN must go through, and the rounding in exp depends on the order of operations.
_FLAGS = [
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-std=gnu11",
    "-fPIC",
    "-shared",
]


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The compiled kernel, or ``None`` where there is no compiler or it fails; which is said once.

    Set ``GRIDLSTM_NATIVE=0`` to do without it, ``CC`` to choose the compiler, and
    ``GRIDLSTM_CACHE`` to choose where the result is kept.
    """
    if os.environ.get("GRIDLSTM_NATIVE") == "0":
        return None
    try:
        return _load()
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        _log.warning("gridlstm: no compiled kernel, so the slower PyTorch path is used (%s)", error)
        return None


def _load() -> ctypes.CDLL:
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise OSError("no C compiler found")
    compiler = shlex.split(found)
    version = _run([*compiler, "--version"])
    flags = [*_FLAGS, _openmp(version)]
    key = hashlib.sha256("\0".join([_SOURCE.read_text(), version, *flags, _processor()]).encode())
    folder = cache_folder()
    target = folder / f"kernel-{key.hexdigest()[:16]}.so"
    if target.exists():
        with suppress(OSError):  # Damaged: build it anew.
            return ctypes.CDLL(str(target))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        built = Path(work) / "kernel.so"
        _run([*compiler, *flags, "-o", str(built), str(_SOURCE), "-lm"])
        built.replace(target)  # Whole or not at all: another process may be building too.
    return ctypes.CDLL(str(target))


def _openmp(version: str) -> str:
    """Threads only with the OpenMP runtime that PyTorch has loaded: two would fight over the cores."""
    shared = (Path(torch.__file__).parent / "lib" / "libgomp.so.1").exists()
    return "-fopenmp" if shared and "Free Software Foundation" in version else "-fopenmp-simd"


def _processor() -> str:
    """What ``-march=native`` depends on; a home directory may be shared by different machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor() + platform.machine()


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise OSError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout
