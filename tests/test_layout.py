"""What the project promises about itself: its public names, its layers, its examples."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gridlstm

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gridlstm"

PUBLIC = [
    "AttentionTranslator",
    "Cell",
    "ConvolutionalNetwork",
    "DeepGridLSTM",
    "Dim",
    "FeedForward",
    "GatedFeedbackLSTM",
    "GridLSTM",
    "GridStack",
    "Highway",
    "ImageGridLSTM",
    "ImageMultidimensionalLSTM",
    "MultidimensionalLSTM",
    "MultiplicativeRNN",
    "ReNet",
    "Reencoder",
    "SequenceGridLSTM",
    "StackedLSTM",
    "State",
    "from_torch",
    "to_torch",
]

# From the ground up: a module imports only from its own layer and those before it.
LAYERS = [
    [
        *("cache", "command", "errors", "files", "pipes", "ranges", "fields"),
        *("checks", "fixed", "state", "geometry"),
    ],
    ["cells"],
    ["dim"],
    ["transfer"],
    ["block", "sides"],
    ["engines"],
    ["options"],
    ["grid"],
    ["models"],
    ["provenance"],
    ["data"],
    ["training"],
    ["experiments"],
    ["figures"],
    ["sweeps"],
    ["bench"],
    ["commands"],
    ["cli"],
    ["__main__"],
]


def test_public_names() -> None:
    assert sorted(gridlstm.__all__) == PUBLIC
    assert all(hasattr(gridlstm, name) for name in PUBLIC)


def test_version_is_stated_once() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", gridlstm.__version__)
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_of(name: str) -> int:
    part = name.removeprefix("gridlstm.").split(".")[0]
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_dependencies_point_one_way(path: Path) -> None:
    here = layer_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("gridlstm"):
                assert name != "gridlstm", "the package itself only re-exports"
                assert layer_of(name) <= here, f"{path.name} imports {name}, which lies above it"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 320


def run(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("beside_nn_lstm.py", r"2-LSTM: \(20, 4, 64\) state \(3, 4, 64\)"),
        ("image_corners.py", r"every layer has a gradient: True"),
        ("own_cell.py", r"gradients of the engines: \de-0[5-9]"),
        ("two_sides.py", r"largest difference \de(-0[6-9]|\+00)"),
    ],
)
def test_examples_run(script: str, expected: str) -> None:
    assert re.search(expected, run(f"examples/{script}"))


def test_the_main_example_learns() -> None:
    """A small version of what ``make run`` does."""
    out = run("examples/copy_symbols.py", "--length=2", "--vocabulary=4", "--hidden=16", "--layers=2")
    assert "learned to repeat 2 symbols out of 3" in out


def test_every_example_is_run() -> None:
    text = Path(__file__).read_text()
    assert all(path.name in text for path in (ROOT / "examples").glob("*.py"))


def test_readme_tables_are_those_of_the_results() -> None:
    before = (ROOT / "README.md").read_text()
    code = (
        "import readme_tables as r; "
        "assert all(r.update(p) == (r.ROOT / p).read_text() for p in r.PAGES), 'run make readme'"
    )
    run("-c", f"import sys; sys.path.insert(0, 'tools'); {code}")
    assert (ROOT / "README.md").read_text() == before
