"""The table of features: every feature has a test, and every test it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "docs" / "features.md").read_text().splitlines()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in LINES
    if line.startswith("| ") and not line.startswith(("| feature", "| ---"))
]
LINK = re.compile(r"\[(test_\w+)\]\(\.\./(tests/test_\w+\.py)\)")


def test_every_row_is_whole() -> None:
    assert len(ROWS) > 40
    assert {len(row) for row in ROWS} == {7}
    assert all(all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_feature_has_a_test(row: list[str]) -> None:
    named = LINK.findall(row[1])
    assert named
    assert row[1].startswith(("✓", "– refused: "))
    assert LINK.sub("", row[1]).count("](") == 0  # Nothing else is linked.
    for name, file in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (name, file)


def test_only_our_column_names_tests() -> None:
    assert not any(LINK.search(cell) for row in ROWS for cell in row[2:])


def test_notes_exist() -> None:
    named = {
        int(number) for row in ROWS for number in re.findall(r"\[(\d+)\]\(#notes\)", " ".join(row))
    }
    written = [int(line.split(".")[0]) for line in LINES if re.match(r"\d+\. ", line)]
    assert written == sorted(named)
