"""Text, character by character: the model, its training, what it writes and how it scores."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gridlstm import SequenceGridLSTM
from gridlstm.experiments.characters.data import Corpus, encode
from gridlstm.experiments.characters.options import CharacterOptions, TextNetwork
from gridlstm.experiments.characters.problem import CharacterProblem, make_model, measure
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.models.character_model import CharacterModel
from gridlstm.training.settings import Training

from .figure_text import figure_text

ALPHABET = bytes(range(97, 107))
NETWORKS = get_args(TextNetwork)


def small(network: str, **changed: object) -> CharacterOptions:
    layers = 1 if network == "multiplicative" else 3
    return CharacterOptions(network=network, layers=layers, hidden=8, **changed)  # type: ignore[arg-type]


def model_of(network: str) -> CharacterModel:
    torch.manual_seed(0)
    return make_model(small(network), ALPHABET).eval()


@pytest.mark.parametrize(("shared", "parameters"), [(False, 16_820_000), (True, 8_820_000)])
def test_both_readings_of_the_paper_have_their_number_of_parameters(
    shared: bool, parameters: int
) -> None:
    body = SequenceGridLSTM(
        205, 1000, 6, shared=shared, readout="both", bias=False, forget_bias=None, batch_first=True
    )
    model = CharacterModel(bytes(range(205)), body, bias=False)
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_the_networks_of_the_comparison_are_equally_large() -> None:
    """Those of README's table: within 5 % of the tied 2-LSTM."""
    sizes = {
        "tied-grid": (6, 192),
        "untied-grid": (6, 84),
        "untied-stacked": (3, 170),
        "gated-feedback": (3, 150),
        "multiplicative": (1, 478),
    }
    alphabet = bytes(range(205))
    counts = {
        network: sum(
            p.numel()
            for p in make_model(
                CharacterOptions(network=network, layers=layers, hidden=hidden),  # type: ignore[arg-type]
                alphabet,
            ).parameters()
        )
        for network, (layers, hidden) in sizes.items()
    }
    for network, count in counts.items():
        assert abs(count / counts["tied-grid"] - 1) < 0.05, (network, counts)


@pytest.mark.parametrize("network", NETWORKS)
def test_chunks_with_carried_state_are_one_long_pass(network: str) -> None:
    model = model_of(network)
    symbols = torch.randint(0, 10, (3, 37))
    whole, end = model(symbols)
    state, parts = None, []
    for chunk in symbols.split(10, 1):
        scores, state = model(chunk, state)
        parts.append(scores)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(state.hidden, end.hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("streams", [1, 7])
def test_bits_are_those_of_the_probabilities(streams: int) -> None:
    model = model_of("tied-grid")
    text = np.random.default_rng(0).integers(97, 107, 900).astype(np.uint8)
    measured = measure(model, text, ALPHABET, streams)
    assert measured["characters"] == 899
    if streams == 1:
        symbols = torch.from_numpy(encode(text, ALPHABET)[0])
        scores, _ = model(symbols[None, :-1])
        bits = F.cross_entropy(scores[0], symbols[1:]).item() / np.log(2)
        assert measured["bits"] == pytest.approx(bits, rel=1e-5)
    with pytest.raises(ValueError, match="streams: expected 1 to 899 for a text of 900, got 900"):
        measure(model, text, ALPHABET, 900)


def test_training_reads_on_and_starts_afresh_at_a_sequence() -> None:
    training = Training(batch=4, samples=100)
    problem = CharacterProblem(replace(small("tied-grid"), sequence=100, training=training), None)
    network = problem.network()
    assert problem.carried() == {}
    losses = [problem.loss(network, 4 * update, 4).item() for update in range(3)]
    assert problem.carried()["memory"].shape == (4, 3, 8)
    problem.carry({})
    again = [problem.loss(network, 4 * update, 4).item() for update in (2, 0, 1)]
    # Update 2 begins a sequence, so the state before it does not matter.
    assert [again[1], again[2], again[0]] == losses
    state = problem.carried()
    problem.loss(network, 12, 4)
    problem.carry(state)
    assert all(torch.equal(problem.carried()[name], state[name]) for name in state)


def test_processes_share_the_streams() -> None:
    training = Training(batch=4, samples=100)
    chosen = replace(small("tied-grid"), sequence=100, training=training)
    whole, parts = CharacterProblem(chosen, None), [CharacterProblem(chosen, None) for _ in range(2)]
    network = whole.network()
    for update in range(3):
        joint = whole.loss(network, 4 * update, 4).item()
        each = [part.loss(network, 4 * update + 2 * k, 2).item() for k, part in enumerate(parts)]
        assert joint == pytest.approx(sum(each) / 2, rel=1e-5)


def test_a_text_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short " * 100)
    chosen = replace(EXPERIMENTS["characters"].presets["smoke"], text=str(tmp_path / "a.txt"))
    with pytest.raises(ValueError, match="expected at least 1001 bytes to train on, got 540"):
        CharacterProblem(chosen, None)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("characters") / "run"
    command = [sys.executable, "-m", "gridlstm", "train", "characters", "--preset", "smoke"]
    subprocess.run([*command, "--out", str(run)], check=True, capture_output=True)
    return run


def test_smoke(gridlstm, tmp_path: Path, trained: Path) -> None:
    rows = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["bits"] < rows[0]["bits"] < np.log2(65)
    summary = json.loads((trained / "summary.json").read_text())
    assert summary["best"]["bits"] == min(row["bits"] for row in rows)
    assert json.loads((trained / "config.json").read_text())["data"]["text"].startswith("86c4e6aa")

    code, output, _ = gridlstm("eval", trained, "--samples", 5000, "--streams", 10)
    assert code == 0
    evaluation = json.loads(output)
    assert (evaluation["characters"], evaluation["streams"]) == (5000, 10)
    assert abs(evaluation["bits"] - summary["best"]["bits"]) < 0.5

    assert gridlstm("plot", "curve", trained, "--out", tmp_path / "curve")[0] == 0
    labels = {"characters, millions", "bits per character", "tied 2-LSTM, 2 layers"}
    assert labels <= {*figure_text(tmp_path / "curve")}
    code, _, errors = gridlstm("plot", "depth", trained)
    assert (code, "expected runs with an accuracy" in errors) == (2, True)
    assert gridlstm("collect", trained, "--out", tmp_path / "kept.json")[0] == 0
    (kept,) = json.loads((tmp_path / "kept.json").read_text())["runs"]
    assert kept["evaluation"]["bits"] == evaluation["bits"]
    assert kept["curve"] == rows
    assert f"bits {rows[-1]['bits']:.4f}" in gridlstm("list", "--folder", trained.parent)[1]


def test_generate(gridlstm, trained: Path) -> None:
    def write(*options: str, message: str = "") -> str:
        code, output, errors = gridlstm("generate", trained, "--length", 200, *options)
        assert (code, errors) == (0, message)
        return output

    first = write("--prompt", "KING", "--seed", "3")
    assert first.startswith("KING")
    assert len(first) == 4 + 200 + 1
    assert set(first) <= set(Corpus.shakespeare().alphabet.decode())
    assert write("--prompt", "KING", "--seed", "3") == first
    assert write("--prompt", "KING", "--seed", "4") != first
    likeliest = write("--temperature", "0")
    assert len(likeliest) == 201
    assert write("--top-k", "1", "--temperature", "2") == likeliest
    message = "gridlstm generate: skipped 5 bytes of the prompt that are unknown\n"
    with_unknown = write("--prompt", "Ké€ING", "--seed", "3", message=message)
    assert with_unknown == first.replace("KING", "Ké€ING", 1)


def test_generation_without_end_stops_with_its_reader(trained: Path) -> None:
    command = [sys.executable, "-m", "gridlstm", "generate", str(trained), "--length", "0"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert len(writer.stdout.read(3000)) == 3000
    writer.stdout.close()
    _, errors = writer.communicate(timeout=60)
    assert (writer.returncode, errors) == (0, b"")


def test_score(gridlstm, tmp_path: Path, trained: Path) -> None:
    text = Corpus.shakespeare().test[:3000].tobytes()
    (tmp_path / "known.txt").write_bytes(text)
    code, output, _ = gridlstm("score", trained, tmp_path / "known.txt")
    known = json.loads(output)
    assert (code, known["characters"], known["unseen"]) == (0, 2999, 0)
    (tmp_path / "odd.txt").write_bytes(text[:1000] + "äöü€".encode() + text[1000:])
    odd = json.loads(gridlstm("score", trained, tmp_path / "odd.txt")[1])
    assert odd["unseen"] == 9
    assert odd["bits"] == pytest.approx(known["bits"], rel=1e-6)
    bad = tmp_path / "bad.txt"
    for content, message in (
        (None, "file not found"),
        (b"", "expected a text of at least 1 bytes, got an empty file"),
        (b"\xff\xfeA", "expected at least 2 known characters, got 1"),
    ):
        if content is not None:
            bad.write_bytes(content)
        assert gridlstm("score", trained, bad) == (2, "", f"gridlstm score: {bad}: {message}\n")


def test_any_text(gridlstm, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Füße über Äcker, naïve façade. " * 200)
    options = ["--preset", "smoke", "--text", text, "--out", tmp_path / "run", "--validated", 200]
    assert gridlstm("train", "characters", *options, "--samples", 160)[0] == 0
    code, output, _ = gridlstm("train", "characters", *options, "--show", 2)
    assert code == 0
    chunks = output.splitlines()
    assert len(chunks) == 2
    # A chunk may begin or end within a character.
    assert all(chunk.strip("\ufffd") in text.read_text() for chunk in chunks)
    text.write_text("Another text entirely, with other letters. " * 200)
    code, _, errors = gridlstm("train", "characters", *options, "--samples", 320, "--resume")
    assert code == 2
    assert "cannot be resumed with other data: text" in errors
    code, _, errors = gridlstm("eval", tmp_path / "run")
    assert (code, "expected the data of its training, got others: text" in errors) == (2, True)


def test_a_stopped_run_carries_on_bit_for_bit(gridlstm, tmp_path: Path) -> None:
    options = ["--preset", "smoke", "--sequence", 500]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert gridlstm("train", "characters", *options, "--out", whole)[0] == 0
    for samples in (16 * 7, 16 * 12, 16 * 33, 800):
        code = gridlstm(
            "train", "characters", *options, "--samples", samples, "--out", parts, "--resume"
        )[0]
        assert code == 0
    a, b = ((path / "checkpoints" / "step-50" / "tensors.safetensors") for path in (whole, parts))
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--network", "multiplicative"], "layers: expected 1 for a multiplicative RNN, got 2"),
        (["--chunk", "30"], "sequence: expected a multiple of the chunk 30, got 1000"),
        (["--text", "missing.txt"], "missing.txt: file not found"),
    ],
)
def test_one_line_says_what_is_wrong(gridlstm, arguments: list[str], line: str) -> None:
    code, _, errors = gridlstm("train", "characters", "--preset", "smoke", *arguments)
    assert code == 2
    assert line in errors


def test_a_preset_of_another_experiment(gridlstm) -> None:
    code, _, errors = gridlstm("train", "parity", "--preset", "small")
    assert (code, "preset: expected one of smoke, laptop, paper, got small" in errors) == (2, True)
