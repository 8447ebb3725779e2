"""``gridlstm bench compare``: two result files, case by case."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., tuple[int, str, str]]
RESULTS = Path(__file__).parent.parent / "results"


def table_rows(output: str) -> list[list[str]]:
    """The cells of a table with lines between its columns."""
    lines = [line.split("│")[1:-1] for line in output.splitlines() if "│" in line]
    return [[cell.strip() for cell in line] for line in lines]


@pytest.mark.parametrize("kind", ["engine", "growth", "generation", "search"])
def test_a_result_file_equals_itself(gridlstm: Program, kind: str) -> None:
    path = RESULTS / f"bench-{kind}.json"
    code, output, _ = gridlstm("bench", "compare", path, path)
    assert code == 0
    rows = table_rows(output)
    assert rows
    assert all(old == new and ratio == "1.00" for _, _, old, new, ratio in rows)


def result_file(path: Path, cases: dict[str, float], **changes: Any) -> Path:
    """A result file of ``bench engine``, with the time of each case over its products."""
    described = [
        {"name": name, "median": {"1": {"wavefront": time, "products": 1}}}
        for name, time in cases.items()
    ]
    path.write_text(
        json.dumps({"kind": "bench", "options": {"quick": False}, "cases": described} | changes)
    )
    return path


def test_times_are_compared_case_by_case(gridlstm: Program, tmp_path: Path) -> None:
    old = result_file(tmp_path / "old.json", {"cube": 2.0, "before": 3.0})
    new = result_file(tmp_path / "new.json", {"cube": 1.5, "[/after]": 4.0})
    code, output, _ = gridlstm("bench", "compare", old, new)
    assert code == 0
    assert table_rows(output) == [
        ["cube", "1", "2.00", "1.50", "0.75"],
        ["before", "1", "3.00", "-", ""],
        ["[/after]", "1", "-", "4.00", ""],
    ]
    assert "-: not in this file" in " ".join(output.split())


def test_quick_cases_are_not_compared_with_full_ones(gridlstm: Program, tmp_path: Path) -> None:
    """They have the same names, but fewer samples."""
    full = result_file(tmp_path / "full.json", {"cube": 2.0})
    quick = result_file(tmp_path / "quick.json", {"cube": 2.0}, options={"quick": True})
    code, output, _ = gridlstm("bench", "compare", full, quick)
    assert code == 0
    assert table_rows(output) == [
        ["cube", "1", "2.00", "-", ""],
        ["cube, quick", "1", "-", "2.00", ""],
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "TypeError"),
        ('{"kind": "runs", "runs": []}', "its kind is 'runs'"),
        ('{"kind": []}', "TypeError"),
        ('{"kind": "bench"}', "KeyError"),
        ('{"kind": "growth", "axes": 3}', "AttributeError"),
    ],
)
def test_other_files_are_not_compared(
    gridlstm: Program, tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    code, output, errors = gridlstm("bench", "compare", RESULTS / "bench-engine.json", path)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert f"expected a result file of gridlstm bench, got {path} (" in errors
    assert reason in errors


@pytest.mark.parametrize("time", [0, -1, float("nan"), float("inf"), "1"])
def test_times_that_are_not_positive_are_not_compared(
    gridlstm: Program, tmp_path: Path, time: Any
) -> None:
    path = result_file(tmp_path / "x.json", {"cube": time})
    code, _, errors = gridlstm("bench", "compare", path, path)
    assert (code, errors.count("\n")) == (2, 1)
    assert f"expected a result file of gridlstm bench, got {path} (" in errors
    assert ("TypeError" if time == "1" else "a time is not a positive number") in errors


def test_files_of_different_benchmarks_are_not_compared(gridlstm: Program) -> None:
    files = [RESULTS / f"bench-{kind}.json" for kind in ("engine", "growth")]
    code, _, errors = gridlstm("bench", "compare", *files)
    assert (code, errors.count("\n")) == (2, 1)
    assert "expected two result files of the same benchmark, got" in errors
