"""Text, written one character at a time: the steppers, int8 weights, and what is drawn."""

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gridlstm import SequenceGridLSTM, load
from gridlstm.bench.generation import measure_bits
from gridlstm.engines.native.build import Kernel, library
from gridlstm.experiments.characters.data import Corpus
from gridlstm.experiments.characters.problem import make_model
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import continue_text, draw_symbol, generate
from gridlstm.models.grid_arrays import GridArrays, round_rows
from gridlstm.models.native_stepper import NativeStepper
from gridlstm.models.stepper import GridStepper, ModelStepper, make_stepper
from gridlstm.state import State

from .test_characters import ALPHABET, NETWORKS, model_of, small


def random_model(hidden: int, layers: int = 3, **options: Any) -> CharacterModel:
    """Weights of about 1, so that no part of the model can be left out unnoticed."""
    torch.manual_seed(0)
    body = SequenceGridLSTM(10, hidden, layers, batch_first=True, **options)
    model = CharacterModel(ALPHABET, body).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def arrays_of(model: CharacterModel, state: State | None = None) -> GridArrays:
    arrays = GridArrays.of(model, state)
    assert arrays is not None
    return arrays


@pytest.fixture
def kernel() -> Kernel:
    found = library()
    if found is None:
        pytest.skip("no compiled kernel")
    return found


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
    model = random_model(hidden, **options)
    symbols = torch.randint(0, 10, (1, 25))
    whole, _ = model(symbols)
    arrays = arrays_of(model, model(symbols[:, :10])[1])
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
    results = json.loads(out.read_text())
    sizes, bits = results["sizes"], results["bits"]
    assert [(size["layers"], size["hidden"]) for size in sizes] == [(4, 128), (6, 256)]
    shown = [line.split("│")[1:-1] for line in output.splitlines() if line.startswith("│")]
    for cells, size in zip(shown, sizes, strict=True):
        speeds = size["characters a second"]
        assert [*speeds][-2:] == ["stepper", "model"]
        assert [*speeds][:-2] == ([] if library() is None else ["C", "C, int8"])
        first, *_, last = speeds.values()
        assert min(speeds.values()) > 0
        numbers = [f"{speed:,.0f}" for speed in speeds.values()]
        share = f"{size['share of limit'][next(iter(speeds))]:.2f}"
        expected = ["1", *numbers, share, f"{first / last:.1f} x"]
        assert [cell.strip() for cell in cells[2:]] == expected
    assert f"{bits['float32']:.4f}, with int8 weights {bits['int8']:.4f}" in output


@pytest.mark.parametrize(
    ("hidden", "options"),
    [
        (8, {}),
        (3, {"readout": "both", "output": "standard"}),
        (17, {"tied": False, "readout": "both"}),
        (300, {"layers": 2, "tied": False}),  # Sums so long that vectors have fewer than 16 bits.
    ],
)
def test_int8_steps_are_those_of_the_rounded_weights(
    kernel: Kernel, hidden: int, options: dict[str, Any]
) -> None:
    model = random_model(hidden, **options)
    with torch.no_grad():  # So that gates are between 0 and 1.
        for name in ("time", "depth"):
            model.body.grid.weights_of(name)[0].mul_(hidden**-0.5)
    symbols = torch.randint(0, 10, (20,)).tolist()
    _, state = model(torch.tensor([[1, 2, 3]]))
    arrays = arrays_of(model, state)
    steppers = {
        "rounded": GridStepper(deepcopy(arrays).rounded()),
        "exact": GridStepper(deepcopy(arrays)),
        "int8": NativeStepper(kernel, arrays, int8=True),
    }
    scores = {name: np.stack([step(symbol) for symbol in symbols]) for name, step in steppers.items()}
    error, rounding = (np.abs(scores[name] - scores["rounded"]).max() for name in ("int8", "exact"))
    assert error < 1e-3 * np.abs(scores["rounded"]).max()
    assert error < 0.1 * rounding


def test_sums_of_int8_products_do_not_overflow(kernel: Kernel) -> None:
    """All weights of the scores are as large as can be, and all vectors nearly so."""
    model = random_model(300, layers=1, readout="both")
    with torch.no_grad():
        for name in ("time", "depth"):
            weight, bias = model.body.grid.weights_of(name)
            weight.zero_()
            bias.copy_(torch.tensor([9.0, -9.0, 9.0, 9.0]).repeat_interleave(300))  # u, f, o, c
        model.scores.weight.fill_(1)
    found = NativeStepper(kernel, arrays_of(model), int8=True)(3)
    np.testing.assert_allclose(found, GridStepper(arrays_of(model))(3), rtol=1e-3)
    assert found.min() > 500


def test_rows_are_rounded_to_the_nearest_of_255_numbers() -> None:
    matrix = np.random.default_rng(0).normal(size=(6, 50)).astype(np.float32)
    matrix[1] *= 1000
    matrix[2] = 0
    matrix[3] *= 1e-44
    integers, scale = round_rows(matrix)
    assert (integers.dtype, scale.shape) == (np.int8, (6,))
    largest = np.abs(integers.astype(int)).max(1)
    assert largest[[0, 1, 4, 5]].tolist() == [127] * 4
    assert np.all(largest[2:4] == 0)
    assert np.all(np.abs(integers * scale[:, None] - matrix) <= 0.501 * scale[:, None])


def test_int8_weights_must_be_finite() -> None:
    model = random_model(4)
    with torch.no_grad():
        model.scores.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="int8: expected finite weights, got NaN or infinity"):
        generate(model, np.array([1]), int8=True)


def test_int8_weights_lose_little_of_a_trained_network() -> None:
    bits = measure_bits(3000)
    assert bits["characters"] == 3000
    assert bits["float32"] < 2.3
    assert 0 < abs(bits["int8"] - bits["float32"]) < 0.01


def test_int8_weights_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("tied-grid")
    with monkeypatch.context() as patch:
        patch.setattr("gridlstm.models.stepper.library", lambda: None)
        step = make_stepper(model, int8=True)
    assert isinstance(step, GridStepper)
    rounded = arrays_of(model).rounded()
    for found, expected in zip(step.arrays.weights, rounded.weights, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(step.arrays.scores, rounded.scores)
    assert not np.array_equal(step.arrays.scores, arrays_of(model).scores)


def test_int8_weights_are_for_plain_grids() -> None:
    with pytest.raises(ValueError, match="int8: expected a plain 2-LSTM, got StackedLSTM"):
        generate(model_of("untied-stacked"), np.array([1]), int8=True)


def test_generate_with_int8_weights(gridlstm) -> None:
    asked = ("generate", "--prompt", "ROMEO:", "--length", 300)
    texts = [gridlstm(*asked, *flags)[1] for flags in ((), ("--int8",))]
    model = load("characters")
    assert texts == [continue_text(model, "ROMEO:", 300, int8=int8) + "\n" for int8 in (False, True)]
    assert texts[0] != texts[1]
