"""``gridlstm.load``: the trained network of every experiment as a module, without its data."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import gridlstm as package
from gridlstm import ImageGridLSTM, load
from gridlstm.commands.parser import parse
from gridlstm.experiments.images.pictures import read_picture, to_digit
from gridlstm.experiments.registry import EXPERIMENTS, flat
from gridlstm.experiments.trained import find_run, record_and_options
from gridlstm.experiments.translation.text_translator import TextTranslator
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import continue_text
from gridlstm.training.rundir import RunError
from gridlstm.training.weights import WeightsError, save_weights

DIGIT = Path(__file__).parent.parent / "examples" / "digit.png"
PAIRS = "der Hund .\tthe dog .\nein Mann .\ta man .\n" * 20


def make_run(path: Path, name: str) -> nn.Module:
    """Writes a run whose data is gone, and returns its network."""
    options = EXPERIMENTS[name].presets["smoke"]
    path.mkdir()
    data = path.parent / "data.tsv"
    data.write_text(PAIRS * 20)
    if name == "characters":
        options = replace(options, text=str(data))
    elif name == "translation":
        files = (str(data),)
        options = replace(options, train=files, valid=files, test=files, source="de")
    problem = EXPERIMENTS[name].make_problem(options)
    network = problem.network()
    save_weights(network, path / "model.safetensors")
    changed = {"dataset": "mnist"} if name == "images" else {}
    config = {"format": "gridlstm run 1", "experiment": name, "options": {**flat(options), **changed}}
    (path / "config.json").write_text(json.dumps({**config, "data": problem.data()}))
    data.unlink()
    return network


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_without_its_data(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = make_run(tmp_path / "run", name)
    monkeypatch.setattr(
        "gridlstm.experiments.images.data.ImageSet.mnist", None
    )  # Not even searched for.
    for run in (tmp_path / "run", str(tmp_path / "run")):
        network = load(run)
        assert type(network) is type(expected)
        assert not network.training
        weights = network.state_dict()
        assert weights.keys() == expected.state_dict().keys()
        assert all(torch.equal(weights[key], value) for key, value in expected.state_dict().items())


def test_characters_that_come_with_the_package() -> None:
    model = load("characters")
    assert isinstance(model, CharacterModel)
    text = continue_text(model, "ROMEO:", 40, temperature=0)
    assert text.startswith("ROMEO:\n")
    assert len(text) == 46
    assert continue_text(model, "ROMEO:", 40, top_k=1) == text
    assert continue_text(model, "ROMEO:", 40, seed=1) != continue_text(model, "ROMEO:", 40, seed=2)
    # What is not in the alphabet is kept, but not read.
    assert continue_text(model, "RO❦MEO:", 40, temperature=0) == text.replace("RO", "RO❦", 1)
    assert (
        continue_text(model, length=5, temperature=0)
        == (continue_text(model, "\n", 5, temperature=0)[1:])
    )
    with pytest.raises(ValueError, match="length"):
        continue_text(model, "a", 0)


def test_wikipedia_comes_with_the_package(gridlstm, tmp_path: Path) -> None:
    words = ("--prompt", "[[Un", "--length", 12, "--temperature", 0)
    code, output, errors = gridlstm("generate", "wikipedia", *words)
    assert (code, errors) == (0, "")
    assert output.startswith("[[University")
    assert continue_text(load(Path("wikipedia")), "[[Un", 12, temperature=0) == output.rstrip("\n")
    (tmp_path / "text").write_text("The [[United Kingdom]] is a country in [[Europe]].\n")
    (english, shakespeare) = (
        json.loads(gridlstm("score", name, tmp_path / "text")[1])["bits"]
        for name in ("wikipedia", "characters")
    )
    assert english < 2 < shakespeare


def test_a_translator_that_comes_with_the_package() -> None:
    translator = load("translation")
    assert isinstance(translator, TextTranslator)
    water, nothing, fish = translator.translate_text(["我想喝水。", "", "他不喜欢吃鱼。"], beam=5)
    assert water.startswith("I want to drink")
    assert nothing == ""
    assert fish.startswith("He doesn't like")
    assert translator.translate_text([]) == []
    with pytest.raises(TypeError, match=r"^sentences: expected a list of strings, got '我想'$"):
        translator.translate_text("我想")


def test_digits_that_come_with_the_package(gridlstm) -> None:
    network = load("images")
    assert isinstance(network, ImageGridLSTM)
    image = torch.from_numpy(to_digit(read_picture(DIGIT)))
    with torch.no_grad():
        probabilities = network(image[None, None] / 255).softmax(1)[0]
    answer = json.loads(gridlstm("classify", DIGIT)[1])
    assert int(probabilities.argmax()) == answer["class"]
    assert abs(float(probabilities.max()) - answer["probability"]) < 1e-5


def test_symbols_that_come_with_the_package() -> None:
    reader = load("memorization")
    symbols = torch.tensor([[0, 18, 5, 13, 5, 13, 2, 5, 18, *[0] * 9]])
    with torch.no_grad():
        assert torch.equal(reader(symbols).argmax(-1)[:, 9:17], symbols[:, 1:9])


def test_a_run_goes_before_a_network_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()  # Other files, perhaps the reader's own pictures.
    assert isinstance(load("images"), ImageGridLSTM)
    (tmp_path / "images").rmdir()
    make_run(tmp_path / "images", "parity")
    assert type(load("images")).__name__ == "ParityNetwork"


def test_runs_that_cannot_be_loaded(tmp_path: Path) -> None:
    missing, empty, run = tmp_path / "missing", tmp_path / "empty", tmp_path / "run"
    with pytest.raises(RunError) as error:
        load(missing)
    names = "characters, images, memorization, translation, wikipedia"
    assert str(error.value) == f"{missing}: expected a run directory or one of {names}; got neither"
    empty.mkdir()
    with pytest.raises(RunError, match="not a run directory"):
        load(empty)
    make_run(run, "parity")
    config = json.loads((run / "config.json").read_text())
    config["options"]["hidden"] += 1
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError):
        load(run)
    (run / "model.safetensors").unlink()
    with pytest.raises(RunError, match="no checkpoint yet"):
        load(run)


def test_the_layer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridlstm.extras.NEEDED", ("a_package_that_is_not_installed",))
    monkeypatch.delitem(sys.modules, "gridlstm.experiments.trained")
    with pytest.raises(ImportError) as error:
        package.load("characters")
    assert str(error.value) == (
        "gridlstm.load needs packages that are not installed: pip install 'gridlstm[experiments]'"
    )


def test_a_loaded_network_can_be_trained_on(tmp_path: Path) -> None:
    make_run(tmp_path / "run", "parity")
    network = load(tmp_path / "run").train()
    bits = torch.from_numpy(np.eye(8, dtype=np.int64))
    network(bits).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_the_zoo_says_how_its_networks_were_trained() -> None:
    """The commands in docs/zoo.md, which are made from the runs, have the options of the runs."""
    page = (Path(__file__).parent.parent / "docs" / "zoo.md").read_text()
    commands = re.findall(r"^gridlstm (train .*)$", page, re.MULTILINE)
    trained = [parse(shlex.split(command)).options.experiment for command in commands]
    names = ("characters", "wikipedia", "translation", "images", "memorization")
    assert trained == [record_and_options(find_run(name))[1] for name in names]
