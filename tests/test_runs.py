"""Runs from the command line: nothing is lost, whatever happens to files, output and processes."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gridlstm.files import checksum
from gridlstm.training.checkpoint import Checkpoint, load_newest, save_checkpoint
from gridlstm.training.rundir import RunDir

COMMAND = [sys.executable, "-m", "gridlstm"]
PARITY = ("train", "parity", "--preset", "smoke", "--rate", 1e-9, "--samples", 60)
BEST = (
    "train", "characters", "--preset", "smoke", "--validated", 200, "--evaluate-every", 16,
    "--samples", 48,
)  # fmt: skip


def lines(*options: object) -> list[str]:
    return [*COMMAND, *map(str, options)]


def tensors(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model.safetensors")


def write(gridlstm, run: Path) -> str:
    """What the network of a run writes."""
    code, output, _ = gridlstm("generate", run, "--length", 50)
    assert (code, len(output)) == (0, 51)
    return output


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps the best network, and has ended."""
    run = tmp_path_factory.mktemp("runs") / "ended"
    subprocess.run(lines(*BEST, "--out", run), check=True, capture_output=True)
    return run


@pytest.fixture(scope="module")
def ended_parity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "parity"
    subprocess.run(lines(*PARITY, "--out", run), check=True, capture_output=True)
    return run


@pytest.fixture
def run(ended: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(ended, tmp_path / "run"))


def test_a_resume_that_fails_leaves_a_finished_model(gridlstm, run: Path) -> None:
    """Whatever of the rest is damaged."""
    before = (run / "model.safetensors").read_bytes()
    evaluation = gridlstm("eval", run, "--samples", 100)
    assert evaluation[0] == 0
    for path in (run / "checkpoints").rglob("tensors.safetensors"):
        path.write_bytes(b"damaged")
    code, _, errors = gridlstm(*BEST, "--out", run, "--resume", "--samples", 80)
    assert code == 2
    assert "no usable checkpoint" in errors
    assert (run / "model.safetensors").read_bytes() == before
    assert gridlstm("eval", run, "--samples", 100) == evaluation


def test_a_resumed_run_keeps_its_model_until_it_ends_again(
    gridlstm, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, text = tensors(run), write(gridlstm, run)
    monkeypatch.setattr(
        "gridlstm.training.trainer.Trainer.run", lambda *_: (_ for _ in ()).throw(OSError("no power"))
    )
    code, _, errors = gridlstm(*BEST, "--out", run, "--resume", "--samples", 80)
    assert (code, errors) == (1, "gridlstm train: no power\n")
    assert same(tensors(run), model)
    assert RunDir.open(run).summary() is None
    monkeypatch.undo()
    assert write(gridlstm, run) == text


def test_the_model_is_the_network_that_the_summary_names(gridlstm, run: Path) -> None:
    """The best weights are part of the checkpoint: not those of a session that was lost."""
    summary = RunDir.open(run).summary()
    assert summary is not None
    assert summary["model"] == checksum(run / "model.safetensors")
    checkpoint = load_newest(run / "checkpoints", RunDir.open(run).fingerprint())
    assert checkpoint is not None
    assert checkpoint.state["best"] == summary["best"]
    for name, tensor in tensors(run).items():
        assert torch.equal(checkpoint.tensors[f"best.{name}"], tensor)
    assert not (run / "best.safetensors").exists()


def test_a_damaged_model_is_passed_over_for_its_checkpoint(gridlstm, run: Path, caplog) -> None:
    code, first, _ = gridlstm("eval", run, "--samples", 500)
    assert code == 0
    model = tensors(run)
    save_file({name: t.clone().zero_() for name, t in model.items()}, run / "model.safetensors")
    code, second, _ = gridlstm("eval", run, "--samples", 500)
    assert (code, first) == (0, second)
    assert "its checksum is not that of the run" in caplog.text


def _older(run: Path) -> None:
    """Makes of a run one that an older version could have left: the best weights in a file."""
    shutil.copy(run / "model.safetensors", run / "best.safetensors")
    summary = json.loads((run / "summary.json").read_text())
    del summary["session"], summary["model"]
    (run / "summary.json").write_text(json.dumps(summary))
    for path in (run / "checkpoints").iterdir():
        _rewrite(path)


def _rewrite(path: Path) -> None:
    """A checkpoint without the best weights."""
    described = json.loads((path / "state.json").read_text())
    step, state, fingerprint = described["step"], described["state"], described["origin"]
    kept = load_file(path / "tensors.safetensors")
    kept = {name: tensor for name, tensor in kept.items() if not name.startswith("best.")}
    shutil.rmtree(path)
    save_checkpoint(path.parent, Checkpoint(step, kept, state), fingerprint)


@pytest.mark.parametrize("damaged", [(), ("best",), ("best", "model")])
def test_runs_of_older_versions_are_resumed(
    gridlstm, run: Path, tmp_path: Path, caplog, damaged: tuple[str, ...]
) -> None:
    model, text = tensors(run), write(gridlstm, run)
    _older(run)
    for name in damaged:
        (run / f"{name}.safetensors").write_bytes(b"damaged")
    if len(damaged) < 2:
        assert write(gridlstm, run) == text
    assert gridlstm(*BEST, "--out", run, "--resume")[0] == 0
    if len(damaged) < 2:
        assert same(tensors(run), model)
    else:
        assert "the best weights so far are lost" in caplog.text
    assert gridlstm(*BEST, "--out", run, "--resume", "--samples", 64)[0] == 0
    assert not (run / "best.safetensors").exists()
    assert RunDir.open(run).summary() is not None


def test_a_run_started_before_an_option_existed_is_resumed(gridlstm, tmp_path: Path) -> None:
    """With the option's default, and from its checkpoints."""
    assert gridlstm(*PARITY, "--out", tmp_path / "whole", "--samples", 120)[0] == 0
    run, momentum = tmp_path / "run", ("--momentum", 0.5)
    assert gridlstm(*PARITY, "--out", run)[0] == 0
    _without(run, "momentum")
    code, _, errors = gridlstm(*PARITY, "--out", run, "--resume", *momentum)
    assert code == 2
    assert errors.endswith("cannot be resumed with other options: momentum was 0.95, now 0.5\n")
    code, _, errors = gridlstm(*PARITY, "--out", run, "--resume", "--samples", 120)
    assert (code, errors) == (0, "")
    assert RunDir.open(run).sessions()[-1]["step"] == 4
    assert same(tensors(run), tensors(tmp_path / "whole"))


def _without(run: Path, option: str) -> None:
    """Makes of a run one that is older than an option."""
    checkpoint = load_newest(run / "checkpoints", RunDir.open(run).fingerprint())
    assert checkpoint is not None
    config = json.loads((run / "config.json").read_text())
    del config["options"][option]
    (run / "config.json").write_text(json.dumps(config))
    shutil.rmtree(run / "checkpoints")
    save_checkpoint(run / "checkpoints", Checkpoint(*checkpoint), RunDir.open(run).fingerprint())


def test_two_processes_do_not_train_in_one_place(gridlstm, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = lines(*PARITY, "--samples", 10**8, "--out", run, "--resume")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # It is under way.
        for option in ("--resume", "--overwrite"):
            code, _, errors = gridlstm(*PARITY, "--samples", 10**8, "--out", run, option)
            assert code == 2
            assert f"run: in use by process {process.pid} on " in errors
            assert errors.count("\n") == 1
        assert "not ended" in gridlstm("list", "--folder", tmp_path)[1]
        process.kill()
    code, _, errors = gridlstm(*PARITY, "--out", run, "--resume", "--minutes", 0.001)
    assert (code, errors) == (0, "")


def test_a_run_is_overwritten_only_if_asked(gridlstm, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert gridlstm(*PARITY, "--out", run, "--seed", 1)[0] == 0
    assert gridlstm("eval", run, "--samples", 100)[0] == 0
    code, _, errors = gridlstm(*PARITY, "--out", run, "--overwrite", "--resume")
    assert (code, errors) == (2, "gridlstm: overwrite: cannot be combined with --resume\n")
    code, _, errors = gridlstm(*PARITY, "--out", run, "--seed", 2)
    assert code == 2
    assert "the run already exists; pass --resume to continue it, --overwrite to replace it" in errors
    assert gridlstm(*PARITY, "--out", run, "--seed", 2, "--overwrite")[0] == 0
    assert gridlstm(*PARITY, "--out", tmp_path / "other", "--seed", 2, "--overwrite")[0] == 0
    assert same(tensors(run), tensors(tmp_path / "other"))
    assert {p.name for p in run.iterdir()} == {p.name for p in (tmp_path / "other").iterdir()}


def test_a_run_that_cannot_start_overwrites_nothing(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert gridlstm(*PARITY, "--out", run)[0] == 0
    before = {path: path.read_bytes() for path in run.rglob("*.[js]*") if path.is_file()}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    code, _, errors = gridlstm(*PARITY, "--out", tmp_path / "mine", "--overwrite")
    assert code == 2
    assert "not a run directory" in errors

    def no_memory(*_: object) -> None:
        raise OSError("no memory for this network")

    monkeypatch.setattr("gridlstm.training.trainer.make_optimizer", no_memory)
    code, _, errors = gridlstm(*PARITY, "--out", run, "--overwrite")
    assert (code, errors) == (1, "gridlstm train: no memory for this network\n")
    assert {path: path.read_bytes() for path in run.rglob("*.[js]*") if path.is_file()} == before


@pytest.mark.parametrize("output", ["closed pipe", "full device", "closed", "terminal"])
def test_training_goes_on_without_its_output(tmp_path: Path, output: str) -> None:
    run = tmp_path / "run"
    command = lines(*PARITY, "--evaluate-every", 15, "--out", run)
    if output == "closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
    elif output == "full device":
        if not Path("/dev/full").exists():
            pytest.skip("there is no /dev/full")
        writer = os.open("/dev/full", os.O_WRONLY)
    elif output == "terminal":
        reader, writer = pty.openpty()
    else:
        command, writer = (
            ["sh", "-c", 'exec "$@" >&-', "sh", *command],
            os.open(os.devnull, os.O_WRONLY),
        )
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        if output == "terminal":
            threading.Timer(0.5, os.close, [reader]).start()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(120)) == ("", 0)
    summary = RunDir.open(run).summary()
    assert summary is not None
    assert summary["samples"] == 60
    assert len(RunDir.open(run).metrics()) == 4


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_is_closed_leaves_a_checkpoint(tmp_path: Path, ignored: bool) -> None:
    """Also if the signal comes twice; a run under nohup goes on."""
    run = tmp_path / "run"
    options = ("--samples", 10**8, "--evaluate-every", 1500, "--out", run)
    command = lines(*PARITY, *options)
    ignore = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"] if ignored else []
    with subprocess.Popen([*ignore, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(2):
            process.send_signal(signal.SIGHUP)
        if ignored:
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
        end = json.loads(process.stdout.read().splitlines()[-1])["end"]
        assert process.wait(60) == 128 + (signal.SIGTERM if ignored else signal.SIGHUP)
    assert end["reason"] == "interrupted"
    assert [path.name for path in (run / "checkpoints").iterdir()] == [f"step-{end['samples'] // 15}"]


def test_metrics_that_cannot_be_written_end_a_run(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert gridlstm(*PARITY, "--out", run)[0] == 0
    before = (run / "model.safetensors").read_bytes()
    opened = Path.open

    def full(self: Path, mode: str = "r", *rest: object, **options: object) -> object:
        if self.name == "metrics.jsonl" and mode == "a":
            raise OSError(28, "No space left on device")
        return opened(self, mode, *rest, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    code, _, errors = gridlstm(*PARITY, "--out", run, "--resume", "--samples", 120)
    assert code == 1
    assert errors.count("\n") == 1
    assert errors.startswith("gridlstm train: cannot write ")
    assert (run / "model.safetensors").read_bytes() == before
    monkeypatch.undo()
    code, output, _ = gridlstm(*PARITY, "--out", run, "--resume", "--samples", 120)
    assert (code, json.loads(output.splitlines()[-1])["end"]["samples"]) == (0, 120)
    assert RunDir.open(run).metrics()[-1]["samples"] == 120


def test_another_kernel_is_logged(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    assert gridlstm(*PARITY, "--out", tmp_path / "run")[0] == 0
    kernel = RunDir.open(tmp_path / "run").sessions()[0]["kernel"]
    assert kernel.split()[0] in ("c", "pytorch")
    monkeypatch.setattr("gridlstm.commands.train.kernel_name", lambda: "c another")
    assert gridlstm(*PARITY, "--out", tmp_path / "run", "--resume", "--samples", 120)[0] == 0
    assert "not bit for bit: kernel differ" in caplog.text


STATES = {
    "seconds": ["1", None, -1, [], float("nan"), 10**400],
    "losses": [1, {"a": 1}, ["1"], [None], None],
    "measures": [[], {"error": "0"}, None, 3],
    "best": [[1], {"error": {}}, "best"],
    "optimizer": [[], {"99.step": 1}, {"x": 1}, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name in STATES for v in STATES[name]])
def test_a_state_of_another_shape_is_one_line(
    gridlstm, tmp_path: Path, name: str, value: object, ended_parity: Path
) -> None:
    """Even if all checksums are right."""
    run = Path(shutil.copytree(ended_parity, tmp_path / "run"))
    fingerprint = RunDir.open(run).fingerprint()
    checkpoint = load_newest(run / "checkpoints", fingerprint)
    assert checkpoint is not None
    checkpoint.state[name] = value
    save_checkpoint(run / "checkpoints", checkpoint, fingerprint)
    code, _, errors = gridlstm(*PARITY, "--out", run, "--resume", "--samples", 120)
    assert code == 2
    assert errors.count("\n") == 1
    assert "the checkpoint of step 4 is damaged" in errors
