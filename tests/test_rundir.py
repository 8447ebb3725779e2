"""Run directories: they explain themselves, and nothing in them is overwritten by mistake."""

import json
from pathlib import Path

import pytest

from gridlstm.experiments.options import EXPERIMENTS, flat, from_flat
from gridlstm.training.rundir import RunDir, RunError

CONFIG = {"experiment": "parity", "options": {"layers": 3, "samples": 100, "schedule": "constant"}}


def changed(**options: object) -> dict[str, object]:
    return {**CONFIG, "options": {**CONFIG["options"], **options}}  # type: ignore[dict-item]


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    RunDir.start(tmp_path / "a", CONFIG, resume=False)
    with pytest.raises(RunError, match=r"a: there is a run; --resume goes on with it, --out names"):
        RunDir.start(tmp_path / "a", CONFIG, resume=False)
    assert RunDir.start(tmp_path / "a", CONFIG, resume=True).config()["experiment"] == "parity"


@pytest.mark.parametrize("resume", [True, False])
def test_what_is_no_run_is_left_alone(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for path in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(RunError, match="expected a run or nothing, got something else"):
            RunDir.start(path, CONFIG, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_other_options_are_named(tmp_path: Path) -> None:
    RunDir.start(tmp_path, CONFIG, resume=False)
    with pytest.raises(RunError, match=r"other options: layers was 3, now 4; rate was None, now 0.1$"):
        RunDir.start(tmp_path, changed(layers=4, rate=0.1), resume=True)
    with pytest.raises(RunError, match="expected a run of addition, got one of parity"):
        RunDir.start(tmp_path, {**CONFIG, "experiment": "addition"}, resume=True)
    RunDir.start(tmp_path, changed(samples=200), resume=True)


def test_the_number_of_samples_is_part_of_a_schedule(tmp_path: Path) -> None:
    RunDir.start(tmp_path, changed(schedule="cosine"), resume=False)
    with pytest.raises(RunError, match="samples was 100, now 200"):
        RunDir.start(tmp_path, changed(schedule="cosine", samples=200), resume=True)


def test_metrics_of_steps_to_come_are_dropped(tmp_path: Path) -> None:
    run = RunDir.start(tmp_path, CONFIG, resume=False)
    for step in (1, 2, 3):
        run.append({"step": step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4')  # The process was killed here.
    assert [row["step"] for row in run.metrics()] == [1, 2, 3]
    run.begin(2, threads=1)
    run.append({"step": 3})
    assert [row["step"] for row in run.metrics()] == [1, 2, 3]
    session = run.sessions()[0]
    assert session["step"] == 2
    assert {"machine", "versions", "commit", "threads"} <= session.keys()


def test_what_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDir.start(tmp_path / "run", CONFIG, resume=False)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError, match=r"cannot write .*metrics.jsonl: .*No space left on device"):
        run.append({"step": 1})
    with pytest.raises(RunError, match=r"cannot write .*summary.json: .*No space left on device"):
        run.finish({})
    with pytest.raises(RunError, match=r"cannot write .*config.json"):
        RunDir.start(tmp_path / "other", CONFIG, resume=False)


@pytest.mark.parametrize("content", ["", "[1]", '{"format": "something else"}'])
def test_foreign_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config.json"):
        RunDir.open(tmp_path)
    with pytest.raises(RunError, match=r"expected a run, got a place without config\.json"):
        RunDir.open(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["metrics.jsonl", "sessions.json"])
def test_damaged_records_are_named(tmp_path: Path, name: str) -> None:
    run = RunDir.start(tmp_path, CONFIG, resume=False)
    (tmp_path / name).write_text("{damaged\n")
    with pytest.raises(RunError, match=name):
        run.begin(0)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_options_survive_being_written_down(name: str) -> None:
    for experiment in EXPERIMENTS[name].values():
        assert from_flat(name, json.loads(json.dumps(flat(experiment)))) == experiment


def test_foreign_options_are_refused() -> None:
    options = flat(EXPERIMENTS["parity"]["smoke"])
    with pytest.raises(ValueError, match=r"experiment: expected one of memorization, .*, got 'chess'"):
        from_flat("chess", options)
    with pytest.raises(ValueError, match="expected those of parity, got others: depth"):
        from_flat("parity", {**options, "depth": 3})
    older = {k: v for k, v in options.items() if k != "start"}
    assert from_flat("parity", older) == from_flat("parity", options)
    with pytest.raises(ValueError, match="bits: expected a task of at least 81 different samples, got"):
        from_flat("parity", {**options, "bits": 2})
    with pytest.raises(ValueError, match="layers: expected at least 1, got 0"):
        from_flat("parity", {**options, "layers": 0})
