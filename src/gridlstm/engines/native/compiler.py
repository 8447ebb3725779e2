"""The C compiler of the machine: which one it is, what it compiles for, and how it is run."""

import os
import platform
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import torch

__all__ = ["TIMEOUT", "Compiler"]

TIMEOUT = 60.0
"""Seconds after which a compiler is stopped, with all processes that it has started."""
_OUTPUT = 2**20
"""Bytes that a compiler may print: far more than any prints about a small file."""
# No -ffast-math: NaN must go through, and the rounding in exp depends on the order of operations.
_FLAGS = (
    *("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"),
    *("-std=gnu11", "-fPIC", "-shared"),
)
_PROCESSOR = {
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}
"""What /proc/cpuinfo says about processors of Intel and AMD, and of ARM, that tells them apart."""


@dataclass(frozen=True)
class Compiler:
    """A compiler with its options.

    Attributes:
        command: program and options.
        description: all that its output depends on but for the source: the command, its version, and
            what it compiles for. A home directory may be shared by different machines.
    """

    command: tuple[str, ...]
    description: str

    @classmethod
    def find(cls) -> "Compiler":
        """The one that ``CC`` names, or else the first on the path.

        Raises:
            OSError: if there is none or it does not work.
            ValueError: if ``CC`` is not a command.
        """
        command = [*_program(), *_FLAGS]
        # Compilers print their version and what -march=native comes to here, and compile nothing.
        printed = _run([*command, "-###", "-E", "-x", "c", os.devnull])
        command.append(_openmp(printed))
        return cls(tuple(command), "\0".join([*command, printed, *_processors()]))

    def compile(self, source: Path) -> bytes:
        """The shared library that it makes of a source.

        Raises:
            OSError: if it fails.
        """
        with TemporaryDirectory(prefix="gridlstm-") as private:
            built = Path(private) / "library.so"
            _run([*self.command, "-o", str(built), str(source), "-lm"])
            return built.read_bytes()


def _program() -> list[str]:
    given = os.environ.get("CC", "").strip()
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise ValueError(f"CC: expected a command, got {given} ({error})") from error
    for name in words[:1] or ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [str(Path(found).absolute()), *words[1:]]
    raise OSError(f"CC: expected a program, got {given}" if words else "no C compiler found")


def _openmp(printed: str) -> str:
    """Threads only with the OpenMP runtime that PyTorch has loaded: two would fight over the cores."""
    shared = (Path(torch.__file__).parent / "lib" / "libgomp.so.1").exists()
    return "-fopenmp" if shared and "gcc version" in printed else "-fopenmp-simd"


def _processors() -> list[str]:
    """What tells the processors of this machine from those of others, each kind of them once."""
    try:
        processors = Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")
    except OSError:
        return [platform.processor(), platform.machine()]
    kinds = (
        [line for line in lines.splitlines() if line.partition(":")[0].strip() in _PROCESSOR]
        for lines in processors
    )
    return sorted({"\n".join(kind) for kind in kinds})


def _run(command: Sequence[str]) -> str:
    """What a program prints, which must be little and come soon; it has no input.

    Raises:
        OSError: if it cannot be started, fails, prints too much or takes too long.
    """
    with subprocess.Popen(
        command,
        cwd=os.sep,  # Some put the current folder into their output.
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # A process group of its own, which can be stopped as a whole.
    ) as process:
        assert process.stdout is not None, "it is a pipe"
        trouble = []

        def stop(why: str) -> None:
            trouble.append(why)
            with suppress(OSError):  # It has ended by itself.
                os.killpg(process.pid, signal.SIGKILL)

        late = Timer(TIMEOUT, stop, [f"not done after {TIMEOUT:g} seconds"])
        late.start()
        try:
            printed = process.stdout.read(_OUTPUT)
            if len(printed) == _OUTPUT:
                stop("too much output")
            process.wait()
        except BaseException:
            stop("interrupted")
            raise
        finally:
            late.cancel()
    said = printed.decode(errors="replace")
    if process.returncode != 0:
        raise OSError(f"{command[0]} failed: {', '.join(trouble) or ' '.join(said.split())[-500:]}")
    return said
