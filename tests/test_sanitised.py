"""The kernel under the sanitisers of its compiler, and under its warnings."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gridlstm

GCC = shutil.which("gcc")
KERNEL = Path(gridlstm.__file__).parent / "engines" / "native" / "kernel.c"
SANITISERS = "-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"

needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc")


@pytest.fixture(scope="module")
def sanitised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the kernel is compiled with sanitisers, and their runtime is loaded."""
    folder = tmp_path_factory.mktemp("sanitised")
    asked = subprocess.run([GCC, "-print-file-name=libasan.so"], capture_output=True, text=True)
    runtime = Path(asked.stdout.strip())
    if not runtime.is_absolute():
        pytest.skip("needs the sanitisers' runtime of gcc (libasan)")
    compiler = folder / "cc"
    # The compiler itself is not to be checked; and what comes last overrides what came before.
    compiler.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {GCC} "$@" -O1 {SANITISERS}\n')
    compiler.chmod(0o755)
    return {
        **os.environ,
        "CC": str(compiler),
        "GRIDLSTM_CACHE": str(folder),
        "LD_PRELOAD": str(runtime),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has until the end.
    }


def run(environment: dict[str, str], what: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).with_name("random_grids.py")
    command = [sys.executable, str(script), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@needs_gcc
def test_random_grids_are_clean(sanitised: dict[str, str]) -> None:
    done = run(sanitised, "60")
    assert (done.returncode, done.stdout) == (0, "clean\n"), done.stderr


@needs_gcc
def test_an_error_would_be_found(sanitised: dict[str, str]) -> None:
    done = run(sanitised, "beyond")
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@needs_gcc
def test_the_compiler_has_nothing_to_warn_of() -> None:
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
    command = [GCC, *warnings, "-fopenmp", "-O3", "-std=gnu11", "-fsyntax-only", KERNEL]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
