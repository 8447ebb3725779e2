"""How the program fails: one line, an exit code, nothing else; and what it refuses to begin with."""

import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file, save_model

import gridlstm as package
from gridlstm.commands import overview
from gridlstm.experiments.registry import EXPERIMENTS, flat, from_flat

COMMAND = [sys.executable, "-m", "gridlstm"]
SHIPPED = Path(package.__file__).parent / "embedded" / "characters"
Program = Callable[..., tuple[int, str, str]]


def make_run(path: Path, name: str = "memorization", **changed: Any) -> Path:
    """A run that has ended, with what its config says changed afterwards."""
    experiment = EXPERIMENTS[name].presets["smoke"]
    path.mkdir(parents=True)
    problem = EXPERIMENTS[name].make_problem(experiment)
    save_model(problem.network(), str(path / "model.safetensors"))
    options = {**flat(experiment), **changed}
    config = {
        "format": "gridlstm run 1",
        "experiment": name,
        "options": options,
        "data": problem.data(),
    }
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "",
            "expected a command: one of train, sweep, reproduce, eval, generate, score, translate, .*",
        ),
        ("trian", r"expected a command: one of train, .*; got 'trian'; did you mean train\?"),
        ("--layers 3", "expected a command: one of train, .*; got '--layers'"),
        ("train memorisation", r"expected an experiment after train: .*; did you mean memorization\?"),
        ("train --layers 3 parity", "expected an experiment after train: .*; got '--layers'"),
        (
            "train chess",
            "expected an experiment after train: one of memorization, addition, parity, characters, "
            "translation, images; got 'chess'",
        ),
        ("train", "expected an experiment after train: one of memorization, addition, .*"),
        ("train parity --preset huge", "--preset: .* smoke, small, laptop, paper; got 'huge'"),
        ("train parity --network cnn", "--network: expected one of tied-grid, .*; got 'cnn'"),
        ("train parity --layrs 3", r"unknown option --layrs; did you mean --layers\?"),
        ("train parity extra", "unexpected argument extra"),
        ("train parity --layers 1e3", "--layers: expected an integer, got '1e3'"),
        ("train parity --clip x", "--clip: expected a number or None, got 'x'"),
        ("train parity --out", "--out: expected a value, got none"),
        ("generate --temperature hot", "--temperature: expected a number, got 'hot'"),
        ("eval x --beam 1.5", "--beam: expected an integer or None, got '1.5'"),
        ("eval", "RUN: expected the run's directory, got none"),
        ("score x", "FILE: expected any file, got none"),
        ("plot curv x", r"expected a kind after plot: .*; got 'curv'; did you mean curve\?"),
        ("plot depth x --thresholds y", "--thresholds: expected a number, got 'y'"),
        ("bench engine --thread 2", r"unknown option --thread; did you mean --threads\?"),
        ("bench compare x", "NEW: expected the new result file, got none"),
    ],
)
def test_typical_mistakes(gridlstm: Program, arguments: str, line: str) -> None:
    code, output, errors = gridlstm(*arguments.split())
    assert (code, output) == (2, "")
    assert re.fullmatch(f"gridlstm: {line}\n", errors), errors


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("train parity --hidden 100000", r"447 GiB to train 40,021,000,002 parameters and "),
        ("train parity --hidden 9000000000000000", "the network is too large for any machine"),
        ("train parity --layers 10000000", "layers: expected an integer of at most 1,000"),
        ("train parity --threads 1000000", r"threads: expected an integer of at most 1,024 \(each has"),
        ("train memorization --batch 1000000000", r"TiB for the vectors of 1,000,000,000 samples "),
        ("train memorization --length 1000000000", r"TiB for the vectors of 15 samples "),
        ("train addition --show 1000000000", r"TiB for the vectors of 1,000,000,000 samples "),
        ("bench engine --threads 1000000", "threads: expected .* of at most 1,024"),
        (f"generate --length {10**30}", "length: expected at most 9,007,199,254,740,992"),
    ],
)
def test_what_needs_too_much_memory_is_refused_at_once(
    gridlstm: Program, arguments: str, line: str
) -> None:
    code, output, errors = gridlstm(*arguments.split())
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert re.search(line, errors), errors


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("layers", True, "layers: expected an integer of at most 1,000, got True"),
        ("layers", 10**7, "layers: expected an integer of at most 1,000, got 10000000"),
        ("hidden", 16.0, "hidden: expected an integer, got 16.0"),
        ("hidden", 2**60, "hidden: expected at most 9,007,199,254,740,992, got a larger number"),
        ("rate", "0.1", "rate: expected a number, got '0.1'"),
        ("rate", float("nan"), "rate: expected a finite number, got nan"),
        ("minutes", [], r"minutes: expected a number or None, got \(\)"),
        ("signs", 1, "signs: expected True or False, got 1"),
        ("network", "grid", "network: expected one of tied-grid, .*, got 'grid'"),
        ("network", ["tied-grid"], r"network: expected one of tied-grid, .*, got \('tied-grid',\)"),
    ],
)
def test_options_are_what_their_annotations_say(name: str, value: object, line: str) -> None:
    parity = EXPERIMENTS["parity"]
    options = flat(parity.presets["smoke"])
    assert from_flat(parity, {**options, "rate": 1}) == from_flat(parity, {**options, "rate": 1.0})
    with pytest.raises(ValueError, match=f"^{line}$"):
        from_flat(EXPERIMENTS["parity"], {**options, name: value})


def test_files_of_a_config_are_a_list_of_strings() -> None:
    options = {
        **flat(EXPERIMENTS["translation"].presets["smoke"]),
        "train": ["a"],
        "valid": ["b"],
        "test": ["c"],
    }
    assert from_flat(EXPERIMENTS["translation"], options).train == ("a",)  # type: ignore[union-attr]
    for wrong in ("abc", [1], [["a"]]):
        with pytest.raises(ValueError, match="train: expected a list of which each is a string, got"):
            from_flat(EXPERIMENTS["translation"], {**options, "train": wrong})


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"layers": 10**7}, "config.json: layers: expected an integer of at most 1,000, got 10000000"),
        ({"length": 10**9}, r"not enough memory: .* TiB for the vectors of 100 samples "),
        ({"hidden": 20_000}, r"model.safetensors: .*: expected F32 \[80000\], got F32 \[64\]"),
        ({"vocabulary": 10**8}, r"model.safetensors: .*: expected F32 \[32, 100000001\], got F32 "),
    ],
)
def test_sizes_in_a_config_take_no_memory_before_they_are_checked(
    gridlstm: Program, tmp_path: Path, changed: dict[str, int], line: str
) -> None:
    run = make_run(tmp_path / "run", **changed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, output, errors = gridlstm("eval", run)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert re.search(line, errors), errors
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


@pytest.mark.parametrize("alphabet", [torch.tensor(2**26), torch.zeros(3), torch.zeros(3, 3).byte()])
def test_an_alphabet_is_a_list_of_bytes(
    gridlstm: Program, tmp_path: Path, alphabet: torch.Tensor
) -> None:
    shutil.copytree(SHIPPED, tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    save_file({**load_file(path), "alphabet": alphabet}, path)
    code, output, errors = gridlstm("generate", tmp_path / "run")
    assert (code, output) == (2, "")
    assert "alphabet: expected a list of bytes" in errors


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda t: {"scores.bias": t["scores.bias"].fill_(float("nan"))},
            "weights are not finite: scores",
        ),
        (
            lambda t: {"scores.bias": t["scores.bias"].double()},
            r"scores.bias: expected F32 \[65\], got F64",
        ),
        (lambda t: {"scores.bias": t["scores.bias"][1:]}, r"expected F32 \[65\], got F32 \[64\]"),
        (lambda t: {"further": torch.zeros(1)}, "got further"),
        (
            lambda t: t.clear() or {"alphabet": torch.tensor(list(b"ab")).byte()},
            "got a file without it",
        ),
    ],
)
def test_weights_of_another_network_are_refused(
    gridlstm: Program, tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], line: str
) -> None:
    shutil.copytree(SHIPPED, tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    tensors = load_file(path)
    changed = change(tensors)
    save_file({**tensors, **changed}, path)
    code, output, errors = gridlstm("generate", tmp_path / "run")
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert re.search(f"model.safetensors: .*{line}", errors), errors


class UnexpectedError(Exception):
    """One that the program does not know."""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"),
            1,
            r"not enough memory \(DefaultCPUAllocator: .*9 bytes\)",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory."),
            1,
            r"not enough memory \(CUDA out of memory\.\)",
        ),
        (
            RecursionError("maximum recursion depth exceeded"),
            2,
            "a file or an argument is nested too deeply",
        ),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 2, ".*invalid start byte"),
        (OverflowError("int too large"), 2, "int too large"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 2, ".*Permission denied: 'x'"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, ".*No space left on device"),
        (ValueError("two\n  lines\x1b[31m"), 2, r"two lines\\x1b\[31m"),
    ],
)
def test_expected_failures_take_one_line(
    gridlstm: Program, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def fail(options: object) -> None:
        raise error

    monkeypatch.setattr(overview, "list_all", fail)
    exit_code, output, errors = gridlstm("list")
    assert (exit_code, output) == (code, "")
    assert re.fullmatch(f"gridlstm list: {line}\n", errors), errors
    monkeypatch.setenv("GRIDLSTM_DEBUG", "1")
    assert "Traceback" in gridlstm("list")[2]


def test_an_unexpected_error_is_shown_with_its_traceback(
    gridlstm: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(options: object) -> None:
        raise UnexpectedError("odd\x1b[31m")

    monkeypatch.setattr(overview, "list_all", fail)
    code, _, errors = gridlstm("list")
    assert code == 1
    assert errors.startswith("Traceback")
    assert r"UnexpectedError: odd\x1b[31m" in errors
    assert errors.endswith(
        "gridlstm list: this is a bug in gridlstm; please report it with the lines above\n"
    )


def test_an_odd_compiler_and_prompt(tmp_path: Path) -> None:
    """The slower way is taken; bytes that are not text are part of the prompt as they are."""
    odd = {**os.environ, "CC": "'", "GRIDLSTM_CACHE": str(tmp_path)}
    command = [*COMMAND, "generate", "--length", "3", "--prompt", b"KING\xff"]
    done = subprocess.run(command, env=odd, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rb"KING\xff[\s\S]{3}\n", done.stdout)
    skipped, slower = done.stderr.decode().splitlines()
    assert skipped.endswith("skipped 1 bytes of the prompt that are unknown")
    assert slower.startswith(
        "gridlstm: no compiled kernel, the slower PyTorch path is used (CC: expected"
    )


RESULTS = Path(__file__).parent.parent / "results"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--version", f"^gridlstm {re.escape(package.__version__)}\n$"),
        ("list", r"^memorization: .*\n  smoke +2 symbols, tied-grid, 2 layers of 16, at most "),
        ("--help", "translate .*classify .*bench "),
        ("train parity --help", r"--layers .*\(default: 12\)"),
        ("bench --help", "all +Measure engine, .*train +Time whole training steps "),
        ("bench engine --help", "--threads .*--patience "),
        (
            "bench compare RESULTS/bench-growth.json RESULTS/bench-growth.json",
            "Milliseconds per training step.*time 64, keep .* 1.00 ",
        ),
    ],
)
def test_what_needs_no_pytorch_does_not_wait_for_it(arguments: str, shown: str) -> None:
    heavy = "{'torch', 'numpy', 'matplotlib'}"
    check = f"finally: assert not {heavy} & set(sys.modules), sys.modules"
    code = "\n".join(["import sys; from gridlstm.cli import main", "try: main()", check])
    words = arguments.replace("RESULTS", str(RESULTS)).split()
    line = [sys.executable, "-W", "error", "-c", code, *words]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert re.search(shown, done.stdout, re.DOTALL), done.stdout


@pytest.mark.parametrize(
    "arguments", [["--version"], ["list"], ["--help"], ["train", "parity", "--help"]]
)
def test_a_closed_pipe_is_not_a_failure(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["--help"]])
def test_output_that_cannot_be_written(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert re.fullmatch(rb"gridlstm( list)?: .*No space left on device\n", done.stderr)


def test_a_command_without_standard_streams_does_its_work(tmp_path: Path) -> None:
    collect = ["collect", make_run(tmp_path / "run"), "--out", tmp_path / "runs.json"]
    line = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, *map(str, collect)]
    assert subprocess.run(line, check=False).returncode == 0
    (kept,) = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert (kept["run"], kept["experiment"]) == ("run", "memorization")


NAME = "é[bold]\x1b[31m" + "abcdefghij" * 8


@pytest.mark.parametrize("columns", ["", "30"])
def test_names_of_runs_are_shown_whole_and_safely(tmp_path: Path, columns: str) -> None:
    """On an ASCII terminal of 30 columns, and elsewhere; among broken runs, each with its reason."""
    make_run(tmp_path / NAME)
    for name, content in {"deep": "[" * 10**5, "list": "[]", "bytes": "\x00"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content)
    make_run(tmp_path / "rows")
    (tmp_path / "rows" / "metrics.jsonl").write_text('{"step": 1}\n{"step": "x"}\n')
    terminal = {"FORCE_COLOR": "1", "COLUMNS": columns, "TERM": "dumb"} if columns else {}
    shown = subprocess.run(
        [*COMMAND, "list", "--folder", str(tmp_path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii", **terminal},
        capture_output=True,
        check=True,
    )
    assert shown.stderr == b""
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.stdout.decode("ascii"))
    cells = [
        line.strip("|").split("|")[0].strip() for line in text.splitlines() if line.startswith("|")
    ]
    names = "".join(cells)
    assert r"\xe9[bold]\x1b[31m" + "abcdefghij" * 8 in names
    words = "".join("".join(line.strip("|").split("|")[2:3]).strip() for line in text.splitlines())
    for reason in (
        "nested too deeply",
        "expected an object",
        "Expecting value",
        "expected numbers, got step",
    ):
        assert reason.replace(" ", "") in words.replace(" ", ""), reason


def test_names_of_runs_in_other_messages(gridlstm: Program, tmp_path: Path) -> None:
    run = make_run(tmp_path / NAME)
    (run / "evaluation.json").write_text("{")
    code, output, errors = gridlstm("collect", run, "--out", tmp_path / "[red]\x1b.json")
    assert (code, output) == (2, "")
    assert r"é[bold]\x1b[31mabc" in errors
    assert "evaluation.json: Expecting" in errors
    (run / "evaluation.json").unlink()
    code, output, _ = gridlstm("collect", run, "--out", tmp_path / "[red]\x1b.json")
    assert (code, output) == (0, f"{tmp_path}/[red]\\x1b.json: 1 runs\n")


def test_names_of_runs_on_a_terminal(
    gridlstm: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    run = tmp_path / "a [bold]run[/x]\x1b[31m"
    options = ("train", "parity", "--preset", "smoke", "--samples", 9999, "--rate", 1e-9, "--out", run)
    code, output, errors = gridlstm(*options, "--minutes", 1e-3)
    assert (code, errors) == (0, "")
    # The run, how to continue it, two to try next.
    assert output.count(r"a [bold]run[/x]\x1b[31m") == 4
    code, output, errors = gridlstm("eval", run, "--samples", 20)
    assert (code, errors) == (0, "")
    assert r"x]\x1b[31m" in output


@pytest.mark.parametrize(
    "module",
    [
        "gridlstm.commands.exit_codes",
        "tyro",
        "numpy",
        "torch._C",
        "torch.nn",
        "gridlstm.experiments.trained",
    ],
)
def test_an_interruption_is_one_line_from_the_beginning(tmp_path: Path, module: str) -> None:
    """As soon as a module has been imported, the process is interrupted."""
    run = shutil.copytree(SHIPPED, tmp_path / "run")  # If it is not interrupted, it writes there.
    traced = [sys.executable, "-X", "importtime", "-m", "gridlstm", "eval", str(run)]
    process = subprocess.Popen(traced, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    rest: list[str] = []
    with process:
        for line in process.stderr:
            if rest or line.rpartition("|")[2].strip() == module:
                if not rest:
                    process.send_signal(signal.SIGINT)
                rest.append(line)
    lines = [line for line in rest if not line.startswith("import time:")]
    assert process.returncode == 130
    assert re.fullmatch(r"gridlstm( eval)?: interrupted\n", "".join(lines)), lines


def test_generation_is_interrupted() -> None:
    command = [*COMMAND, "generate", "--length", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert len(process.stdout.read(100)) == 100
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"gridlstm generate: interrupted\n")
    assert output.endswith(b"\n")
