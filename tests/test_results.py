"""Tables of results: what a row may hold, and that documents have what the files say."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gridlstm.experiments.paper import PAPER
from gridlstm.experiments.parity.results import solutions_table
from gridlstm.experiments.record import import_name
from gridlstm.experiments.registry import EXPERIMENTS, flat
from gridlstm.experiments.results import NOT_COMPARED, group_runs, read_runs

RESULTS = Path(__file__).parent.parent / "results"


def collected(experiment: str = "parity", reason: str = "solved", **changed: Any) -> dict[str, Any]:
    """A run as ``gridlstm collect`` keeps it."""
    measures = {"accuracy": 0.99, "bits": 2.0, "error": 0.01, "perplexity": 5.0}
    return {
        "run": "a",
        "experiment": experiment,
        "options": {**flat(EXPERIMENTS[experiment].presets["smoke"]), **changed},
        "sessions": [{"commit": "0123456789ab"}],
        "summary": {
            "reason": reason, "samples": 2000, "seconds": 60, "best": measures, "parameters": 7
        },
        "evaluation": {
            **measures, "characters": 10, "streams": 1, "bleu 1": 1.0, "bleu all": 2.0,
            "seconds a sentence": 0.1, "samples": 1000, "environment": {"commit": "0123456789ab"},
        },
        "ensemble": None,
    }  # fmt: skip


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("name", ["rate", "layers", "batch", "evaluate_every", "hidden", "network"])
def test_a_row_never_mixes_what_differs(experiment: str, name: str) -> None:
    run = collected(experiment)
    value = run["options"][name]
    other = collected(experiment, **{name: value + 1 if name != "network" else "another"})
    assert [len(group.runs) for group in group_runs([run, other, copy.deepcopy(run)])] == [2, 1]


def test_runs_that_differ_only_in_their_seed_share_a_row() -> None:
    runs = [collected(seed=seed, minutes=minutes) for seed, minutes in ((0, 1), (1, 2), (1, 3))]
    (group,) = group_runs(runs)
    assert (group.seeds, group.outcome) == ("2", "3 solved")
    table = import_name(EXPERIMENTS["parity"].table)(runs)
    assert (len(table.rows), table.note) == (1, "")


def test_an_option_that_older_runs_do_not_have() -> None:
    old, new = (collected("addition", seed=seed, fill=100) for seed in (0, 1))
    assert old["options"].pop("zeros") is None
    (group,) = group_runs([old, new])
    assert group.seeds == "2"
    assert len(group_runs([old, collected("addition", zeros=0.5)])) == 2


def test_a_row_says_how_its_runs_ended() -> None:
    runs = [collected(reason=reason) for reason in ("solved", "minutes", "interrupted", "samples")]
    (group,) = group_runs(runs)
    assert group.outcome == "1 solved, 2 cut off, 1 out of samples"


@pytest.mark.parametrize("place", ["sessions", "evaluation"])
def test_uncommitted_changes_are_marked(place: str) -> None:
    run = collected()
    environment = run["sessions"][0] if place == "sessions" else run["evaluation"]["environment"]
    environment["commit"] += "-dirty"
    table = import_name(EXPERIMENTS["parity"].table)([run])
    assert table.rows[0][3] == r"1 solved \*"
    assert "uncommitted changes" in table.note


def test_the_number_of_samples_is_a_difference_if_the_rate_falls() -> None:
    for schedule, rows in (("constant", 1), ("cosine", 2)):
        runs = [collected(schedule=schedule, samples=samples) for samples in (1000, 2000)]
        assert len(group_runs(runs)) == rows


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_rows_of_published_results_are_distinct(experiment: str) -> None:
    """Rows that look alike would hide what distinguishes them."""
    files = {"characters": "characters", "translation": "translation", "images": "images"}
    runs = read_runs(RESULTS.glob(f"{files.get(experiment, 'runs')}-*.json"))
    rows = import_name(EXPERIMENTS[experiment].table)(runs).rows
    labels = [tuple(row[:2]) for row in rows]
    assert len(set(labels)) == len(labels)
    for group in group_runs(runs):
        compared = [
            {k: v for k, v in run["options"].items() if k not in NOT_COMPARED} for run in group.runs
        ]
        if group.options["schedule"] == "constant":
            for options in compared:
                options.pop("samples")
        assert all(options == compared[0] for options in compared)


def test_results_of_the_paper_are_of_known_experiments_and_networks() -> None:
    for result in PAPER:
        experiment = EXPERIMENTS[result.experiment]
        assert result.place.startswith(("Figure ", "Section "))
        if result.ours:
            kind = experiment.options.__annotations__["network"]
            assert result.ours in getattr(kind, "__args__", ())


def test_a_table_is_markdown(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"kind": "runs", "runs": [collected()]}))
    lines = import_name(EXPERIMENTS["parity"].table)(read_runs([path])).markdown().splitlines()
    assert lines[0].startswith("| experiment | network")
    assert lines[2].startswith(
        "| parity, 8 bits | tied grid, 3 x 16 | 1 | 1 solved | 2 K | 99.0 % | 1 |"
    )


def test_which_parities_were_solved() -> None:
    runs = [
        collected(bits=20, layers=3, seed=0),
        collected(bits=20, layers=3, seed=1, reason="samples"),
        collected(bits=40, layers=3),
        collected(bits=40, layers=12, reason="minutes"),
    ]
    table = solutions_table(runs)
    assert table.titles == ["network, layers x d", "rate", "20 bits", "40 bits"]
    assert table.rows == [
        ["tied grid, 3 x 16", "0.06, start signs", "2, 1 not", "2"],
        ["tied grid, 12 x 16", "0.06, start signs", "", "1 not"],
    ]
    assert table.note.endswith("on 1,000 further strings: 99.0 %.")
