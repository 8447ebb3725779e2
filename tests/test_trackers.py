"""``--track``: metrics in TensorBoard and Weights & Biases.

What needs the packages is tested by ``make test-extras``, which installs them.
"""

import json
import logging
import os
import struct
import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

from gridlstm.training.rundir import RunDir

BRIEF = ("--preset", "smoke", "--evaluate-every", 75, "--rate", 1e-9)
MEASURES = {"seconds", "loss", "accuracy", "whole"}


def train(gridlstm, out: Path, *options: object) -> tuple[int, str, str]:
    return gridlstm("train", "parity", *BRIEF, "--out", out, *options)


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_one_line(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("gridlstm.training.trackers.find_spec", lambda _: None)
    code, out, err = train(gridlstm, tmp_path / "run", "--track", name)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"track: {name} is not installed: pip install 'gridlstm[{name}]'" in err
    assert not (tmp_path / "run").exists()


class FakeTracker:
    """A tracker that notes its calls, and fails at one of them."""

    def __init__(self, fails: str) -> None:
        self.fails, self.calls = fails, []

    def __call__(self, name: str, run: RunDir, samples: int) -> "FakeTracker":
        return self._call("start", name, samples)

    def add(self, values: dict[str, float], samples: int) -> None:
        self._call("add", set(values), samples)

    def close(self, *, failed: bool) -> None:
        self._call("close", failed)

    def _call(self, method: str, *arguments: object) -> "FakeTracker":
        self.calls.append((method, *arguments))
        if method == self.fails:
            raise OSError("no\nnetwork")
        return self


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> FakeTracker:
    tracker = FakeTracker(request.param)
    monkeypatch.setattr("gridlstm.training.trackers.find_spec", lambda _: True)
    monkeypatch.setattr("gridlstm.training.trackers.start_tracker", tracker)
    return tracker


@pytest.mark.parametrize("fake", [""], indirect=True)
def test_what_a_tracker_is_told(gridlstm, tmp_path: Path, fake: FakeTracker) -> None:
    assert train(gridlstm, tmp_path / "run", "--samples", 150, "--track", "wandb")[0] == 0
    assert fake.calls == [
        ("start", "wandb", 0),
        ("add", MEASURES, 75),
        ("add", MEASURES, 150),
        ("close", False),
    ]
    fake.calls.clear()
    longer = ("--samples", 225, "--track", "tensorboard", "--resume")
    assert train(gridlstm, tmp_path / "run", *longer)[0] == 0
    assert fake.calls == [("start", "tensorboard", 150), ("add", MEASURES, 225), ("close", False)]


@pytest.mark.parametrize("fake", [""], indirect=True)
def test_a_tracker_is_told_of_a_failure(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeTracker
) -> None:
    monkeypatch.setattr("gridlstm.training.trainer.Trainer.update", lambda self: 1 / 0)
    assert train(gridlstm, tmp_path / "run", "--samples", 150, "--track", "wandb")[0] != 0
    assert fake.calls == [("start", "wandb", 0), ("close", True)]


@pytest.mark.parametrize("fake", ["start", "add", "close"], indirect=True)
def test_a_tracker_that_fails_does_not_stop_a_run(
    gridlstm, tmp_path: Path, fake: FakeTracker, caplog: pytest.LogCaptureFixture
) -> None:
    options = ("--samples", 150)
    with caplog.at_level(logging.WARNING, "gridlstm"):
        assert train(gridlstm, tmp_path / "run", *options, "--track", "wandb")[0] == 0
    (record,) = caplog.records
    assert record.getMessage() == "wandb failed, and the run goes on without it: no network"
    assert fake.calls[-1][0] == fake.fails  # It is not called again.
    assert train(gridlstm, tmp_path / "plain", *options)[0] == 0
    tracked, plain = (RunDir.open(tmp_path / name) for name in ("run", "plain"))
    assert tracked.model.read_bytes() == plain.model.read_bytes()
    assert [row["loss"] for row in tracked.metrics()] == [row["loss"] for row in plain.metrics()]
    assert tracked.summary() is not None


@pytest.mark.parametrize("fake", [""], indirect=True)
def test_the_network_is_written_before_a_tracker_ends(
    gridlstm, tmp_path: Path, fake: FakeTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end may wait for a network for long."""
    run = RunDir(tmp_path / "run")
    summaries = []
    monkeypatch.setattr(fake, "close", lambda *, failed: summaries.append(run.summary()))
    train(gridlstm, run.path, "--samples", 75, "--track", "wandb")
    assert summaries[0]["reason"] == "samples"


def test_overwriting_removes_the_files_of_trackers(gridlstm, tmp_path: Path) -> None:
    assert train(gridlstm, tmp_path / "run", "--samples", 15)[0] == 0
    for name in ("tensorboard", "wandb"):
        (tmp_path / "run" / name).mkdir()
    assert train(gridlstm, tmp_path / "run", "--samples", 15, "--overwrite")[0] == 0
    assert not {"tensorboard", "wandb"} & {path.name for path in (tmp_path / "run").iterdir()}


def test_calls_of_wandb(gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a module in its place: the id is kept, and so is what the user has set."""
    calls = []

    class Run:
        def log(self, values: dict[str, float], step: int) -> None:
            calls.append(step)

        def finish(self, exit_code: int) -> None:
            calls.append(("finish", exit_code))

    def init(**arguments: object) -> Run:
        calls.append(arguments)
        return Run()

    fake = types.SimpleNamespace(init=init, Settings=lambda **settings: settings)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setattr("gridlstm.training.trackers.find_spec", lambda _: True)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    assert train(gridlstm, tmp_path / "run", "--samples", 75, "--track", "wandb")[0] == 0
    monkeypatch.delenv("WANDB_PROJECT")
    options = ("--samples", 150, "--track", "wandb", "--resume")
    assert train(gridlstm, tmp_path / "run", *options)[0] == 0
    first, second = (call for call in calls if isinstance(call, dict))
    assert first["id"] == second["id"] == (tmp_path / "run" / "wandb" / "run-id").read_text()
    assert (first["resume"], first["name"], first["dir"]) == ("allow", "run", tmp_path / "run")
    assert (first["project"], second["project"]) == ("mine", "gridlstm")
    assert first["config"]["experiment"] == "parity"
    assert (first["config"]["samples"], second["config"]["samples"]) == (75, 150)
    assert [call for call in calls if not isinstance(call, dict)] == [
        75,
        ("finish", 0),
        150,
        ("finish", 0),
    ]


def test_calls_of_tensorboard(gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    class SummaryWriter:
        def __init__(self, folder: str, purge_step: int) -> None:
            written.append((folder, purge_step))

        def add_scalar(self, name: str, value: float, samples: int) -> None:
            written.append((name, samples))

        def close(self) -> None:
            written.append("closed")

    fake = types.SimpleNamespace(SummaryWriter=SummaryWriter)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    monkeypatch.setattr("gridlstm.training.trackers.find_spec", lambda _: True)
    assert train(gridlstm, tmp_path / "run", "--samples", 75, "--track", "tensorboard")[0] == 0
    assert written[0] == (str(tmp_path / "run" / "tensorboard"), 1)
    assert set(written[1:-1]) == {(name, 75) for name in MEASURES}
    assert written[-1] == "closed"


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="needs gridlstm[tensorboard]")
def test_files_of_tensorboard(gridlstm, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = ("--track", "tensorboard", "--samples")
    assert train(gridlstm, tmp_path / "run", *options, 150)[0] == 0
    assert train(gridlstm, tmp_path / "run", *options, 300, "--resume")[0] == 0
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == MEASURES
    losses = {event.step: event.value for event in events.Scalars("loss")}
    assert losses == {
        row["samples"]: pytest.approx(row["loss"]) for row in RunDir(tmp_path / "run").metrics()
    }
    assert list(losses) == [75, 150, 225, 300]


@pytest.mark.skipif(find_spec("wandb") is None, reason="needs gridlstm[wandb]")
def test_files_of_wandb(tmp_path: Path) -> None:
    """Offline: what would be uploaded is in files of the run. As for users, a session is a process."""
    for samples in ("150", "300"):
        options = ["--track", "wandb", "--samples", samples, "--resume"]
        command = [sys.executable, "-m", "gridlstm", "train", "parity", *map(str, BRIEF), *options]
        done = subprocess.run(
            [*command, "--out", str(tmp_path / "run")],
            env={**os.environ, "WANDB_MODE": "offline"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "the run goes on without it" not in done.stderr
    files = sorted((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))
    sessions = [_records(file) for file in files]
    assert len(sessions) == 2
    starts = [record.run for records in sessions for record in records if record.HasField("run")]
    number = (tmp_path / "run" / "wandb" / "run-id").read_text()
    assert {(start.run_id, start.project, start.display_name) for start in starts} == {
        (number, "gridlstm", "run")
    }
    config = {item.key: json.loads(item.value_json) for item in starts[0].config.update}
    assert config["experiment"] == "parity"
    assert config["samples"] == 150
    losses = {}
    for record in (record for records in sessions for record in records):
        if record.HasField("history"):
            row = {"".join(item.nested_key): item.value_json for item in record.history.item}
            losses[json.loads(row["_step"])] = json.loads(row["loss"])
    assert losses == {row["samples"]: row["loss"] for row in RunDir(tmp_path / "run").metrics()}
    assert list(losses) == [75, 150, 225, 300]


def _records(path: Path) -> list:
    """The records in a file of wandb: a header of 7 bytes, then checksum, length, kind and content."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, place, records = path.read_bytes(), 7, []
    assert content[:4] == b":W&B"
    assert len(content) < 2**15  # Longer files have blocks.
    while place < len(content):
        _, length, kind = struct.unpack_from("<IHB", content, place)
        assert kind == 1  # A whole record.
        records.append(Record.FromString(content[place + 7 : place + 7 + length]))
        place += 7 + length
    return records
