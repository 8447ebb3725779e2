"""The C compiler of the machine: how it is found, identified and run."""

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
"""Seconds after which the compiler is stopped, together with all processes it started."""
_OUTPUT = 2**20
"""Bytes that the compiler may print: far more than it does for a small file."""
# No -ffast-math: NaN must propagate, and the rounding in exp depends on the order of operations.
_FLAGS = (
    *("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"),
    *("-std=gnu11", "-fPIC", "-shared"),
)
_PROCESSOR = {
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}
"""The fields of /proc/cpuinfo that identify a processor of Intel, AMD or ARM."""


@dataclass(frozen=True)
class Compiler:
    """A compiler with its options.

    Attributes:
        command: program and options.
        description: all that its output depends on, except the source: the command, its version, and
            the processor, because different machines may share a home directory.
    """

    command: tuple[str, ...]
    description: str

    @classmethod
    def find(cls) -> "Compiler":
        """The compiler named by ``CC``. Default: the first of cc, gcc and clang on the path.

        Raises:
            OSError: if there is none, or it does not work.
            ValueError: if ``CC`` is not a command.
        """
        command = [*_program(), *_FLAGS]
        # Prints the version and what -march=native means on this machine, and compiles nothing.
        printed = _run([*command, "-###", "-E", "-x", "c", os.devnull])
        command.append(_openmp(printed))
        return cls(tuple(command), "\0".join([*command, printed, *describe_processors()]))

    def compile(self, source: Path) -> bytes:
        """Compiles a source file to a shared library.

        Raises:
            OSError: if it fails.
        """
        with TemporaryDirectory(prefix="gridlstm-") as private:
            built = Path(private) / "library.so"
            _run([*self.command, "-o", str(built), str(source), "-lm"])
            return built.read_bytes()


def _program() -> list[str]:
    command = os.environ.get("CC", "").strip()
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"CC: expected a command, got {command} ({error})") from error
    for name in words[:1] or ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [str(Path(path).absolute()), *words[1:]]
    raise OSError(f"CC: expected a program, got {command}" if words else "no C compiler found")


def _openmp(printed: str) -> str:
    """Threads only with the OpenMP runtime that PyTorch uses: two runtimes would compete for cores."""
    shared = (Path(torch.__file__).parent / "lib" / "libgomp.so.1").exists()
    return "-fopenmp" if shared and "gcc version" in printed else "-fopenmp-simd"


def describe_processors() -> list[str]:
    """Descriptions of this machine's processors, each kind once."""
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
    """Runs a program without input, and returns its output.

    Raises:
        OSError: if it cannot be started, fails, prints too much or takes too long.
    """
    with subprocess.Popen(
        command,
        cwd=os.sep,  # Some compilers put the current folder into their output.
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # A process group of its own, which can be stopped as a whole.
    ) as process:
        assert process.stdout is not None, "it is a pipe"
        reasons = []

        def stop(reason: str) -> None:
            reasons.append(reason)
            with suppress(OSError):  # It has already ended.
                os.killpg(process.pid, signal.SIGKILL)

        timer = Timer(TIMEOUT, stop, [f"not finished after {TIMEOUT:g} seconds"])
        timer.start()
        try:
            printed = process.stdout.read(_OUTPUT)
            if len(printed) == _OUTPUT:
                stop("too much output")
            process.wait()
        except BaseException:
            stop("interrupted")
            raise
        finally:
            timer.cancel()
    output = printed.decode(errors="replace")
    if process.returncode != 0:
        raise OSError(f"{command[0]} failed: {', '.join(reasons) or ' '.join(output.split())[-500:]}")
    return output
