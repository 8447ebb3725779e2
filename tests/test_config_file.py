"""``gridlstm train EXPERIMENT --config FILE``: options from TOML or from the config of a run."""

import json
import re
from pathlib import Path

import pytest

from gridlstm.commands.parser import parse
from gridlstm.experiments.registry import EXPERIMENTS, flat

TOML = """
experiment = "memorization"  # May be left out.
preset = "smoke"
layers = 3
rate = 2e-3
evaluate-every = 30
threads = 1
out = "runs/three"
"""


def parsed(*arguments: object) -> tuple[dict[str, object], object]:
    """The options of an experiment, and of the run."""
    options = parse(["train", *map(str, arguments)]).options
    return flat(options.experiment), options.run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(TOML)
    return path


def test_a_file_changes_its_preset(file: Path) -> None:
    options, run = parsed("memorization", "--config", file)
    smoke = flat(EXPERIMENTS["memorization"].presets["smoke"])
    assert options == {**smoke, "layers": 3, "rate": 2e-3, "evaluate_every": 30}
    assert (run.preset, run.threads, run.out) == ("smoke", 1, Path("runs/three"))


def test_the_command_line_wins(file: Path) -> None:
    options, run = parsed(
        "memorization", "--layers", 4, f"--config={file}", "--out", "x", "--preset", "paper"
    )
    paper = flat(EXPERIMENTS["memorization"].presets["paper"])
    assert options == {**paper, "layers": 4, "rate": 2e-3, "evaluate_every": 30}
    assert (run.preset, run.threads, run.out) == ("paper", 1, Path("x"))


def test_none_is_written_as_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('preset = "laptop"\nminutes = "None"\nclip = "None"')
    options, _ = parsed("memorization", "--config", tmp_path / "run.toml")
    laptop = flat(EXPERIMENTS["memorization"].presets["laptop"])
    assert laptop["minutes"] is not None
    assert options == {**laptop, "minutes": None, "clip": None}


def test_without_a_preset_the_usual_one_is_changed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('source = "de"\ntrain = ["a.tsv"]\nvalid = ["b"]\ntest = ["c"]')
    options, run = parsed("translation", "--config", tmp_path / "run.toml")
    small = flat(EXPERIMENTS["translation"].presets["small"])
    files = {"train": ("a.tsv",), "valid": ("b",), "test": ("c",)}
    assert options == {**small, **files, "source": "de"}
    assert run.preset == "small"


def test_a_run_from_a_file_is_repeated_from_its_config(gridlstm, tmp_path: Path, file: Path) -> None:
    """A file that resumes continues its run; other options of that run are kept."""
    first, second = tmp_path / "first", tmp_path / "second"
    command = ["train", "memorization", "--samples", 60]
    assert gridlstm(*command, "--config", file, "--hidden", 8, "--out", first)[0] == 0
    config = json.loads((first / "config.json").read_text())
    assert (config["options"]["layers"], config["options"]["hidden"]) == (3, 8)
    assert gridlstm("train", "memorization", "--config", first / "config.json", "--out", second)[0] == 0
    assert json.loads((second / "config.json").read_text()) == config
    assert (second / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()

    file.write_text(f'resume = true\nout = "{first}"\nsamples = 90\n')
    assert gridlstm("train", "memorization", "--config", file)[0] == 0
    assert json.loads((first / "summary.json").read_text())["samples"] >= 90
    changed = json.loads((first / "config.json").read_text())["options"]
    assert changed == {**config["options"], "samples": 90}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("layrs = 3", r"unknown option layrs; did you mean layers\?"),
        ("xyzzy = 3", "unknown option xyzzy"),
        ("bits = 8", "unknown option bits"),
        ("config = 'a.toml'", "unknown option config"),
        ("layers = '3'", "layers: expected an integer of at most 1,000, got '3'"),
        ("rate = true", "rate: expected a number, got True"),
        ("layers = 0", "layers: expected .*, got 0"),
        ("rate = inf", "rate: expected a finite number, got inf"),
        ("network = 'cnn'", "network: expected one of tied-grid, .*, got 'cnn'"),
        ("out = 3", "out: expected Path or None, got 3"),
        ("threads = 0", "threads: expected .*, got 0"),
        ("preset = 'huge'", "preset: expected one of smoke, laptop, paper, got 'huge'"),
        ("preset = 3", "preset: expected one of smoke, laptop, paper, got 3"),
        ("preset = []", r"preset: expected one of smoke, laptop, paper, got \[\]"),
        ("experiment = 'parity'", "expected options of memorization, got those of parity"),
        ("experiment = 'chess'", "experiment: expected one of .*, got 'chess'"),
        ("resume = true\noverwrite = true", "overwrite: cannot be combined with --resume"),
        ("[options]\nlayers = 3", "unknown option options"),
        ("layers = ", r"Invalid value \(at end of document\)"),
    ],
)
def test_one_line_says_what_is_wrong(gridlstm, tmp_path: Path, content: str, line: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(content)
    code, output, errors = gridlstm("train", "memorization", "--config", path)
    assert (code, output) == (2, "")
    assert re.fullmatch(f"gridlstm: {re.escape(str(path))}: {line}\n", errors), errors


def test_configs_that_cannot_be_used(gridlstm, tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        code, output, errors = gridlstm("train", "memorization", "--config", *arguments)
        assert (code, output, errors.count("\n")) == (2, "", 1)
        return errors.removeprefix("gridlstm: ").strip()

    assert "No such file" in refused(tmp_path / "missing.toml")
    assert refused() == "--config: expected a value, got none"
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    assert refused(tmp_path / "bytes.toml").startswith(f"{tmp_path / 'bytes.toml'}: 'utf-8' codec")
    config = tmp_path / "config.json"
    config.write_text("{}")
    assert refused(config) == f"{config}: expected a 'gridlstm run 1', got something else"
    content = {"format": "gridlstm run 1", "experiment": "parity", "options": {"bits": 8}}
    config.write_text(json.dumps(content))
    assert refused(config) == f"{config}: expected options of memorization, got those of parity"
    config.write_text(json.dumps({**content, "experiment": "memorization"}))
    assert refused(config) == (f"{config}: options: expected those of memorization, got others: bits")
    config.write_text(json.dumps({**content, "experiment": "memorization", "options": {"layers": 2}}))
    assert refused(config, "--preset", "smoke") == (
        f"preset: expected none, because {config} has the options"
    )
    options, _ = parsed("memorization", "--config", config, "--hidden", 8)
    defaults = flat(EXPERIMENTS["memorization"].options())
    assert options == {**defaults, "layers": 2, "hidden": 8}
