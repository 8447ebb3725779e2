"""The commands as a user runs them: train, evaluate, draw, list; and what they say when they fail."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gridlstm.experiments.parity.memories import counting_neurons
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.models.deep import DeepGridLSTM

from .figure_text import figure_text

COMMAND = [sys.executable, "-c", "from gridlstm.cli import main; main()"]


FIGURES = {
    "curve": {"samples, thousands", "accuracy"},
    "depth": {"accuracy of 99%", "accuracy of 80%", "accuracy of 50%", "layers"},
    "solutions": {
        "start: weights of one size, random signs",
        "layers",
        "tied 1-LSTM",
        "input bits k (hollow: not solved)",
    },
    "memories": {"memory of counting neurons, input 01111111", "neuron", "layer"},
}
"""What is written in each kind of figure, beside numbers and networks."""


@pytest.mark.parametrize("experiment", ["memorization", "addition", "parity"])
def test_smoke(gridlstm, tmp_path: Path, experiment: str) -> None:
    run = tmp_path / "run"
    code, output, _ = gridlstm("train", experiment, "--preset", "smoke", "--out", run)
    assert code == 0
    *rows, last = (json.loads(line) for line in output.splitlines())
    assert rows == [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert {"samples", "loss", "accuracy", "whole", "seconds", "step"} <= rows[0].keys()
    assert last["end"]["reason"] in ("solved", "samples")
    assert rows[-1]["loss"] < rows[0]["loss"]
    weights = load_file(run / "model.safetensors")
    assert sum(weight.numel() for weight in weights.values()) == last["end"]["parameters"]

    code, output, _ = gridlstm("eval", run, "--samples", 250)
    assert code == 0
    evaluation = json.loads(output)
    assert evaluation["samples"] == 250
    assert abs(evaluation["accuracy"] - rows[-1]["accuracy"]) < 0.3
    written = json.loads((run / "evaluation.json").read_text())
    assert written.pop("environment")["machine"]["cores"] == os.cpu_count()
    example = json.loads((run / "demonstration.json").read_text())
    assert written.pop("demonstration") == example["lines"]
    assert written == evaluation

    kinds = ["curve", "depth", *(["solutions", "memories"] if experiment == "parity" else [])]
    for kind in kinds:
        code, output, _ = gridlstm("plot", kind, run, "--out", tmp_path / f"{kind}.v2")
        assert (code, output) == (0, f"{tmp_path / kind}.png\n{tmp_path / kind}.svg\n")
        assert FIGURES[kind] <= {*figure_text(tmp_path / kind)}
    record = EXPERIMENTS[experiment]
    options = record.presets["smoke"]
    network = record.network_title(options.network)
    labels = {f"{experiment}, {options.size} {record.unit}", f"{network}, {options.layers} layers"}
    assert labels <= {*figure_text(tmp_path / "curve")}
    assert network in figure_text(tmp_path / "depth")

    code, output, _ = gridlstm("list", "--folder", tmp_path)
    assert code == 0
    (row,) = (line for line in output.splitlines() if line.startswith("│"))
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        *("run", experiment, last["end"]["reason"], f"{last['end']['samples']:,}"),
        f"accuracy {rows[-1]['accuracy']:.4f}",
    ]

    assert gridlstm("collect", run, "--out", tmp_path / "kept.json")[0] == 0
    (kept,) = json.loads((tmp_path / "kept.json").read_text())["runs"]
    assert kept["options"]["layers"] == EXPERIMENTS[experiment].presets["smoke"].layers
    assert kept["evaluation"]["accuracy"] == evaluation["accuracy"]
    assert kept["sessions"][0]["versions"]["torch"] == torch.__version__
    assert kept["curve"][-1]["samples"] == last["end"]["samples"]


def train_briefly(gridlstm, run: Path, experiment: str, network: str) -> int:
    """Trains the smoke preset with another network. Returns its number of parameters."""
    options = ("--preset", "smoke", "--samples", 300, "--evaluate-every", 300, "--network", network)
    code, output, _ = gridlstm("train", experiment, *options, "--out", run)
    assert code == 0
    assert json.loads((run / "config.json").read_text())["options"]["network"] == network
    end = json.loads(output.splitlines()[-1])["end"]
    assert end["samples"] == 300
    return end["parameters"]


@pytest.mark.parametrize(
    ("network", "parameters"),
    [
        ("untied-grid", 32 * (11 + 1) + 2 * 2 * 64 * (32 + 1) + 11 * (32 + 1)),
        ("tied-stacked", 16 * 11 + 64 * (16 + 16 + 2) + 11 * (16 + 1)),
        ("untied-stacked", 64 * (11 + 16 + 2) + 64 * (16 + 16 + 2) + 11 * (16 + 1)),
    ],
)
def test_networks_of_the_recurrent_comparison(
    gridlstm, tmp_path: Path, network: str, parameters: int
) -> None:
    """2 layers of 16 units, 11 symbols: what reads them, the layers, the scores."""
    assert train_briefly(gridlstm, tmp_path / "run", "memorization", network) == parameters


@pytest.mark.parametrize(
    ("network", "parameters"),
    [
        ("untied-grid", 32 * (8 + 1) + 3 * 64 * (16 + 1) + 2 * (32 + 1)),
        ("tied-tanh", 16 * (8 + 1) + 16 * (16 + 1) + 2 * (16 + 1)),
        ("untied-tanh", 16 * (8 + 1) + 3 * 16 * (16 + 1) + 2 * (16 + 1)),
        ("tied-relu", 16 * (8 + 1) + 16 * (16 + 1) + 2 * (16 + 1)),
        ("untied-relu", 16 * (8 + 1) + 3 * 16 * (16 + 1) + 2 * (16 + 1)),
    ],
)
def test_networks_of_the_parity_comparison(
    gridlstm, tmp_path: Path, network: str, parameters: int
) -> None:
    """3 layers of 16 units, 8 bits: what reads them, the layers, the scores. A grid has memories."""
    run = tmp_path / "run"
    assert train_briefly(gridlstm, run, "parity", network) == parameters
    code, _, errors = gridlstm("plot", "memories", run)
    if network == "untied-grid":
        assert code == 0
        assert FIGURES["memories"] <= {*figure_text(run / "memories")}
    else:
        assert code == 2
        assert "expected a 1-LSTM trained on parity" in errors


def test_networks_have_the_sizes_of_the_paper() -> None:
    """Tied 2-LSTM, 64 symbols and a blank, d = 100: projections, weights, scores."""
    memorization = EXPERIMENTS["memorization"]
    network = memorization.make_problem(memorization.presets["paper"]).network()
    projection, weights, scores = 65 * 200 + 200, 2 * (200 * 400 + 400), 200 * 65 + 65
    assert sum(p.numel() for p in network.parameters()) == projection + weights + scores


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "parity", "--layers", "0"], "^gridlstm: layers: expected at least 1, got 0$"),
        (["train", "parity", "--rate", "0"], "^gridlstm: rate: expected more than 0, got 0.0$"),
        (
            ["train", "parity", "--threads", "0"],
            "threads: expected at least 1 or None, got 0$",
        ),
        (["train", "parity", "--show", "-1"], "^gridlstm: show: expected at least 0, got -1$"),
        (["plot", "curve"], "^gridlstm: RUN: expected the directory of at least one run, got none$"),
        (["collect"], "^gridlstm: RUN: expected the directory of at least one run, got none$"),
        (["plot", "memories", "x", "--neurons", "0"], "neurons: expected at least 1, got 0$"),
        (
            ["plot", "depth", "x", "--thresholds", "2"],
            "thresholds: expected more than 0 and at most 1, got 2.0$",
        ),
        (["eval", "x", "--samples", "0"], "samples: expected at least 1 or None, got 0$"),
        (
            ["eval", "nowhere"],
            r"^gridlstm eval: nowhere: not a run directory \(no config.json\)$",
        ),
    ],
)
def test_values_out_of_range(gridlstm, arguments: list[str], line: str) -> None:
    """Misspelt names are in test_failures.py."""
    code, output, errors = gridlstm(*arguments)
    assert code == 2
    assert not output
    assert errors.count("\n") == 1
    assert re.search(line, errors.strip()), errors


def test_help_shows_the_defaults_of_the_preset(gridlstm) -> None:
    for preset, layers in (("smoke", 3), ("paper", 25)):
        code, output, _ = gridlstm("train", "parity", "--preset", preset, "--help")
        assert code == 0
        assert f"The number of layers. (default: {layers})" in output
    assert "(default: 25)" in gridlstm("train", "parity", "--preset=paper", "--help")[1]


def test_show_prints_samples_in_the_notation_of_the_paper(gridlstm) -> None:
    code, output, _ = gridlstm("train", "addition", "--preset", "smoke", "--show", 2)
    assert code == 0
    lines = output.splitlines()
    assert len(lines) == 4
    assert [line.split()[0] for line in lines] == ["input", "target"] * 2
    a, b = (int(lines[0].split()[place]) for place in (2, 4))
    result = [symbol for symbol in lines[1].split()[1:] if symbol != "-"]
    assert int("".join(result)) == a + b


def test_a_run_of_another_configuration_is_not_resumed(gridlstm, tmp_path: Path) -> None:
    options = ("train", "parity", "--preset", "smoke", "--samples", 100, "--out", tmp_path)
    assert gridlstm(*options)[0] == 0
    code, _, errors = gridlstm(*options, "--resume", "--hidden", 17)
    assert code == 2
    assert errors.endswith("cannot be resumed with other options: hidden was 16, now 17\n")
    code, output, _ = gridlstm("train", "parity", "--out", tmp_path, "--resume", "--samples", 200)
    assert code == 0
    assert json.loads(output.splitlines()[-1])["end"]["samples"] == 210  # The first multiple of 15.


def test_a_run_that_was_extended_and_killed_has_not_ended(gridlstm, tmp_path: Path) -> None:
    options = ("--preset", "smoke", "--rate", 1e-9, "--samples", 300, "--out", tmp_path / "run")
    assert gridlstm("train", "parity", *options)[0] == 0
    evaluation = gridlstm("eval", tmp_path / "run", "--samples", 200)
    assert evaluation[0] == 0
    model = (tmp_path / "run" / "model.safetensors").read_bytes()
    more = [*COMMAND, "train", "parity", "--resume", "--out", str(tmp_path / "run")]
    process = subprocess.Popen([*more, "--samples", "100000000"], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == model  # Until there is a new one.
    assert "not ended" in gridlstm("list", "--folder", tmp_path)[1]
    # It is evaluated from the last checkpoint, whatever has become of the model.
    weights = load_file(tmp_path / "run" / "model.safetensors")
    zeros = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    save_file(zeros, tmp_path / "run" / "model.safetensors")
    assert gridlstm("eval", tmp_path / "run", "--samples", 200) == evaluation
    limit = ("--minutes", 0.001, "--resume", "--out", tmp_path / "run")
    _, output, _ = gridlstm("train", "parity", *limit)
    assert json.loads(output.splitlines()[-1])["end"]["reason"] == "minutes"


def test_an_ended_run_without_checkpoints_is_not_overwritten(gridlstm, tmp_path: Path) -> None:
    options = ("train", "parity", "--samples", 15, "--out", tmp_path / "run")
    assert gridlstm(*options, "--preset", "smoke")[0] == 0
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    code, _, errors = gridlstm(*options, "--resume")
    assert code == 2
    assert "cannot be resumed, because the run has ended and its checkpoints are gone" in errors
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_another_preset_is_refused_when_a_run_is_resumed(gridlstm, tmp_path: Path) -> None:
    options = ("train", "parity", "--samples", 15, "--out", tmp_path / "run")
    assert gridlstm(*options, "--preset", "smoke")[0] == 0
    code, _, errors = gridlstm(*options, "--preset", "smoke", "--preset=paper", "--resume")
    assert code == 2
    assert "bits was 8, now 50" in errors


def test_another_number_of_threads_is_logged(gridlstm, tmp_path: Path, caplog) -> None:
    options = ("train", "parity", "--preset", "smoke", "--out", tmp_path / "run", "--resume")
    assert gridlstm(*options, "--samples", 15)[0] == 0
    path = tmp_path / "run" / "sessions.json"
    path.write_text(path.read_text().replace('"threads": 1', '"threads": 7'))
    assert gridlstm(*options, "--samples", 30)[0] == 0
    assert "not bit for bit: threads differ" in caplog.text


def test_bfloat16(gridlstm, tmp_path: Path) -> None:
    """The loss is rounded, but not far off; weights stay in float32."""
    options = ("train", "memorization", "--preset", "smoke", "--samples", 150, "--evaluate-every", 150)
    losses = []
    for name, precision in (("exact", "--no-bfloat16"), ("rounded", "--bfloat16")):
        code, output, _ = gridlstm(*options, precision, "--out", tmp_path / name)
        assert code == 0
        losses.append(json.loads(output.splitlines()[0])["loss"])
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.01)
    weights = load_file(tmp_path / "rounded" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float32}


def test_a_run_goes_on_where_it_was_stopped(gridlstm, tmp_path: Path) -> None:
    """In parts of some milliseconds: the same weights as in one go, and the same curve."""
    options = ("train", "memorization", "--preset", "smoke", "--evaluate-every", 300, "--seed", 5)
    assert gridlstm(*options, "--out", tmp_path / "whole")[0] == 0
    reason = "minutes"
    while reason == "minutes":  # At least one update each time, however busy the machine is.
        limit = ("--minutes", 0.003, "--out", tmp_path / "parts", "--resume")
        code, output, _ = gridlstm(*options, *limit)
        assert code == 0
        reason = json.loads(output.splitlines()[-1])["end"]["reason"]
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert len(json.loads((tmp_path / "parts" / "sessions.json").read_text())) > 1
    rows = [
        [
            {**json.loads(line), "seconds": 0}
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "parts")
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_checkpoint(gridlstm, tmp_path: Path, number: signal.Signals) -> None:
    run = tmp_path / "run"
    options = ["train", "parity", "--preset", "smoke", "--samples", str(10**8), "--seed", "1"]
    options += ["--rate", "1e-9", "--evaluate-every", "1500"]
    process = subprocess.Popen(
        [*COMMAND, *options, "--out", str(run)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        json.loads(process.stdout.readline())  # It is under way.
        process.send_signal(number)
        rest = process.stdout.read().splitlines()
        assert process.wait(60) == 128 + number
    ended = json.loads(rest[-1])["end"]
    assert ended["reason"] == "interrupted"
    (checkpoint,) = (run / "checkpoints").iterdir()
    assert checkpoint.name == f"step-{ended['samples'] // 15}"
    # The checkpoint has the weights of the model.
    evaluation = gridlstm("eval", run, "--samples", 100)
    assert evaluation[0] == 0
    (run / "model.safetensors").unlink()
    assert gridlstm("eval", run, "--samples", 100) == evaluation


def test_kill_and_resume_from_the_command_line(tmp_path: Path) -> None:
    options = ["train", "memorization", "--preset", "smoke", "--length", "6", "--samples", "3000"]
    options += ["--checkpoint-minutes", "0.001"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*COMMAND, *options, "--out", str(whole)], check=True, capture_output=True)
    for kill in range(3):
        before = _newest(killed)
        process = subprocess.Popen(
            [*COMMAND, *options, "--out", str(killed), "--resume"], stdout=subprocess.DEVNULL
        )
        while process.poll() is None and _newest(killed) <= before + kill:
            time.sleep(0.005)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL  # It had not ended by itself.
    assert 0 < _newest(killed) < 200
    again = [*COMMAND, "train", "memorization", "--out", str(killed), "--resume"]  # As documented.
    subprocess.run(again, check=True, capture_output=True)
    a, b = (load_file(path / "model.safetensors") for path in (whole, killed))
    assert all(torch.equal(a[name], b[name]) for name in a)


def _newest(run: Path) -> int:
    return max((int(path.name[5:]) for path in (run / "checkpoints").glob("step-*")), default=0)


def test_a_loss_that_is_not_a_number(gridlstm, tmp_path: Path) -> None:
    options = ("--preset", "smoke", "--rate", 1e30, "--clip", "None", "--optimizer", "sgd")
    code, _, errors = gridlstm("train", "parity", *options, "--out", tmp_path / "run")
    assert code == 1
    assert re.fullmatch(
        r"gridlstm train: step \d+: the loss is (nan|inf), the gradient's norm (nan|inf); "
        "there is no checkpoint yet\n",
        errors,
    )


def test_no_place_to_write(gridlstm, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, errors = gridlstm(
        "train", "parity", "--preset", "smoke", "--out", tmp_path / "file" / "run"
    )
    assert code == 2
    assert errors.count("\n") == 1
    assert errors.startswith(f"gridlstm train: cannot write {tmp_path / 'file' / 'run'}: ")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file may grow beyond some size: a message, the earlier checkpoint as it was, and on."""
    monkeypatch.setenv("GRIDLSTM_NATIVE", "0")  # The kernel is a file, too, when it is loaded.
    run = tmp_path / "run"
    options = ["train", "parity", "--preset", "smoke", "--rate", "1e-9", "--out", str(run), "--resume"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    subprocess.run([*COMMAND, *options, "--samples", "60"], check=True, capture_output=True)
    before = {path: path.read_bytes() for path in (run / "checkpoints").rglob("*") if path.is_file()}
    longer = [*COMMAND, *options, "--samples", "120"]
    failed = subprocess.run(longer, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "cannot write checkpoint" in failed.stderr
    assert "File too large" in failed.stderr
    after = {path: path.read_bytes() for path in (run / "checkpoints").rglob("*") if path.is_file()}
    assert after == before
    done = subprocess.run(longer, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1])["end"]["samples"] == 120


def test_foreign_weights_are_refused(gridlstm, tmp_path: Path) -> None:
    options = ("--preset", "smoke", "--samples", 15, "--out", tmp_path / "run")
    assert gridlstm("train", "parity", *options)[0] == 0
    (tmp_path / "run" / "model.safetensors").write_bytes(b"\x80\x04pickle")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    code, _, errors = gridlstm("eval", tmp_path / "run")
    assert (code, errors.count("\n")) == (2, 1)
    assert re.search(r"run/model\.safetensors: .*(header|deserializ)", errors), errors


def test_counting_neurons_are_found() -> None:
    """A neuron that was made to count is the first that is chosen."""
    problem = EXPERIMENTS["parity"].make_problem(EXPERIMENTS["parity"].presets["smoke"])
    torch.manual_seed(0)
    network = problem.network()
    assert isinstance(network.body, DeepGridLSTM)
    with torch.no_grad():
        weight, bias = network.body.grid.weights_of("depth")
        made = 5
        rows = [gate * 16 + made for gate in range(4)]
        weight[..., rows, :] = 0
        bias[..., rows] = torch.tensor([20.0, 20.0, 0.0, 0.5])  # Update, forget, output, candidate.
        for part in (network.body.projection.linear.weight, network.body.projection.linear.bias):
            part[16 + made] = 0
    assert counting_neurons(network, 8, 3)[0] == made


def test_memories_of_any_string(gridlstm, tmp_path: Path) -> None:
    options = ("--preset", "smoke", "--samples", 15, "--out", tmp_path / "run")
    assert gridlstm("train", "parity", *options)[0] == 0
    plot = ("plot", "memories", tmp_path / "run")
    assert gridlstm(*plot, "--input", "01100110", "--neurons", 4)[0] == 0
    text = figure_text(tmp_path / "run" / "memories")
    assert "memory of counting neurons, input 01100110" in text
    neurons = text[text.index("layer") + 1 : text.index("neuron")]
    assert len({*neurons} & {str(neuron) for neuron in range(16)}) == len(neurons) == 4
    for wrong in ("0110", "01100112"):
        code, _, errors = gridlstm(*plot, "--input", wrong)
        assert (code, errors) == (
            2,
            f"gridlstm plot memories: --input: expected 8 bits, 0 or 1, got '{wrong}'\n",
        )


@pytest.mark.parametrize("kind", ["tied-grid", "untied-tanh"])
@pytest.mark.parametrize("signs", [True, False])
def test_a_network_that_starts_from_random_signs(signs: bool, kind: str) -> None:
    smoke = EXPERIMENTS["parity"].presets["smoke"]
    start = replace(smoke, bits=64, hidden=400, signs=signs, network=kind)
    network = EXPERIMENTS["parity"].make_problem(start).network()
    bits = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (1000, 64)))
    linear = getattr(network.body.projection, "linear", network.body.projection)
    # The units of the memory vote: each is the sum of 64 literals times log2(64), less a threshold.
    votes = linear(network.encode(bits))[:, -400:].detach()
    sizes = linear.weight[-400:].abs()
    assert sizes.min() == sizes.max() == (3 if signs else 6)
    assert abs(linear.weight[-400:].sign().mean()) < 0.02
    thresholds = votes.mean(0)
    assert 20 < thresholds.abs().max() < 6 * 64**0.5 / 2 + 2
    assert votes.std(0).mean().item() == pytest.approx(6 * 64**0.5 / 2, rel=0.05)
