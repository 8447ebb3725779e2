"""Machine, versions and commit: part of every result file."""

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
    """Describes where a measurement was made, so that it can be judged or repeated.

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
    """The commit of the source tree, marked if files differ from it; ``None`` for an installed copy."""
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        described = subprocess.run(
            command, cwd=here, capture_output=True, text=True, check=False, timeout=10
        )
        tracked = subprocess.run(
            ["git", "ls-files", "--error-unmatch", __file__], cwd=here, capture_output=True, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    ok = described.returncode == tracked.returncode == 0
    return (described.stdout.strip() or None) if ok else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The name of the processor, with its relevant vector units."""
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
    """The memory of the machine; ``None`` if unknown."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
