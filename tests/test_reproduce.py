"""``gridlstm reproduce``: every figure of the paper at the smallest scale, as a user runs it."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from gridlstm.commands.reproduce_options import FIGURES
from gridlstm.experiments.record import Scale, import_name
from gridlstm.sweeps.plan import SweepPlan

CELLS = {"4": 3, "5": 8, "6": 2, "8": 2, "9": 4, "10": 9, "12": 2}
"""Runs of each figure at the smallest scale."""


@pytest.mark.parametrize("number", FIGURES)
def test_smoke(gridlstm: Any, tmp_path: Path, number: str) -> None:
    words = ("reproduce", number, "--scale", "smoke", "--out", tmp_path, "--workers", 2)
    code, output, errors = gridlstm(*words)
    assert (code, errors) == (0, "")
    out = tmp_path / "smoke" / f"figure-{number}"
    for suffix in (".md", ".png", ".svg"):
        assert str(out.with_suffix(suffix)) in output
        assert out.with_suffix(suffix).stat().st_size > 200
    written = json.loads(out.with_suffix(".json").read_text())
    assert len(written["runs"]) == CELLS[number]
    assert all(run["evaluation"] is not None for run in written["runs"])
    experiment = FIGURES[number][0]
    table = import_name(experiment.table)(written["runs"]).markdown()
    assert out.with_suffix(".md").read_text().endswith(f"{table}\n")
    before = out.with_suffix(".json").stat().st_mtime_ns, (out / "runs").stat().st_mtime_ns
    assert gridlstm(*words)[0] == 0  # Nothing is trained again.
    assert (out / "runs").stat().st_mtime_ns == before[1]


def test_bfloat16(gridlstm: Any, tmp_path: Path) -> None:
    words = ("reproduce", "9", "--scale", "smoke", "--out", tmp_path, "--workers", 2)
    code, _, errors = gridlstm(*words, "--bfloat16")
    assert (code, errors) == (0, "")
    written = json.loads((tmp_path / "smoke" / "figure-9.json").read_text())
    assert [run["options"]["bfloat16"] for run in written["runs"]] == [True] * CELLS["9"]
    code, _, errors = gridlstm(*words)  # The directory keeps its plan.
    assert code == 2
    assert "bfloat16" in errors


@pytest.mark.parametrize("scale", get_args(Scale))
@pytest.mark.parametrize("number", FIGURES)
def test_plans_are_possible(number: str, scale: Scale) -> None:
    experiment, figure = FIGURES[number]
    plan = SweepPlan(experiment, *figure.plans[scale])
    assert plan.cells
    assert import_name(figure.draw)


def test_figures_that_are_asked_for() -> None:
    assert list(FIGURES) == list(CELLS)
    laptop = SweepPlan(FIGURES["9"][0], *FIGURES["9"][1].plans["laptop"])
    assert len(laptop.cells) >= 60


def test_an_unknown_figure(gridlstm: Any) -> None:
    code, _, errors = gridlstm("reproduce", "7")
    line = "gridlstm: FIGURE: expected one of 4, 5, 6, 8, 9, 10, 12, all; got '7'\n"
    assert (code, errors) == (2, line)
