"""Where a number comes from: the machine, the versions, the commit. Part of every result file."""

import os
import platform
import subprocess
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["environment", "memory_bytes"]

_PACKAGES = ("gridlstm", "torch", "numpy")


def environment() -> dict[str, Any]:
    """What a reader needs to judge or repeat a measurement.

    >>> sorted(environment())
    ['commit', 'machine', 'python', 'time', 'versions']
    """
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": None if (memory := memory_bytes()) is None else round(memory / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def _commit() -> str | None:
    """The commit of the source tree, marked where files differ from it; none for an installed copy."""
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=here, capture_output=True, text=True, check=False, timeout=10
        )
        tracked = subprocess.run(
            ["git", "ls-files", "--error-unmatch", __file__], cwd=here, capture_output=True, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == tracked.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """A name for the processor, with the vector units that matter here."""
    name, flags = platform.processor() or platform.machine(), ""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() == "flags":
                units = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
                flags = " ".join(unit for unit in units if unit in value.split())
                break
    return f"{name} ({flags})" if flags else name


def memory_bytes() -> int | None:
    """The machine's memory, where the system tells."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
