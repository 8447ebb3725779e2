"""The public names, the length of files, the examples and the tables of the documents.

The direction of imports is checked by import-linter: ``make lint``.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
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
    "load",
    "to_torch",
]


def test_public_names() -> None:
    assert sorted(gridlstm.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(gridlstm, name).__name__ == name
    with pytest.raises(AttributeError, match="GridLSMT"):
        gridlstm.GridLSMT  # type: ignore[attr-defined] # noqa: B018


def test_the_version_is_that_of_the_installed_package() -> None:
    assert version("gridlstm") == gridlstm.__version__


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 320


def test_names_are_unique() -> None:
    """Files inside an experiment are named by their role; all others, and classes, by what they are."""
    experiments = PACKAGE / "experiments"
    files = [path.name for path in modules() if path.parent.parent != experiments]
    classes = [
        node.name
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    by_role = {"__init__.py", "options.py", "results.py", "table.py", "problem.py"}
    unique = [name for name in files if name not in by_role] + classes
    assert {name for name, count in Counter(unique).items() if count > 1} == set()


def run(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


EXAMPLES = {
    "beside_nn_lstm.py": (
        r"2-LSTM: \(20, 4, 64\) state \(3, 4, 64\)\nfrom nn\.LSTM: largest difference (\S+)\n"
    ),
    "copy_symbols.py --length=2 --vocabulary=4 --hidden=16 --layers=2": (
        r"(?:.*\n)*learned to repeat 2 symbols out of 3.*\n(?:.*\n)*"
    ),
    "image_corners.py": r"features of each image: 2352\nevery layer has a gradient: True\n",
    "own_cell.py": r"(?:.*\n)*largest difference between the gradients of the engines: (\S+)\n",
    "two_sides.py": (
        r"vectors that leave with the target words: \(2, 9, 1, 32\)\n"
        r"memory of every block: \(2, 6, 9, 1, 32\)\n"
        r"the second pair alone: largest difference (\S+)\n"
    ),
}
"""What each example prints; a group is a difference that is rounding alone."""


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_run(command: str) -> None:
    script, *arguments = command.split()
    printed = re.fullmatch(EXAMPLES[command], run(f"examples/{script}", *arguments))
    assert printed is not None
    assert all(float(difference) < 1e-5 for difference in printed.groups())


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {
        command.split()[0] for command in EXAMPLES
    }


def test_readme_tables_are_those_of_the_results() -> None:
    before = (ROOT / "README.md").read_text()
    code = (
        "import readme_tables as r; "
        "assert all(r.update(p) == (r.ROOT / p).read_text() for p in r.PAGES), 'run make readme'"
    )
    run("-c", f"import sys; sys.path.insert(0, 'tools'); {code}")
    assert (ROOT / "README.md").read_text() == before
