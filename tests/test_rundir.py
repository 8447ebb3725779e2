"""Run directories: nothing in them is overwritten by mistake."""

import errno
import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gridlstm.experiments.registry import EXPERIMENTS, find_experiment, flat, from_flat
from gridlstm.training.rundir import RunDir, RunError

CONFIG = {"experiment": "parity", "options": {"layers": 3, "samples": 100, "schedule": "constant"}}


def changed(**options: object) -> dict[str, object]:
    return {**CONFIG, "options": {**CONFIG["options"], **options}}  # type: ignore[dict-item]


def begun(path: Path, config: Mapping[str, object] = CONFIG) -> RunDir:
    run = RunDir.prepare(path, config, resume=False)
    run.begin_session(0)
    return run


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    begun(tmp_path / "a")
    with pytest.raises(RunError, match=r"a: the run already exists; pass --resume to continue it"):
        RunDir.prepare(tmp_path / "a", CONFIG, resume=False)
    assert RunDir.prepare(tmp_path / "a", CONFIG, resume=True).config()["experiment"] == "parity"


def test_a_run_that_is_overwritten_stays_until_the_new_one_begins(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.append_metrics({"step": 1, "samples": 15})
    run.finish_session({"reason": "samples"}, "sum")
    for name in ("checkpoints/step-1", "tensorboard"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("of the user")
    (tmp_path / "model.safetensors").write_text("weights")
    before = set(tmp_path.rglob("*"))
    new = RunDir.prepare(tmp_path, changed(layers=4), resume=False, overwrite=True)
    assert new.config()["options"]["layers"] == 4
    assert set(tmp_path.rglob("*")) == before
    assert RunDir.open(tmp_path).config()["options"]["layers"] == 3
    new.begin_session(0)
    assert RunDir.open(tmp_path).config()["options"]["layers"] == 4
    assert new.metrics() == []
    assert len(new.sessions()) == 1
    assert new.summary() is None
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "metrics.jsonl", "sessions.json", "notes.txt"}


@pytest.mark.parametrize("options", [{"resume": True}, {"resume": False, "overwrite": True}])
def test_a_directory_of_other_files_is_left_alone(tmp_path: Path, options: dict[str, bool]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for path in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(RunError, match=r"not a run directory \(no config.json\), and not empty"):
            RunDir.prepare(path, CONFIG, **options)
        with pytest.raises(RunError, match="not a run directory"), RunDir(path).lock():
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_config_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"name": "another program"}')
    with pytest.raises(RunError, match="expected a 'gridlstm run 1', got something else"):
        RunDir.prepare(tmp_path, CONFIG, resume=False, overwrite=True)


def test_other_options_are_named(tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.raises(RunError, match=r"other options: layers was 3, now 4; rate was None, now 0.1$"):
        RunDir.prepare(tmp_path, changed(layers=4, rate=0.1), resume=True)
    with pytest.raises(RunError, match="expected a run of addition, got one of parity"):
        RunDir.prepare(tmp_path, {**CONFIG, "experiment": "addition"}, resume=True)
    RunDir.prepare(tmp_path, changed(samples=200), resume=True)


def test_an_option_newer_than_the_run_has_its_default(tmp_path: Path) -> None:
    fingerprint = begun(tmp_path).fingerprint()
    defaults = {"layers": 9, "tilt": (1, 2)}
    run = RunDir.prepare(tmp_path, changed(tilt=(1, 2), samples=200), resume=True, defaults=defaults)
    run.begin_session(0)
    assert RunDir.open(tmp_path).fingerprint() == fingerprint  # Its checkpoints can be used.
    assert RunDir.open(tmp_path).config()["options"]["samples"] == 200
    with pytest.raises(RunError, match=r"other options: tilt was \[1, 2\], now \[3\]$"):
        RunDir.prepare(tmp_path, changed(tilt=(3,)), resume=True, defaults=defaults)


def test_the_number_of_samples_is_part_of_a_schedule(tmp_path: Path) -> None:
    begun(tmp_path, changed(schedule="cosine"))
    with pytest.raises(RunError, match="samples was 100, now 200"):
        RunDir.prepare(tmp_path, changed(schedule="cosine", samples=200), resume=True)


def test_metrics_of_steps_to_come_are_dropped(tmp_path: Path) -> None:
    run = begun(tmp_path)
    for step in (1, 2, 3):
        run.append_metrics({"step": step, "samples": step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4')  # The process was killed here.
    assert [row["step"] for row in run.metrics()] == [1, 2, 3]
    run.begin_session(2, threads=1)
    run.append_metrics({"step": 3, "samples": 3})
    assert [row["step"] for row in run.metrics()] == [1, 2, 3]
    session = run.sessions()[1]
    assert session["step"] == 2
    assert {"machine", "versions", "commit", "threads"} <= session.keys()


def test_a_summary_holds_until_the_next_session(tmp_path: Path) -> None:
    """And what was measured, for as long as the model is the same."""
    run = begun(tmp_path)
    run.finish_session({"reason": "samples"}, "one")
    run.write_result("evaluation.json", {})
    assert run.summary() == {"reason": "samples", "session": 1, "model": "one"}
    run.begin_session(1)
    assert run.summary() is None
    assert (tmp_path / "summary.json").exists()
    run.finish_session({"reason": "samples"}, "one")
    assert run.summary() is not None
    assert (tmp_path / "evaluation.json").exists()
    run.begin_session(1)
    run.finish_session({"reason": "solved"}, "two")
    assert run.summary() == {"reason": "solved", "session": 3, "model": "two"}
    assert not (tmp_path / "evaluation.json").exists()


def test_a_summary_of_an_older_version_holds_until_the_next_session(tmp_path: Path) -> None:
    run = begun(tmp_path)
    (tmp_path / "summary.json").write_text('{"reason": "samples"}')
    assert run.summary() == {"reason": "samples"}
    run.begin_session(1)
    assert run.summary() is None


def test_only_one_process_trains(tmp_path: Path) -> None:
    first = RunDir(tmp_path / "run")
    busy = rf"run: in use by process {os.getpid()} on {re.escape(socket.gethostname())}; stop it first"
    with first.lock():
        begun(first.path)
        unfinished = first.path / ".summary.json.tmp-of-the-first"
        unfinished.write_text("{")
        with pytest.raises(RunError, match=busy), RunDir(tmp_path / "run").lock():
            pass
        assert unfinished.exists()
        RunDir.open(first.path).write_result("evaluation.json", {})  # Readers need no lock.
    (first.path / ".evaluation.json.tmp-of-another-host").write_text("{")
    with RunDir(tmp_path / "run").lock():
        assert not unfinished.exists()
        assert (first.path / ".evaluation.json.tmp-of-another-host").exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, None])
def test_without_locks_it_works_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, "no locks here")

    if number is None:
        monkeypatch.setattr("gridlstm.training.lock.fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", flock)
    with RunDir(tmp_path / "run").lock():
        assert begun(tmp_path / "run").sessions()


def test_what_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path / "run")

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write .*metrics.jsonl: .*No space left on device"):
        run.append_metrics({"step": 1})
    with pytest.raises(RunError, match=r"cannot write .*summary.json: .*No space left on device"):
        run.finish_session({}, "")
    with pytest.raises(RunError, match=r"cannot write .*other"):
        begun(tmp_path / "other")
    (tmp_path / "file").touch()
    with (
        pytest.raises(RunError, match=r"cannot write .*file"),
        RunDir(tmp_path / "file" / "run").lock(),
    ):
        pass


@pytest.mark.parametrize("content", ["", "[1]", '{"format": "something else"}'])
def test_foreign_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config.json"):
        RunDir.open(tmp_path)
    with pytest.raises(RunError, match=r"nowhere: not a run directory \(no config\.json\)"):
        RunDir.open(tmp_path / "nowhere")


DEEP = "[" * 100_000
SHAPES = {
    "config.json": ["{damaged", "[]", "7", DEEP, *('{"format": "gridlstm run 1"' + rest for rest in (
        "}", ', "experiment": "parity"}', ', "experiment": 3, "options": {}}',
        ', "experiment": "parity", "options": []}',
        ', "experiment": "parity", "options": {}, "data": [1]}',
    ))],
    "sessions.json": ["{damaged", "{}", "7", "[1]", DEEP, "\xff"],
    "summary.json": ["{damaged", "[]", "null", DEEP, "{}", '{"reason": 3}'],
    "metrics.jsonl": ["{damaged", "[]", "7", DEEP, "{}", '{"step": 1}', '{"step": "1", "samples": 1}',
        '{"step": NaN, "samples": 1}', '{"step": -1, "samples": 1}', '{"step": 1e400, "samples": 1}',
        '{"step": 1, "samples": 1, "loss": [1]}', '{"step": 1, "samples": 1, "loss": null}',
        f'{{"step": 1, "samples": {10**400}}}', f'{{"step": 1, "samples": 1, "loss": {10**400}}}',
        '{"step": 1, "samples": ' + "9" * 5000 + "}"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"), [(name, content) for name in SHAPES for content in SHAPES[name]]
)
def test_files_of_another_shape_are_named_in_one_line(tmp_path: Path, name: str, content: str) -> None:
    run = begun(tmp_path)
    (tmp_path / name).write_bytes(f"{content}\n".encode("latin-1"))
    readers = (run.config, run.sessions, run.metrics, run.summary)
    with pytest.raises(RunError, match=re.escape(name)) as raised:
        [read() for read in readers]
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_options_survive_being_written_down(name: str) -> None:
    for options in EXPERIMENTS[name].presets.values():
        assert from_flat(EXPERIMENTS[name], json.loads(json.dumps(flat(options)))) == options


def test_foreign_options_are_refused() -> None:
    options = flat(replace(EXPERIMENTS["parity"].presets["smoke"], start="random"))
    with pytest.raises(ValueError, match=r"experiment: expected one of memorization, .*, got 'chess'"):
        find_experiment("chess")
    with pytest.raises(ValueError, match="expected those of parity, got others: depth"):
        from_flat(EXPERIMENTS["parity"], {**options, "depth": 3})
    older = {k: v for k, v in options.items() if k != "start"}
    assert from_flat(EXPERIMENTS["parity"], older) == from_flat(EXPERIMENTS["parity"], options)
    with pytest.raises(ValueError, match="bits: expected a task of at least 81 different samples, got"):
        from_flat(EXPERIMENTS["parity"], {**options, "bits": 2})
    with pytest.raises(ValueError, match="layers: expected at least 1, got 0"):
        from_flat(EXPERIMENTS["parity"], {**options, "layers": 0})
