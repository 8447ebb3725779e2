"""Every block of code in the documents runs as it is written, in the order in which it is written.

Shell blocks run in a copy of what a clone has after ``make run`` has set it up. Commands that train or
measure do so for a moment: see ``tests/forked.py``. A block of output is marked ``text``.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from .forked import CLIENT

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CLONED = ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "examples", "tools", "docs")

SENTENCES = {"de": ["der Hund .", "ein Mann ."] * 200, "en": ["the dog .", "a man ."] * 200}
TABLE = "".join(f"{a}\t{b}\n" for a, b in zip(*SENTENCES.values(), strict=True))
OWN = {
    "novel.txt": "It is a truth universally acknowledged. " * 2000,
    "letter.txt": "My dear friend, all is well. " * 20,
    "in.txt": "你好。\n他不喜欢吃鱼。\n",
    **{f"{part}.tsv": TABLE for part in ("train", "valid", "test")},
    **{
        f"{part}.{language}": "\n".join(SENTENCES[language])
        for part in ("train", "val", "t")
        for language in SENTENCES
    },
    "t2.en": "\n".join(SENTENCES["en"]),
}
"""Files of the reader's own that documents speak of."""
SHAPES = ("circle", "square")
"""Folders of the reader's own pictures."""

PROGRAMS = {
    "pip": "echo skipped: nothing is installed in a test >&2",
    "ruff": ":",
    "mypy": ":",
    "lint-imports": ":",
    # `make test` would run this test, and `make docs` takes half a minute.
    "python": 'case "$*" in *pytest* | *sphinx*) ;; *) exec {python} "$@" ;; esac',
    # One process in place of several; tests/test_torchrun.py starts them.
    "torchrun": 'while [ "$1" != gridlstm ]; do shift; done; exec "$@"',
}
"""What stands in for other programs of the virtual environment."""


NEEDED = {"export.md": "onnxruntime"}
"""Packages of extras that a document needs; `make test-extras` installs them."""


def blocks(document: Path, language: str) -> list[str]:
    found = re.findall(r"^```(.*)\n((?:.*\n)*?)```$", document.read_text(), re.MULTILINE)
    return [code for name, code in found if name == language]


def having(language: str) -> list[object]:
    chosen = [path for path in DOCUMENTS if blocks(path, language)]
    return [pytest.param(path, id=path.name, marks=_needed(path)) for path in chosen]


def _needed(document: Path) -> list[pytest.MarkDecorator]:
    name = NEEDED.get(document.name)
    missing = name is not None and find_spec(name) is None
    return [pytest.mark.skipif(missing, reason=f"needs {name}: make test-extras installs it")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a process that runs ``gridlstm``."""
    address = tmp_path_factory.mktemp("server") / "door"
    process = subprocess.Popen([sys.executable, str(ROOT / "tests" / "forked.py"), str(address)])
    try:
        while not address.exists():
            assert process.poll() is None, "the server has ended"
            time.sleep(0.05)
        yield str(address)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def clone(server: str, tmp_path: Path) -> Path:
    """What a clone has after ``make run`` has set it up, and the files of its reader."""
    for name in CLONED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("_build"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{script.format(python=sys.executable)}\n")
    (programs / "gridlstm").write_text(CLIENT.format(python=sys.executable, address=server))
    for path in programs.iterdir():
        path.chmod(0o755)
    (programs / "activate").write_text('PATH="$PWD/.venv/bin:$PATH"\n')
    (tmp_path / ".venv" / ".installed").touch()  # So that make has nothing left to set up.
    for name, text in OWN.items():
        (tmp_path / name).write_text(text)
    for label, shape in enumerate(SHAPES):
        (tmp_path / "shapes" / shape).mkdir(parents=True)
        for number in range(4):
            picture = Image.new("RGB", (20, 20), (80 * label, 50 * number, 0))
            picture.save(tmp_path / "shapes" / shape / f"{number}.png")
    return tmp_path


@pytest.mark.parametrize("document", [pytest.param(path, id=path.name) for path in DOCUMENTS])
def test_every_block_says_what_it_is(document: Path) -> None:
    fences = re.findall(r"^ *```(.*)$", document.read_text(), re.MULTILINE)
    assert {*fences[::2]} <= {"bash", "python", "text", "bibtex"}
    assert {*fences[1::2]} <= {""}


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("document", having("bash"))
def test_shell_blocks(document: Path, clone: Path) -> None:
    """Only README says how to find ``gridlstm``: in other documents it is on the path."""
    lines = ["set -e -o pipefail", *([] if document.name == "README.md" else [". .venv/bin/activate"])]
    script = "\n".join([*lines, "PS4='$ '", "set -x", *blocks(document, "bash")])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=clone,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(clone),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT / "src"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("document", having("python"))
def test_python_blocks(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": document.stem}
    for code in blocks(document, "python"):
        exec(compile(code, str(document), "exec"), names)
