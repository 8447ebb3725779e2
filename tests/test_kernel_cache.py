"""The compiled kernel is built once, cached safely, and not needed where it cannot be built."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CC = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler on this machine")

# Forks a process for each line of JSON: a fresh start without the seconds that importing PyTorch takes.
FRESH = """
import json, logging, os, sys
from gridlstm.engines.native import build

def start(case):
    os.environ.pop("HOME", None)
    os.environ.update(case["environment"])
    os.chdir(case["folder"])
    exec(case["setup"])
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("gridlstm").addHandler(handler)
    found = build.library() is not None
    build.library()
    return {"kernel": found, "name": build.kernel_name(), "warnings": said}

for line in sys.stdin:
    cases, children = json.loads(line), []
    for case in cases:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, json.dumps(start(case)).encode())
            except BaseException as error:
                os.write(write, json.dumps({"raised": repr(error)}).encode())
            os._exit(0)
        os.close(write)
        children.append((child, read))
    results = []
    for child, read in children:
        with open(read) as pipe:
            text = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        results.append(json.loads(text) if text else {"status": status})
    print(json.dumps(results), flush=True)
"""

Start = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", FRESH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def start(server: subprocess.Popen[str], tmp_path: Path) -> Start:
    """Starts processes at the same time, and gives what each of them found."""

    def run(count: int = 1, setup: str = "", **environment: str) -> list[dict[str, Any]]:
        given = {"GRIDLSTM_CACHE": str(tmp_path / "cache"), "CC": quick(tmp_path), **environment}
        case = {"environment": given, "setup": textwrap.dedent(setup), "folder": str(tmp_path)}
        server.stdin.write(json.dumps([case] * count) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    return run


def script(path: Path, *lines: str) -> str:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def quick(folder: Path) -> str:
    """A compiler without optimisation that logs each compilation."""
    note = f'case "$*" in *" -o "*) echo compiled >> {folder}/log; sleep 0.1;; esac'
    return script(folder / "quick-cc", note, f'exec {CC} "$@" -O0')


def compiled(folder: Path) -> int:
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def kept(folder: Path) -> Path:
    (path,) = (folder / "cache").rglob("kernel-*.so")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """A library with its checksum that leaves a mark when it is loaded, and the mark."""
    folder = tmp_path_factory.mktemp("hostile")
    mark = folder / "mark"
    code = (
        f'#include <stdio.h>\n__attribute__((constructor)) void run(void) {{ fopen("{mark}", "w"); }}'
    )
    (folder / "hostile.c").write_text(code)
    built = folder / "hostile.so"
    subprocess.run([CC, "-shared", "-fPIC", "-o", built, folder / "hostile.c"], check=True)
    content = built.read_bytes()
    return content + hashlib.sha256(content).digest(), mark


def give_away(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give files to another user")
    os.chown(path, 12345, 12345)


def elsewhere(path: Path) -> None:
    """Moves a file or folder and leaves a symbolic link in its place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


PLANTED = {
    "a folder of another user": lambda path: give_away(path.parent),
    "a folder others can write to": lambda path: path.parent.chmod(0o777),
    "a folder a group can write to": lambda path: path.parent.chmod(0o770),
    "a folder behind a link": lambda path: elsewhere(path.parent),
    "a file of another user": give_away,
    "a file others can write to": lambda path: path.chmod(0o666),
    "a file behind a link": elsewhere,
    "no checksum": lambda path: path.write_bytes(path.read_bytes()[:-32]),
    "another checksum": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"),
}


@needs_compiler
@pytest.mark.parametrize("how", PLANTED)
def test_a_planted_kernel_is_not_loaded(
    how: str, start: Start, hostile: tuple[bytes, Path], tmp_path: Path
) -> None:
    content, mark = hostile
    assert start()[0]["kernel"]
    path = kept(tmp_path)
    path.write_bytes(content)
    PLANTED[how](path)
    (found,) = start()
    assert found["kernel"]
    assert not mark.exists()
    assert compiled(tmp_path) == 2
    if "folder" in how:
        (warning,) = found["warnings"]
        assert "cannot cache the kernel, so every process compiles it" in warning
    else:  # In a folder that is safe, it has been replaced.
        assert not found["warnings"]
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert path.lstat().st_uid == os.getuid()
        assert start()[0]["kernel"]
        assert compiled(tmp_path) == 2


@needs_compiler
def test_a_relative_path_is_not_trusted(
    start: Start, hostile: tuple[bytes, Path], tmp_path: Path
) -> None:
    """Whoever owns the current folder would choose the code."""
    assert start()[0]["kernel"]
    kept(tmp_path).write_bytes(hostile[0])
    (found,) = start(GRIDLSTM_CACHE="cache")
    assert found["kernel"]
    assert not hostile[1].exists()
    (warning,) = found["warnings"]
    assert "GRIDLSTM_CACHE: expected an absolute path, got cache" in warning


@needs_compiler
@pytest.mark.parametrize("size", [0, 31, 9000])
def test_a_truncated_kernel_is_built_anew(size: int, start: Start, tmp_path: Path) -> None:
    start()
    os.truncate(kept(tmp_path), size)
    (found,) = start()
    assert found == {**found, "kernel": True, "warnings": []}
    assert start() == [found]
    assert compiled(tmp_path) == 2


@needs_compiler
def test_many_processes_compile_once(start: Start, tmp_path: Path) -> None:
    found = start(count=5)
    assert all(one["kernel"] and not one["warnings"] for one in found)
    assert compiled(tmp_path) == 1
    assert len({one["name"] for one in found}) == 1
    assert [path.suffix for path in sorted(kept(tmp_path).parent.iterdir())] == [".lock", ".so"]


@needs_compiler
@pytest.mark.parametrize(
    ("setup", "environment", "reason"),
    [
        (
            "import pwd\ndef nobody(*_): raise KeyError\npwd.getpwuid = nobody\n"
            "del os.environ['GRIDLSTM_CACHE']",
            {"XDG_CACHE_HOME": ""},
            "no home directory",
        ),
        ("", {"GRIDLSTM_CACHE": "/proc/gridlstm"}, "/proc/gridlstm"),
        ("", {"GRIDLSTM_CACHE": "/dev/null"}, "Not a directory"),
        (
            "def full(_): raise OSError(28, 'No space left on device')\nos.fsync = full",
            {},
            "No space left",
        ),
    ],
    ids=["no home", "read-only", "not a folder", "full"],
)
def test_a_kernel_that_cannot_be_kept(
    setup: str, environment: dict[str, str], reason: str, start: Start, tmp_path: Path
) -> None:
    (found,) = start(setup=setup, **environment)
    assert found["kernel"]
    (warning,) = found["warnings"]
    assert "cannot cache the kernel, so every process compiles it" in warning
    assert reason in warning
    assert not list((tmp_path / "cache").rglob("kernel-*.so"))


ODD = {
    "'": "CC: expected a command, got '",
    "/tmp": "CC: expected a program, got /tmp",
    "/nowhere/cc": "CC: expected a program, got /nowhere/cc",
    "nothing-of-this-name -O2": "CC: expected a program, got nothing-of-this-name -O2",
    "false": "false failed",
    "echo": "No such file or directory",
    "yes --": "yes failed: too much output",
    "head -c 999 /dev/urandom -z": "head failed",
}


@pytest.mark.parametrize("command", ODD)
def test_an_odd_compiler_is_done_without(command: str, start: Start) -> None:
    (found,) = start(CC=command)
    assert (found.get("kernel"), found.get("name")) == (False, "pytorch"), found
    (warning,) = found["warnings"]
    assert "no compiled kernel, the slower PyTorch path is used" in warning
    assert ODD[command] in warning
    assert "\n" not in warning


def test_a_compiler_that_hangs_is_stopped_with_all_it_started(start: Start, tmp_path: Path) -> None:
    hanging = script(tmp_path / "hanging", f"sleep 600 & echo $! > {tmp_path}/pid", "wait")
    setup = "from gridlstm.engines.native import compiler\ncompiler.TIMEOUT = 0.5"
    (found,) = start(CC=hanging, setup=setup)
    assert found["kernel"] is False
    assert "hanging failed: not finished after 0.5 seconds" in found["warnings"][0]
    state = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


@needs_compiler
@pytest.mark.parametrize("command", ["", "  "])
def test_an_empty_compiler_is_none_given(command: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    Path(quick(tmp_path)).rename(tmp_path / "bin" / "cc")
    (found,) = start(CC=command, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert found["kernel"]
    assert compiled(tmp_path) == 1


@needs_compiler
def test_a_name_for_each_kind_of_processor(start: Start) -> None:
    """Others may be behind the first, and may have the same flags."""

    def name(*models: int) -> str:
        described = "\n\n".join(
            f"processor : {number}\nmodel : {model}\nflags : fpu avx2\ncpu MHz : {number}"
            for number, model in enumerate(models)
        )
        setup = f"""
            from pathlib import Path
            usual = Path.read_text
            def read_text(self, *given, **named):
                return {described!r} if str(self) == "/proc/cpuinfo" else usual(self, *given, **named)
            Path.read_text = read_text
        """
        return str(start(setup=setup)[0]["name"])

    names = [name(1, 1), name(2, 2), name(1, 2)]
    assert len({*names}) == 3
    assert all(name.startswith("c ") for name in names)
    assert name(1, 1, 1) == names[0]


def test_without_it_the_name_is_that_of_pytorch(start: Start) -> None:
    (found,) = start(GRIDLSTM_NATIVE="0")
    assert found == {"kernel": False, "name": "pytorch", "warnings": []}
