"""Text, character by character: the model, its training, what it writes and how it scores."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gridlstm import SequenceGridLSTM
from gridlstm.engines.native.build import library
from gridlstm.experiments.characters.data import Corpus, encode
from gridlstm.experiments.characters.options import CharacterOptions, TextNetwork
from gridlstm.experiments.characters.problem import CharacterProblem, make_model, measure
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import draw_symbol, generate
from gridlstm.models.grid_arrays import GridArrays
from gridlstm.models.native_stepper import NativeStepper
from gridlstm.models.stepper import GridStepper, ModelStepper, make_stepper
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


@pytest.mark.parametrize("network", NETWORKS)
def test_single_steps_are_the_full_forward(network: str) -> None:
    model = model_of(network)
    symbols = torch.randint(0, 10, (1, 25))
    whole, _ = model(symbols)
    _, state = model(symbols[:, :10])
    step = make_stepper(model, state)
    fast = GridStepper if library() is None else NativeStepper
    assert isinstance(step, fast if network.endswith("grid") else ModelStepper)
    steps = np.stack([step(int(symbol)) for symbol in symbols[0, 10:]])
    np.testing.assert_allclose(steps, whole[0, 10:].detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["C", "NumPy"])
@pytest.mark.parametrize(
    ("hidden", "options"),
    [
        (8, {}),
        (3, {"readout": "both", "output": "standard"}),
        (17, {"tied": False, "readout": "both"}),
        (5, {"bias": False, "tied": False, "output": "standard"}),
        (1, {"readout": "both"}),
    ],
)
def test_steppers_are_the_full_forward(kind: str, hidden: int, options: dict[str, Any]) -> None:
    """Both of them, from a state, at sizes that fill no panel of the kernel."""
    kernel = library()
    if kind == "C" and kernel is None:
        pytest.skip("no compiled kernel")
    torch.manual_seed(0)
    body = SequenceGridLSTM(10, hidden, 3, batch_first=True, **options)
    model = CharacterModel(ALPHABET, body).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    symbols = torch.randint(0, 10, (1, 25))
    whole, _ = model(symbols)
    arrays = GridArrays.of(model, model(symbols[:, :10])[1])
    assert arrays is not None
    step = GridStepper(arrays) if kind == "NumPy" or kernel is None else NativeStepper(kernel, arrays)
    steps = np.stack([step(int(symbol)) for symbol in symbols[0, 10:]])
    np.testing.assert_allclose(steps, whole[0, 10:].detach().numpy(), rtol=1e-4, atol=1e-5)
    for wrong in (-11, 10):
        with pytest.raises(IndexError):
            step(wrong)


def test_the_steps_of_grids_without_a_stepper_of_their_own() -> None:
    body = SequenceGridLSTM(10, 8, 2, priority=True, batch_first=True)
    model = CharacterModel(ALPHABET, body).eval()
    step = make_stepper(model)
    assert isinstance(step, ModelStepper)
    symbols = torch.randint(0, 10, (1, 12))
    steps = np.stack([step(int(symbol)) for symbol in symbols[0]])
    np.testing.assert_allclose(steps, model(symbols)[0][0].detach().numpy(), rtol=1e-4, atol=1e-5)


def test_greedy_generation_is_what_the_forward_says() -> None:
    model = model_of("tied-grid")
    prompt = np.array([1, 2, 3, 4, 5])
    text = list(prompt)
    for symbol, _ in zip(generate(model, prompt, temperature=0), range(30), strict=False):
        scores, _ = model(torch.tensor([text]))
        assert symbol == scores[0, -1].argmax().item()
        text.append(symbol)


def test_a_long_prompt_is_read_in_pieces() -> None:
    model = model_of("tied-grid")
    prompt = np.random.default_rng(0).integers(0, 10, 1203)
    scores, _ = model(torch.from_numpy(prompt).unsqueeze(0))
    assert next(generate(model, prompt, temperature=0)) == scores[0, -1].argmax().item()


def test_choices_follow_the_probabilities() -> None:
    random = np.random.default_rng(0)
    scores = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    counts = np.bincount([draw_symbol(scores, 1.0, None, random) for _ in range(4000)], minlength=4)
    np.testing.assert_allclose(counts / 4000, [0.1, 0.2, 0.3, 0.4], atol=0.03)
    top = np.bincount([draw_symbol(scores, 1.0, 2, random) for _ in range(2000)], minlength=4)
    np.testing.assert_allclose(top / 2000, [0, 0, 3 / 7, 4 / 7], atol=0.04)
    sharp = np.bincount([draw_symbol(scores, 0.5, None, random) for _ in range(4000)], minlength=4)
    np.testing.assert_allclose(sharp / 4000, np.array([1, 4, 9, 16]) / 30, atol=0.03)
    assert draw_symbol(scores, 0, None, random) == 3


@pytest.mark.parametrize(("alphabet", "first"), [(b"\t\nb", 1), (b"abc", 0)])
def test_an_empty_prompt_is_a_newline_or_the_first_character(alphabet: bytes, first: int) -> None:
    for seed in range(5):  # With some weights, one answer follows every character.
        torch.manual_seed(seed)
        model = make_model(small("tied-grid"), alphabet).eval()
        drawn = next(generate(model, np.array([], np.int64), temperature=0))
        assert drawn == model(torch.tensor([[first]]))[0][0, -1].argmax().item()


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


def test_the_network_that_comes_with_the_package_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gridlstm", "generate", "--prompt", "ROMEO:", "--length", "300"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True)
    words = set(Corpus.shakespeare().text.tobytes().decode().split())
    written = done.stdout.split()
    assert sum(word in words for word in written) > 0.6 * len(written)


def test_generation_is_measured(gridlstm, tmp_path: Path) -> None:
    out = tmp_path / "generation.json"
    code, output, _ = gridlstm("bench", "generation", "--quick", "--rounds", 1, "--out", out)
    assert code == 0
    sizes = json.loads(out.read_text())["sizes"]
    assert [(size["layers"], size["hidden"]) for size in sizes] == [(4, 128), (6, 256)]
    shown = [line.split("│")[1:-1] for line in output.splitlines() if line.startswith("│")]
    for cells, size in zip(shown, sizes, strict=True):
        speeds = size["characters a second"]
        assert [*speeds][-2:] == ["stepper", "model"]
        assert ("C" in speeds) == (library() is not None)
        first, *_, last = speeds.values()
        assert min(speeds.values()) > 0
        numbers = [f"{speed:,.0f}" for speed in speeds.values()]
        share = f"{size['share of limit'][next(iter(speeds))]:.2f}"
        shown_numbers = [cell.strip() for cell in cells[2:]]
        assert shown_numbers == ["1", *numbers, share, f"{first / last:.1f} x"]
