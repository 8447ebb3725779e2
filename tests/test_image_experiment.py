"""The experiment on images: what it trains on and measures, and the commands as a user runs them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional as F

from gridlstm.commands.options import RunOptions, Train
from gridlstm.commands.train import run as train
from gridlstm.experiments.images.activations import most_varied
from gridlstm.experiments.images.confusion import draw_confusion, draw_mistakes
from gridlstm.experiments.images.data import ImageSet, draw_images
from gridlstm.experiments.images.mistakes import count_confusions
from gridlstm.experiments.images.options import PRESETS, ImageOptions
from gridlstm.experiments.images.problem import ImageProblem, as_input, classify, make_network
from gridlstm.experiments.record import EvalOptions
from gridlstm.experiments.registry import EXPERIMENTS, flat, from_flat
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.training.settings import Training

from .figure_text import figure_text

SMOKE = PRESETS["smoke"]
NETWORKS = {
    "untied-grid": SMOKE,
    "tied-grid": replace(SMOKE, network="tied-grid"),
    "untied-relu-grid": replace(SMOKE, network="untied-relu-grid", patch=9),
    "tied-relu-grid": replace(SMOKE, network="tied-relu-grid", patch=9),
    "multidimensional": replace(SMOKE, network="multidimensional"),
    "renet": replace(SMOKE, network="renet", patch=2),
    "convolutional": replace(SMOKE, network="convolutional", patch=2, hidden=4),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_learns(network: str) -> None:
    """Some steps on the same few images: the loss falls, so gradients point the right way."""
    experiment = NETWORKS[network]
    problem = ImageProblem(replace(experiment, shift=0), None)
    learner = problem.network()
    optimizer = torch.optim.Adam(learner.parameters(), 1e-2)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = problem.loss(learner, 0, 32)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] < 4
    assert losses[-1] < 0.9 * losses[0]


def test_networks_are_what_they_are_called() -> None:
    made = {name: make_network(experiment) for name, experiment in NETWORKS.items()}
    assert [type(network).__name__ for network in made.values()] == [
        *["ImageGridLSTM"] * 4,
        "ImageMultidimensionalLSTM",
        "ReNet",
        "ConvolutionalNetwork",
    ]
    for name, network in made.items():
        if isinstance(network, ImageGridLSTM):
            assert network.tied == name.startswith("tied")
            assert network.projection.memory == ("relu" not in name)
    biases = [
        make_network(replace(SMOKE, forget_bias=value)).stack.layers[0].bias_row[16].item()
        for value in (None, 3.0)
    ]
    assert biases == [1.0, 3.0]


def test_the_presets_of_the_paper() -> None:
    paper = PRESETS["paper"]
    assert (paper.dataset, paper.network, paper.layers, paper.hidden) == (
        "mnist",
        "untied-grid",
        4,
        100,
    )
    assert (paper.patch, paper.relu, paper.shift, paper.side) == (2, 4096, 4, 28)
    training = paper.training
    assert (training.batch, training.optimizer, training.rate, training.schedule) == (
        128, "adam", 1e-3, "constant",
    )  # fmt: skip
    assert ImageOptions(network="untied-relu-grid", patch=3, relu=2048).side == 27
    assert all(preset.dataset == "sample" for preset in (PRESETS["smoke"], PRESETS["small"]))


def test_images_are_cropped_and_divided() -> None:
    image = np.random.default_rng(0).integers(0, 256, (2, 28, 28)).astype(np.uint8)
    whole, cut = as_input(image, ImageOptions()), as_input(image, ImageOptions(patch=3))
    assert (whole.shape, cut.shape) == ((2, 1, 28, 28), (2, 1, 27, 27))
    assert cut.dtype == torch.float32
    np.testing.assert_allclose(cut[1, 0], image[1, :27, :27] / 255, rtol=1e-6)
    narrow = as_input(image, ImageOptions(patch=9))
    torch.testing.assert_close(narrow, cut)
    middle = as_input(image, ImageOptions(patch=12))
    np.testing.assert_allclose(middle[0, 0], image[0, 2:26, 2:26] / 255, rtol=1e-6)


def test_the_loss_is_that_of_the_samples_by_number() -> None:
    problem = ImageProblem(SMOKE, None)
    network = problem.network()
    # Beyond the end of the first epoch.
    images, labels = draw_images(ImageSet.sample().train, SMOKE.training.seed, 1490, 20, SMOKE.shift)
    expected = F.cross_entropy(network(as_input(images, SMOKE)), torch.from_numpy(labels))
    torch.testing.assert_close(problem.loss(network, 1490, 20), expected)
    halves = [problem.loss(network, 1490, 10).item(), problem.loss(network, 1500, 10).item()]
    assert expected.item() == pytest.approx(sum(halves) / 2, rel=1e-5)


class Recorder(torch.nn.Module):
    """Notes the images that it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(10))
        self.read: list[bytes] = []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.read += [image.numpy().tobytes() for image in images]
        return self.bias.expand(len(images), 10)


def test_retraining_takes_the_validation_images_too() -> None:
    options = [replace(SMOKE, shift=0, retrain=retrain) for retrain in (False, True)]
    first, again = (ImageProblem(chosen, None) for chosen in options)
    for problem, part in ((first, first.dataset.train), (again, first.dataset.retrain)):
        recorder = Recorder()
        problem.loss(recorder, 0, 2 * len(part.images))
        every = [image.numpy().tobytes() for image in as_input(part.images, SMOKE)]
        assert sorted(recorder.read) == sorted(2 * every)  # Every image twice.
    assert first.better({"error": 0.1}, {})
    assert first.better({"error": 0.1}, {"error": 0.1})
    assert not first.better({"error": 0.2}, {"error": 0.1})
    assert not again.better({"error": 0.1}, {})
    assert not first.solved({"error": 0.0})


class Oracle(torch.nn.Module):
    """Knows every image but some, by the sum of its pixels."""

    def __init__(self, images: torch.Tensor, labels: np.ndarray, wrong: int) -> None:
        super().__init__()
        self.known = torch.nn.Parameter(images.double().sum((1, 2, 3)))
        self.labels = torch.from_numpy(labels).clone()
        self.labels[:wrong] = (self.labels[:wrong] + 1) % 10

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        place = (images.double().sum((1, 2, 3))[:, None] - self.known).abs().argmin(1)
        return 5 * F.one_hot(self.labels[place], 10).float()


def test_errors_are_counted() -> None:
    problem = ImageProblem(SMOKE, None)
    test, valid = problem.dataset.test, problem.dataset.valid
    oracle = Oracle(as_input(test.images, SMOKE), test.labels, 7)
    sums = test.images.reshape(500, -1).sum(1, dtype=np.int64)
    same_sum = sum(int((sums[7:] == wrong_sum).sum()) for wrong_sum in sums[:7])
    assert same_sum == 0, "the oracle tells the first seven apart from the others"
    measured = problem.test(oracle, None, EvalOptions())
    answers = _answers(oracle, test.images)
    wrong = [k for k in range(500) if answers[k] != test.labels[k]]
    assert measured["samples"] == 500
    assert (measured["wrong"], measured["error"]) == (len(wrong), len(wrong) / 500)
    assert len(wrong) >= 7
    assert [row["image"] for row in measured["mistakes"]] == wrong  # All of them equally sure.
    for row in measured["mistakes"]:
        place = row["image"]
        assert (row["digit"], row["class"]) == (test.labels[place], answers[place])
        assert row["probability"] == pytest.approx(np.exp(5) / (np.exp(5) + 9), abs=1e-5)
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (test.labels, answers), 1)
    assert measured["confusion"] == counts.tolist()
    few = problem.test(oracle, 7, EvalOptions())
    assert (few["samples"], few["wrong"], few["error"], len(few["mistakes"])) == (7, 7, 1.0, 7)
    exact = Oracle(as_input(valid.images, SMOKE), valid.labels, 0)
    assert problem.evaluate(exact, 1)["error"] < 0.05
    probabilities = classify(oracle, test.images[:300], SMOKE)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)


def _answers(oracle: Oracle, images: np.ndarray) -> list[int]:
    return [oracle(as_input(image[None], SMOKE)).argmax().item() for image in images]


def test_confusions_are_counted() -> None:
    labels, classes = np.array([3, 3, 3, 7, 0]), np.array([3, 5, 5, 7, 0])
    counts = count_confusions(labels, classes, 10)
    assert (counts[3, 5], counts[3, 3], counts[7, 7], counts.sum()) == (2, 1, 1, 5)
    figure = draw_confusion(labels, classes, 10)
    assert figure.axes[0].get_title() == "2 of 5 wrong, 40.00%"
    assert {(t.get_position(), t.get_text()) for t in figure.axes[0].texts} == {
        ((3, 3), "1"), ((5, 3), "2"), ((7, 7), "1"), ((0, 0), "1"),
    }  # fmt: skip


def test_mistakes_come_surest_first() -> None:
    images = np.zeros((4, 28, 28), np.uint8)
    probabilities = np.eye(10, dtype=np.float32)[[1, 2, 3, 4]] * 0.5
    probabilities[2, 3] = 0.9
    figure = draw_mistakes(images, np.array([0, 2, 0, 0]), probabilities)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["0 as 3, 90%", "0 as 1, 50%", "0 as 4, 50%"]
    none = draw_mistakes(images, np.arange(1, 5), probabilities)
    assert none.get_suptitle() == "0 of 4 wrong, 0.00%"
    many = draw_mistakes(np.zeros((200, 28, 28), np.uint8), np.ones(200, int), np.eye(10)[[0] * 200])
    assert many.get_suptitle() == "200 of 200 wrong, 100.00%; the 96 most confident ones"


def test_the_neurons_that_vary_most() -> None:
    maps = torch.zeros(4, 5, 6)
    maps[..., 2] = torch.randn(4, 5)
    maps[..., 4] = 3 * torch.randn(4, 5)
    maps[..., 5] = 7.0
    assert most_varied(maps, 2) == [4, 2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a network that is better than chance."""
    path = tmp_path_factory.mktemp("images") / "run"
    train(Train(SMOKE, RunOptions(out=path)))
    return path


def picture(folder: Path, number: int) -> tuple[Path, int]:
    """A test image as a large picture, dark on light."""
    problem = ImageProblem(SMOKE, None)
    image = Image.fromarray(255 - problem.dataset.test.images[number]).resize((140, 140))
    image.save(folder / f"{number}.png")
    return folder / f"{number}.png", int(problem.dataset.test.labels[number])


def test_smoke(gridlstm, tmp_path: Path, trained: Path) -> None:
    rows = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["loss"] < rows[0]["loss"]
    summary = json.loads((trained / "summary.json").read_text())
    assert summary["best"]["error"] == min(row["error"] for row in rows) < 0.6
    assert list(json.loads((trained / "config.json").read_text())["data"]) == ["images"]
    code, output, _ = gridlstm("eval", trained)
    evaluation = json.loads(output)
    assert (code, evaluation["samples"]) == (0, 500)
    wrong = evaluation["wrong"]
    assert evaluation["error"] == wrong / 500
    written = json.loads((trained / "evaluation.json").read_text())
    assert {name: written[name] for name in evaluation} == evaluation
    assert np.array(written["confusion"]).trace() == 500 - wrong
    assert len(written["mistakes"]) == min(wrong, 200)
    assert abs(evaluation["error"] - summary["best"]["error"]) < 0.2
    first = written["mistakes"][0]
    as_title = f"{first['digit']} as {first['class']}, {first['probability']:.0%}"
    for kind, text in {
        "curve": {"samples, thousands", "error on validation images", "images, sample"},
        "confusion": {"predicted", "digit", f"{wrong} of 500 wrong, {wrong / 500:.2%}"},
        "mistakes": {as_title},
        "activations": {"layer 1 ↘", "mean |hidden|", "mean |memory|"},
    }.items():
        assert gridlstm("plot", kind, trained, "--out", tmp_path / kind)[0] == 0
        assert text <= {*figure_text(tmp_path / kind)}
    shown = gridlstm("list", "--folder", trained.parent)[1]
    assert f"error {rows[-1]['error']:.4f}" in shown
    assert gridlstm("collect", trained, "--out", tmp_path / "kept.json")[0] == 0
    kept = json.loads((tmp_path / "kept.json").read_text())["runs"][0]
    assert kept["evaluation"]["confusion"] == written["confusion"]


def test_classify(gridlstm, tmp_path: Path, trained: Path) -> None:
    pictures = [picture(tmp_path, number) for number in range(30)]
    code, output, errors = gridlstm("classify", trained, *(path for path, _ in pictures))
    assert (code, errors) == (0, "")
    answers = [json.loads(line) for line in output.splitlines()]
    assert [row["image"] for row in answers] == [str(path) for path, _ in pictures]
    assert all(0.1 <= row["probability"] <= 1 for row in answers)
    right = sum(row["class"] == label for row, (_, label) in zip(answers, pictures, strict=True))
    assert right >= 15  # Of ten classes, by a network that has seen them for two seconds.


def test_activations_of_any_image(gridlstm, tmp_path: Path, trained: Path) -> None:
    plot = ("plot", "activations", trained, "--out", tmp_path / "a")
    path, _ = picture(tmp_path, 3)
    drawn = set()
    for chosen in (3, 4, path):
        assert gridlstm(*plot, "--input", chosen)[0] == 0
        drawn.add((tmp_path / "a.svg").read_bytes())
    assert len(drawn) == 3
    answer = json.loads(gridlstm("classify", trained, path)[1])["class"]
    assert f"predicted {answer}" in figure_text(tmp_path / "a")
    for chosen, message in (
        (500, "--input: expected a number below 500 or a picture, got 500"),
        (tmp_path / "none.png", "none.png: file not found"),
    ):
        code, _, errors = gridlstm(*plot, "--input", chosen)
        assert (code, message in errors) == (2, True)


def test_a_bad_picture_does_not_cancel_the_others(gridlstm, tmp_path: Path, trained: Path) -> None:
    good, other = (picture(tmp_path, number)[0] for number in (0, 1))
    (tmp_path / "text.png").write_text("no picture")
    Image.new("L", (40, 40), 200).save(tmp_path / "blank.png")
    bad = {
        "text.png": "expected a picture, got something else (not in a format that can be read)",
        "none.png": "file not found",
        "blank.png": "expected a digit, got a blank picture",
    }
    expected = gridlstm("classify", trained, good, other)
    assert expected[0] == 0
    code, output, errors = gridlstm(
        "classify", trained, *(tmp_path / name for name in bad), good, tmp_path / "none.png", other
    )
    assert (code, output) == (1, expected[1])
    lines = errors.splitlines()
    assert len(lines) == 4
    for name, reason in bad.items():
        assert f"gridlstm classify: {tmp_path / name}: {reason}" in lines
    code, output, errors = gridlstm("classify", trained, tmp_path / "none.png")
    assert (code, output, len(errors.splitlines())) == (1, "", 1)


def test_one_line_says_what_is_wrong(gridlstm, tmp_path: Path, trained: Path) -> None:
    good = picture(tmp_path, 0)[0]
    other = tmp_path / "parity"
    assert gridlstm("train", "parity", "--preset", "smoke", "--samples", 15, "--out", other)[0] == 0
    smoke = ("train", "images", "--preset", "smoke")
    for arguments, line in (
        (("classify", trained), "IMAGE: expected at least one picture, got none"),
        (("classify",), "IMAGE: expected at least one picture, got none"),
        (("classify", tmp_path, good), "not a run directory (no config.json)"),
        (("classify", other, good), "parity: expected a run of images, got one of parity"),
        (("plot", "confusion", other), "expected a run of images, got one of parity"),
        (("plot", "mistakes", trained, trained), f"unexpected argument {trained}"),
        (("plot", "curve", trained, other), "expected runs with one measure, got accuracy, error"),
        (("plot", "depth", trained), "expected runs with an accuracy"),
        (
            ("eval", trained, "--streams", 2),
            "expected a run of characters, got one of images",
        ),
        ((*smoke, "--patch", 29), "patch: expected at least 1 and at most 28, got 29"),
        ((*smoke, "--patch", 0), "patch: expected at least 1 and at most 28, got 0"),
        ((*smoke, "--shift", 28), "shift: expected at least 0 and below 28, got 28"),
        (
            (*smoke, "--network", "renet", "--patch", 2, "--layers", 3),
            "layers: expected patch 2 to the power of layers to divide 28 pixels for renet, got 3",
        ),
        (
            (*smoke, "--network", "renet", "--patch", 2, "--forget-bias", 1),
            "forget_bias: expected None for renet, which has no forget gates, got 1.0",
        ),
        ((*smoke, "--network", "cnn"), "--network: expected one of untied-grid, tied-grid, "),
        ((*smoke, "--dataset", "mnist", "--data", tmp_path / "none"), "data: expected a folder"),
    ):
        code, output, errors = gridlstm(*arguments)
        assert (code, output, errors.count("\n")) == (2, "", 1), (arguments, errors)
        assert line in errors


def test_the_network_that_comes_with_the_package_recognises_digits(gridlstm, tmp_path: Path) -> None:
    """Without a run or a data set. It has not been trained on these test images."""
    pictures = [picture(tmp_path, number) for number in range(20)]
    code, output, _ = gridlstm("classify", *(path for path, _ in pictures))
    assert code == 0
    answers = [json.loads(line) for line in output.splitlines()]
    right = [row["class"] == label for row, (_, label) in zip(answers, pictures, strict=True)]
    assert sum(right) >= 19


def test_without_a_run_the_network_of_the_package_is_used(
    gridlstm, tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, a line says so; with one, no run has to be named."""
    monkeypatch.setattr("gridlstm.experiments.trained.files", lambda package: tmp_path)
    path, _ = picture(tmp_path, 0)
    code, _, errors = gridlstm("classify", path)
    assert code == 2
    assert errors == (
        "gridlstm classify: RUN: expected one, because no network for images comes with this version\n"
    )
    place = tmp_path / "embedded" / "images"
    place.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(trained / name, place)
    code, output, _ = gridlstm("classify", path)
    assert code == 0
    assert output == gridlstm("classify", trained, path)[1]


def test_pictures_need_no_data_set(
    gridlstm, tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network trained on MNIST looks at pictures on a machine that has no MNIST and no network."""
    run, (path, _) = tmp_path / "run", picture(tmp_path, 0)
    run.mkdir()
    shutil.copy(trained / "model.safetensors", run)
    config = json.loads((trained / "config.json").read_text())
    config["options"]["dataset"] = "mnist"
    (run / "config.json").write_text(json.dumps(config))
    monkeypatch.delenv("GRIDLSTM_DATA", raising=False)
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # Nobody is there.
    assert gridlstm("classify", run, path)[1] == gridlstm("classify", trained, path)[1] != ""
    plot = ("plot", "activations", run, "--out", tmp_path / "a", "--input")
    assert gridlstm(*plot, path)[0] == 0
    answer = json.loads(gridlstm("classify", run, path)[1])["class"]
    assert f"predicted {answer}" in figure_text(tmp_path / "a")
    code, _, errors = gridlstm(*plot, 0)
    assert (code, "train-images-idx3-ubyte: not found" in errors) == (2, True)


def test_show(gridlstm) -> None:
    code, output, _ = gridlstm("train", "images", "--show", 2)
    lines = output.split("\n")[:-1]
    assert (code, len(lines)) == (0, 2 * 29)
    small = PRESETS["small"]
    images, labels = draw_images(ImageSet.sample().train, small.training.seed, 0, 2, small.shift)
    assert [lines[0], lines[29]] == [str(label) for label in labels]
    for image, shown in zip(images, (lines[1:29], lines[30:]), strict=True):
        letters = [[" .:-=+*#%@".index(letter) for letter in line] for line in shown]
        np.testing.assert_array_equal(letters, image.astype(int) * 10 // 256)


def test_a_stopped_run_goes_on_bit_for_bit(gridlstm, tmp_path: Path) -> None:
    options = ("train", "images", "--preset", "smoke", "--evaluate-every", 250)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert gridlstm(*options, "--samples", 1600, "--out", whole)[0] == 0
    for samples in (200, 850, 1600):  # The last part begins a second epoch.
        assert gridlstm(*options, "--samples", samples, "--out", parts, "--resume")[0] == 0
    a, b = (
        (path / "checkpoints" / "step-32" / "tensors.safetensors").read_bytes()
        for path in (whole, parts)
    )
    assert a == b
    models = [load_file(path / "model.safetensors") for path in (whole, parts)]
    assert all(torch.equal(weight, models[1][name]) for name, weight in models[0].items())


def test_bfloat16_and_retraining(gridlstm, tmp_path: Path) -> None:
    """With nothing to choose by, the model is the last network; in bfloat16, the loss is rounded."""
    options = ("train", "images", "--preset", "smoke", "--samples", 200, "--network", "tied-grid")
    losses = []
    for name, precision in (("exact", "--no-bfloat16"), ("rounded", "--bfloat16")):
        code, output, _ = gridlstm(*options, "--retrain", precision, "--out", tmp_path / name)
        *_, row, end = map(json.loads, output.splitlines())
        assert (code, end["end"]["best"]) == (0, {})
        losses.append(row["loss"])
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.02)
    run = tmp_path / "rounded"
    (checkpoint,) = (run / "checkpoints").iterdir()
    last = load_file(checkpoint / "tensors.safetensors")
    for name, weight in load_file(run / "model.safetensors").items():
        assert torch.equal(weight, last[f"network.{name}"])
    evaluation = json.loads(gridlstm("eval", run, "--samples", 50)[1])
    assert (evaluation["samples"], evaluation["error"]) == (50, evaluation["wrong"] / 50)


def test_options_survive_the_run_directory() -> None:
    for experiment in (*PRESETS.values(), ImageOptions(forget_bias=2.0, training=Training(seed=3))):
        assert from_flat(EXPERIMENTS["images"], json.loads(json.dumps(flat(experiment)))) == experiment
