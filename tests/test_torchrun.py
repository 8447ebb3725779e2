"""Several processes: they learn what one with the joint batch learns, and survive each other."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

OPTIONS = [
    "train", "memorization", "--preset", "smoke", "--batch", "16", "--evaluate-every", "160",
    "--samples", "3200", "--length", "4",
]  # fmt: skip


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return [*launch, f"--max-restarts={restarts}", "-m", "gridlstm", *arguments]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def rows(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    alone = [sys.executable, "-m", "gridlstm", *OPTIONS, "--out", str(one)]
    subprocess.run(alone, check=True, capture_output=True, env=ENVIRONMENT)
    subprocess.run(
        torchrun(*OPTIONS, "--out", str(two)), check=True, capture_output=True, env=ENVIRONMENT
    )
    a, b = rows(one), rows(two)
    assert [row["samples"] for row in a] == [row["samples"] for row in b]
    assert [row["loss"] for row in b] == pytest.approx([row["loss"] for row in a], rel=1e-3)
    assert a[-1]["loss"] < 0.7 * a[0]["loss"]
    x, y = (load_file(run / "model.safetensors") for run in (one, two))
    assert all((x[name] - y[name]).abs().max() < 0.05 for name in x)
    assert json.loads((two / "sessions.json").read_text())[0]["processes"] == 2


def test_a_batch_that_cannot_be_shared_leaves_nothing_behind(tmp_path: Path) -> None:
    options = ["train", "parity", "--preset", "smoke", "--out", str(tmp_path / "run")]
    failed = subprocess.run(
        torchrun(*options), check=False, capture_output=True, text=True, env=ENVIRONMENT
    )
    assert failed.returncode != 0
    assert "batch: expected a multiple of the 2 processes, got 15" in failed.stderr
    assert not (tmp_path / "run").exists()


def test_a_killed_process_is_replaced(tmp_path: Path) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    options = [*OPTIONS, "--checkpoint-minutes", "0.001"]
    process = subprocess.Popen(
        torchrun(*options, "--out", str(run), "--resume", restarts=3),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list((run / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    victim = _child(process.pid)
    os.kill(victim, signal.SIGKILL)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert json.loads(output.splitlines()[-1])["end"]["samples"] == 3200
    sessions = json.loads((run / "sessions.json").read_text())
    assert len(sessions) == 2
    assert sessions[1]["step"] > 0
    subprocess.run(
        torchrun(*OPTIONS, "--out", str(whole)), check=True, capture_output=True, env=ENVIRONMENT
    )
    assert [row["loss"] for row in rows(run)] == [row["loss"] for row in rows(whole)]


def _child(parent: int) -> int:
    """The second worker of the launcher."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[-1])


def test_two_processes_share_the_streams_of_a_text(tmp_path: Path) -> None:
    """The state that each carries is in the checkpoint, and goes on with one process as with two."""
    options = ["train", "characters", "--preset", "smoke", "--validated", "500"]
    one, two = tmp_path / "one", tmp_path / "two"
    alone = [sys.executable, "-m", "gridlstm", *options]
    subprocess.run([*alone, "--out", str(one)], check=True, capture_output=True, env=ENVIRONMENT)
    for samples in ("160", "480"):  # Within a sequence: state is carried over the end of a session.
        command = torchrun(*options, "--out", str(two), "--samples", samples, "--resume")
        subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    command = [*alone, "--out", str(two), "--samples", "800", "--resume"]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    assert rows(two)[-1]["bits"] == pytest.approx(rows(one)[-1]["bits"], rel=1e-2)
    last = json.loads((two / "sessions.json").read_text())[-1]
    assert (last["processes"], last["step"]) == (1, 30)
