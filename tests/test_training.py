"""The trainer: a stopped run continues as if it had never stopped, and damaged files are not used."""

import json
import logging
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gridlstm.training.checkpoint import Checkpoint, CheckpointError, load_newest, save_checkpoint
from gridlstm.training.schedule import rate_factor
from gridlstm.training.settings import Training
from gridlstm.training.trainer import Measures, Outcome, Trainer, TrainingError


class Mix(nn.Module):
    """A matrix that is not that of an nn.Linear."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Line:
    """A linear problem with dropout, tied weights, and something carried from update to update."""

    adam_parameters = ("0.*",)
    matrix_rows = None

    def __init__(self, nan_at: int | None = None) -> None:
        self.mean = torch.zeros(4)
        self.nan_at = nan_at

    def network(self) -> nn.Module:
        layer = nn.Linear(4, 4)
        return nn.Sequential(layer, nn.Dropout(0.5), Mix(), layer)

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        generator = torch.Generator().manual_seed(first)
        x = torch.randn(count, 4, generator=generator)
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        loss: Tensor = (network(x) - x - self.mean).square().mean()
        return loss * float("nan") if first == self.nan_at else loss

    def data(self) -> dict[str, str]:
        return {}

    def show(self, count: int) -> Iterator[str]:
        return map(str, range(count))

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        yield f"error {self.evaluate(network, 1)['error']:.2f}"

    def test(self, network: nn.Module, samples: int | None, options: object) -> Measures:
        return self.evaluate(network, samples or 1)

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        x = torch.eye(4) * number
        return {"error": (network(x) - x).abs().mean().item()}

    def solved(self, measures: Mapping[str, float]) -> bool:
        return measures["error"] < 1e-3

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        return not best or measures["error"] < best["error"]

    def carried(self) -> dict[str, Tensor]:
        return {"mean": self.mean}

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        self.mean = tensors["mean"]


class Watcher:
    """Records evaluations, and interrupts after some updates."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rows: list[Measures] = []
        self.left = stop_after

    def stepped(self, samples: int, loss: float) -> None:
        if self.left is not None:
            self.left -= 1

    def evaluated(self, row: Measures) -> None:
        self.rows.append(row)

    def interrupted(self) -> bool:
        return self.left == 0


SETTINGS = Training(batch=8, samples=8 * 40, evaluate_every=24, warmup=80, schedule="cosine", seed=3)


def start(
    folder: Path, settings: Training = SETTINGS, stop: int | None = None
) -> tuple[Trainer, Watcher, Outcome]:
    trainer, watcher = Trainer(Line(), settings, folder), Watcher(stop)
    return trainer, watcher, trainer.run(watcher)


def weights(trainer: Trainer) -> list[Tensor]:
    return [p.detach().clone() for p in trainer.network.parameters()]


@pytest.mark.parametrize("optimizer", ["adam", "muon", "adagrad", "sgd"])
def test_a_run_that_is_stopped_often_ends_bit_for_bit_the_same(tmp_path: Path, optimizer: str) -> None:
    settings = Training(**{**SETTINGS.__dict__, "optimizer": optimizer})
    whole, seen, outcome = start(tmp_path / "whole", settings)
    assert (outcome.reason, outcome.samples) == ("samples", 320)
    rows = []
    for stop in (7, 1, 12, 3, None):
        parted, watcher, outcome = start(tmp_path / "parts", settings, stop)
        rows += watcher.rows
        assert outcome.reason == ("interrupted" if stop else "samples")
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(parted), strict=True))
    assert [{**row, "seconds": 0} for row in rows] == [{**row, "seconds": 0} for row in seen.rows]
    assert torch.equal(whole.problem.carried()["mean"], parted.problem.carried()["mean"])
    assert whole.best == parted.best
    assert whole.best["error"] == min(row["error"] for row in seen.rows)


def test_checkpoints_are_kept_two_at_a_time(tmp_path: Path) -> None:
    for stop in (2, 3, 4):
        start(tmp_path, stop=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-5", "step-9"]


@pytest.mark.parametrize(
    "damage", ["truncated", "changed", "foreign", "no state", "not json", "unfinished"]
)
def test_a_damaged_checkpoint_is_skipped(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    start(tmp_path, stop=5)
    start(tmp_path, stop=5)
    newest = tmp_path / "step-10"
    tensors, state = newest / "tensors.safetensors", newest / "state.json"
    if damage == "truncated":
        tensors.write_bytes(tensors.read_bytes()[:-10])
    elif damage == "changed":
        content = bytearray(tensors.read_bytes())
        content[-1] ^= 1
        tensors.write_bytes(bytes(content))
    elif damage == "foreign":
        state.write_text(json.dumps({"format": "something else"}))
    elif damage == "no state":
        state.unlink()
    elif damage == "not json":
        state.write_text("{")
    else:
        newest.rename(tmp_path / ".step-10.123")
    with caplog.at_level(logging.WARNING, "gridlstm"):
        checkpoint = load_newest(tmp_path)
    assert checkpoint is not None
    assert checkpoint.step == 5
    assert bool(caplog.records) == (damage != "unfinished")
    whole, *_ = start(tmp_path.with_name("whole"))
    resumed, *_ = start(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(resumed), strict=True))


@pytest.mark.parametrize("kind", ["origin", "step", "shape", "name", "state"])
def test_a_checkpoint_of_another_run_is_skipped(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    start(tmp_path, stop=5)
    newest = tmp_path / "step-10"
    if kind == "origin":
        save_checkpoint(
            tmp_path, Checkpoint(10, {"network.0.weight": torch.ones(4, 4)}, {}), "another run"
        )
    elif kind == "step":
        start(tmp_path, stop=4)
        (tmp_path / "step-9").rename(newest)
    elif kind == "shape":
        save_checkpoint(tmp_path, Checkpoint(10, {"network.0.weight": torch.ones(1, 1)}, {}))
    elif kind == "name":
        save_checkpoint(tmp_path, Checkpoint(10, {"network.weight": torch.ones(4, 4)}, {}))
    else:
        start(tmp_path, stop=5)
        state = newest / "state.json"
        state.write_text(state.read_text().replace('"seconds": ', '"seconds": 1'))
    whole, *_ = start(tmp_path.with_name("whole"))
    with caplog.at_level(logging.WARNING, "gridlstm"):
        trainer = Trainer(Line(), SETTINGS, tmp_path)
    assert trainer.step == 5
    assert "step-10" in caplog.text
    trainer.run(Watcher())
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(trainer), strict=True))


def test_damaged_checkpoints_do_not_push_out_good_ones(tmp_path: Path) -> None:
    start(tmp_path, stop=5)
    for step in (20, 30):
        (tmp_path / f"step-{step}").mkdir()
    start(tmp_path, stop=2)
    start(tmp_path, stop=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-20",
        "step-30",
        "step-7",
        "step-8",
    ]


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    trainer = Trainer(Line(), SETTINGS, tmp_path)
    with torch.no_grad():
        next(trainer.network.parameters())[0] = torch.inf
    with pytest.raises(TrainingError, match="a weight is not finite; there is no checkpoint yet"):
        trainer.save()
    assert not list(tmp_path.iterdir())


def test_no_usable_checkpoint_is_an_error_not_a_new_start(tmp_path: Path) -> None:
    start(tmp_path, stop=5)
    (tmp_path / "step-5" / "state.json").write_text("")
    with pytest.raises(
        CheckpointError, match=r"no usable checkpoint in .*: 1 damaged or of another run"
    ):
        Trainer(Line(), SETTINGS, tmp_path)
    assert (tmp_path / "step-5" / "tensors.safetensors").exists()


def test_a_checkpoint_that_cannot_be_written_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, stop=5)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gridlstm.training.checkpoint.save_file", full)
    with pytest.raises(
        CheckpointError, match=r"cannot write checkpoint .*step-9.*No space left on device"
    ):
        save_checkpoint(tmp_path, Checkpoint(9, {"a": torch.zeros(2)}, {}))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]


def test_a_loss_that_is_not_finite_stops_before_the_update(tmp_path: Path) -> None:
    start(tmp_path, stop=5)
    trainer = Trainer(Line(nan_at=8 * 11), SETTINGS, tmp_path)
    with pytest.raises(
        TrainingError, match=r"^step 12: the loss is nan.* last checkpoint is that of step 5$"
    ):
        trainer.run(Watcher())
    assert all(p.isfinite().all() for p in trainer.network.parameters())
    checkpoint = load_newest(tmp_path)
    assert checkpoint is not None
    assert checkpoint.step == 5


def test_it_stops_when_solved_and_when_time_is_up(tmp_path: Path) -> None:
    class Easy(Line):
        def solved(self, measures: Mapping[str, float]) -> bool:
            return True

    outcome = Trainer(Easy(), SETTINGS, tmp_path / "easy").run(Watcher())
    assert (outcome.reason, outcome.samples) == ("solved", 24)
    brief = Training(**{**SETTINGS.__dict__, "samples": 10**9, "minutes": 0.002})
    assert start(tmp_path / "brief", brief)[2].reason == "minutes"


def test_the_learning_rate_rises_and_falls() -> None:
    factors = [rate_factor(SETTINGS, 8 * step) for step in range(41)]
    assert factors[0] == pytest.approx(0.1, rel=0.02)
    assert max(factors) == pytest.approx(factors[9])
    assert factors[9:] == sorted(factors[9:], reverse=True)
    assert factors[40] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch: expected at least 1, got 0"),
        ({"rate": 0.0}, "rate: expected more than 0, got 0.0"),
        ({"clip": -1.0}, "clip: expected more than 0 or None, got -1.0"),
        ({"seed": -1}, "seed: expected at least 0 and at most 2147483647, got -1"),
        ({"warmup": -1}, "warmup: expected at least 0, got -1"),
    ],
)
def test_impossible_settings(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Training(**options)


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[3])
from test_training import *
settings = Training(**{**SETTINGS.__dict__, "checkpoint_minutes": 1e-6})
trainer = Trainer(Line(), settings, Path(sys.argv[1]))
class Slow(Watcher):
    def stepped(self, samples, loss):
        time.sleep(float(sys.argv[2]))
trainer.run(Slow())
"""


def test_kill_at_random_moments(tmp_path: Path) -> None:
    """SIGKILL while checkpoints are being written all the time; the end is the same."""
    whole, *_ = start(tmp_path / "whole")
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, str(folder), "0.05", str(Path(__file__).parent)]
    generator = random.Random(0)
    killed = 0
    for _ in range(5):
        before = _newest(folder)
        process = subprocess.Popen(command)
        wanted = before + generator.randint(1, 6)
        while process.poll() is None and _newest(folder) < wanted:
            time.sleep(0.002)
        time.sleep(generator.random() * 0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait(60)
    assert killed >= 3
    assert 0 < _newest(folder) < 40
    resumed, _, outcome = start(folder)
    assert outcome.reason == "samples"
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(resumed), strict=True))
    assert not list(folder.glob(".step-*"))


def _newest(folder: Path) -> int:
    return max((int(path.name[5:]) for path in folder.glob("step-*")), default=0)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("constant", [1, 1, 1, 1, 1]),
        ("linear", [1, 0.75, 0.5, 0.25, 0.1]),
        ("cosine", [1, 0.854, 0.5, 0.146, 0.024]),
        ("trapezoid", [1, 1, 1, 1, 0.4]),
    ],
)
def test_schedules(tmp_path: Path, schedule: str, rates: list[float]) -> None:
    settings = replace(SETTINGS, batch=1, samples=20, warmup=0, schedule=schedule)  # type: ignore[arg-type]
    trainer, seen = Trainer(Line(), settings, tmp_path), []

    class RateWatcher(Watcher):
        def stepped(self, samples: int, loss: float) -> None:
            seen.append(trainer.optimizer.param_groups[0]["lr"] / settings.rate)

    trainer.run(RateWatcher())
    assert [seen[step] for step in (0, 5, 10, 15, 18)] == pytest.approx(rates, abs=1e-3)


def test_training_knows_no_network_and_no_experiment() -> None:
    """Importing all of it loads none of them; the problem above is all that the trainer needs."""
    code = """
import pkgutil, sys
from importlib import import_module
import gridlstm.training
for module in pkgutil.iter_modules(gridlstm.training.__path__):
    import_module(f"gridlstm.training.{module.name}")
parts = {name.split(".")[1] for name in sys.modules if name.startswith("gridlstm.")}
print(*sorted(parts))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    support = {"errors", "fields", "files", "pipes", "processor", "provenance", "ranges"}
    assert set(done.stdout.split()) == {"training", *support}
