"""The pointwise work of a step as a small C kernel, compiled on the machine that uses it."""

from pathlib import Path

from gridlstm.engines.native.build import library
from gridlstm.engines.native.pointwise import NativePointwise, native, supports

__all__ = ["NativePointwise", "kernel_name", "native", "supports"]


def kernel_name() -> str:
    """Which kernel this process uses: ``"c"`` and the key of its build, or ``"pytorch"``.

    Results are equal bit for bit only for equal names.
    """
    found = library()
    return "pytorch" if found is None else f"c {Path(found._name).stem.removeprefix('kernel-')}"
