"""The benchmarks: their cases agree with the reference, and the command does what it says."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
import torch

from gridlstm.bench import growth, measure
from gridlstm.bench.cases import CASES, Case
from gridlstm.bench.contenders import CONTENDERS, Work
from gridlstm.bench.peak import Memory, peak_memory
from gridlstm.bench.recorded import record_products, replay
from gridlstm.bench.table import BENCHMARKS
from gridlstm.bench.training_steps import PARTS
from gridlstm.dim import Dim

from .figure_text import figure_text
from .test_bench_compare import table_rows

Program = Callable[..., tuple[int, str, str]]
RESULTS = Path(__file__).parent.parent / "results"


def tiny(case: Case) -> Case:
    """The same kind of grid, small enough for a test."""
    sizes = tuple(min(size, 4) for size in case.sizes)
    dims = tuple(
        dim if dim.size is None else replace(dim, size=size)
        for dim, size in zip(case.dims, sizes, strict=True)
    )
    return replace(case, dims=dims, sizes=sizes, batch=8, hidden=6)


@pytest.fixture
def tiny_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, case in CASES.items():
        monkeypatch.setitem(CASES, name, tiny(case))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_contenders_agree_with_the_reference(case: Case) -> None:
    errors = measure.check(replace(tiny(case), batch=32), CONTENDERS)
    expected = {"wavefront", "wavefront, not compiled", "wavefront, recompute", "wavefront, bfloat16"}
    assert expected <= errors.keys()
    assert ("loop" in errors) == (case.name != "characters-priority")
    plain = {"memorization", "memorization-untied", "addition", "characters-256", "characters-1000"}
    assert ("gate by gate" in errors) == ("layer by layer" in errors) == (case.name in plain)


@pytest.mark.parametrize("name", ["memorization", "addition"])
def test_torch_lstm_has_the_same_number_of_operations(name: str) -> None:
    """Those of the LSTM are counted by PyTorch's own counter."""
    from torch.utils.flop_counter import FlopCounterMode

    case = replace(CASES[name], sizes=(3, 2), dims=CASES[name].dims, batch=2, hidden=4)
    floor = CONTENDERS["products"](case)
    assert floor is not None
    assert sum(product.flops for product in record_products(floor)) == case.flops()
    cell = torch.nn.LSTMCell(4, 4)
    with FlopCounterMode(display=False) as counter:
        cell(torch.zeros(2, 4))
    assert counter.get_total_flops() * 3 * 2 * 2 * 3 == case.flops()  # 3 times, 2 · 2 layers, 3 passes


@pytest.mark.parametrize("name", ["memorization-untied", "characters-priority", "reencoder"])
def test_products_of_a_step_are_recorded_and_run_again(name: str) -> None:
    """As many operations as the case has, and the same ones when they run again."""
    case = tiny(CASES[name])
    step = CONTENDERS["wavefront"](case)
    assert step is not None
    products = record_products(step)
    assert sum(product.flops for product in products) == case.flops()
    assert record_products(replay(products)) == products
    assert record_products(lambda: torch.ones(3) + 1) == []


def test_training_steps_are_split_into_their_parts(gridlstm: Program, tmp_path: Path) -> None:
    out = tmp_path / "train.json"
    words = ("--experiments", "parity", "images", "--optimizers", "adagrad", "muon")
    code, printed, _ = gridlstm("bench", "train", "--quick", *words, "--out", out)
    assert code == 0
    assert "parity, smoke" in printed
    results = json.loads(out.read_text())
    steps = results["steps"]
    assert [(s["experiment"], s["optimizer"]) for s in steps] == [
        (experiment, optimizer)
        for experiment in ("parity", "images")
        for optimizer in ("adagrad", "muon")
    ]
    for step in steps:
        median, rounds = step["median"], step["seconds"]
        parts = sum(median[part] for part in PARTS)
        assert 0 < parts < 1.05 * max(rounds["update"])
        assert {step["rounds"][part] for part in rounds} == {2}
        assert step["spread"].keys() == rounds.keys()
        assert 0 < step["engine"] <= step["engine and products"]
        assert step["engine"] < step["shares"]["forward"] + step["shares"]["backward"]
        assert sum(step["flops of parts"].values()) == step["flops"]
        assert 0 < step["evaluation share"] < 1
    operations = {(s["experiment"], s["optimizer"]): s["flops of parts"] for s in steps}
    assert operations["parity", "muon"]["optimiser"] > operations["parity", "adagrad"]["optimiser"] == 0
    # Three layers of 16 units with four gates, forward and twice backward, for 15 samples.
    assert operations["parity", "muon"]["engine"] == 3 * 2 * 15 * 3 * 64 * 16
    code, printed, _ = gridlstm("bench", "compare", out, out)
    assert (code, "images, smoke, muon" in printed) == (0, True)
    code, _, errors = gridlstm("bench", "train", "--experiments", "parities")
    assert (code, "--experiments: expected some of memorization," in errors) == (2, True)


def test_no_case_is_timed_if_a_contender_disagrees_in_one(
    gridlstm: Program, tiny_cases: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make, calls = CONTENDERS["wavefront"], []

    def wrong_on_cubes(case: Case) -> Work:
        work = make(case)
        assert work is not None

        def counted() -> list[torch.Tensor]:
            calls.append(case.name)
            return [tensor * 1.01 if case.name == "cube" else tensor for tensor in work()]

        return counted

    monkeypatch.setitem(CONTENDERS, "wavefront", wrong_on_cubes)
    cases = ("--cases", "memorization", "cube", "addition")
    code, _, errors = gridlstm("bench", "engine", *cases, "--out", tmp_path / "bench.json")
    assert code == 1
    assert "cube: wavefront differs from the reference by 1.0e-02, more than 1e-04" in errors
    assert calls == ["memorization", "cube"]  # Once each, to be compared with the reference.
    assert not list(tmp_path.iterdir())


def test_a_contender_that_is_not_a_number_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    make = CONTENDERS["wavefront"]

    def with_nan(case: Case) -> Work:
        work = make(case)
        assert work is not None
        return lambda: [*work()[:-1], torch.tensor(math.nan)]

    monkeypatch.setitem(CONTENDERS, "wavefront", with_nan)
    with pytest.raises(measure.DisagreementError, match=r"^cube: wavefront differs from the reference"):
        measure.check(tiny(CASES["cube"]), ["wavefront"])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # PyTorch's own, in its compiler
def test_results_table_and_figure(gridlstm: Program, tiny_cases: None, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    names = ("memorization", "decoding")
    code, output, _ = gridlstm(
        *("bench", "engine", "--cases", *names, "--threads", 1, 2, "--rounds", 2, "--out", out)
    )
    assert code == 0
    assert "torch.nn.LSTM of equal FLOPs" in " ".join(output.split())
    results = json.loads(out.read_text())
    assert [case["name"] for case in results["cases"]] == list(names)
    for case in results["cases"]:
        for seconds in case["seconds"].values():
            assert len(seconds["wavefront"]) == 2
            assert len(seconds["loop"]) == 2
            assert all(value > 0 for values in seconds.values() for value in values)
    assert results["environment"]["machine"]["cores"]
    text = figure_text(out)
    contenders = {"matrix products alone", "gridlstm", "plain loop over blocks"}
    assert {"GFLOP/s of a training step: more is better", *contenders} <= {*text}
    assert [line for line in text if line in names] == list(names)
    assert [text.count(threads) for threads in ("1 thread", "2 threads")] == [1, 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.png", "bench.svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("engine --cases nothing", "--cases: expected some of memorization, "),
        ("engine --threads 0", "threads: expected at least 1, got 0"),
        ("engine --threads", "threads: expected at least one number, got none"),
        ("engine --rounds 0", "rounds: expected at least 1, got 0"),
        ("engine --patience -1", "patience: expected at least 0, got -1"),
        ("engine --patience nan", "patience: expected a finite number, got nan"),
        ("engine --out x.png", "out: expected a JSON file, got x.png"),
        ("growth --threads 0", "threads: expected at least 1, got 0"),
        ("generation --rounds 0", "rounds: expected at least 1, got 0"),
        ("search --threads 1 0", "threads: expected at least 1, got 0"),
        ("compare nowhere.json nowhere.json", "got nowhere.json"),
    ],
)
def test_bad_options(gridlstm: Program, arguments: str, message: str) -> None:
    code, output, errors = gridlstm("bench", *arguments.split())
    assert (code, output) == (2, "")
    assert message in errors


@pytest.mark.parametrize(
    ("option", "factors"), [(["--quick"], (1, 2)), (["--rounds", "2"], (1, 2, 4, 8))]
)
def test_growth(
    gridlstm: Program,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: list[str],
    factors: tuple[int, ...],
) -> None:
    base = {"time": 3, "depth": 2, "batch": 2, "hidden": 4}
    monkeypatch.setattr(growth, "BASE", base)
    measured = []

    def peak_memory(case: Case, *, recompute: bool) -> Memory:
        sizes = dict(zip(base, (*case.sizes, case.batch, case.hidden), strict=True))
        measured.append((recompute, sizes))
        return Memory(2**20 * (1 if recompute else math.prod(sizes.values())), 0)

    monkeypatch.setattr(growth, "peak_memory", peak_memory)
    out = tmp_path / "growth.json"
    code, output, _ = gridlstm("bench", "growth", *option, "--out", out)
    assert code == 0
    assert measured == [
        (recompute, {**base, axis: base[axis] * factor})
        for axis in base
        for factor in factors
        for recompute in (False, True)
    ]
    axes = json.loads(out.read_text())["axes"]
    assert axes.keys() == base.keys()
    text = figure_text(out)
    for axis, results in axes.items():
        assert results["values"] == [base[axis] * factor for factor in factors]
        assert results["bytes"]["keep"] == [2**20 * 48 * factor for factor in factors]
        assert results["bytes"]["recompute"] == [2**20] * len(factors)
        seconds = results["seconds"]["keep"]
        assert min(seconds) > 0
        # The exponent is that of the two largest sizes.
        assert results["exponent"] == pytest.approx(math.log2(seconds[-1] / seconds[-2]))
        assert f"{axis}, exponent {results['exponent']:.2f}" in text
    assert {"seconds per step", "peak memory, MiB", "keep", "recompute"} <= {*text}
    assert len(table_rows(output)) == 4 * len(factors)
    assert torch.get_num_threads() == 1


def test_recomputation_takes_less_memory() -> None:
    case = Case("2-LSTM", (Dim("time"), Dim("depth")), (60, 12), 16, 100)
    kept, less = (peak_memory(case, recompute=recompute) for recompute in (False, True))
    # hidden, memory and gates of every block are 12 vectors of 4 bytes per value.
    assert kept.peak >= kept.held > 60 * 12 * 16 * 12 * 100 * 4
    assert less.peak < 0.6 * kept.peak
    assert less.held < 0.5 * kept.held


def test_every_benchmark_can_be_run() -> None:
    for options, run in BENCHMARKS.values():
        module, _, function = run.partition(":")
        runner = getattr(import_module(module), function)
        assert get_type_hints(runner) == {"options": options, "return": type(None)}


def test_the_command_runs_a_case(tmp_path: Path) -> None:
    """In a process of its own, in which a warning is an error."""
    out = tmp_path / "bench.json"
    options = ["--cases", "cube", "--quick", "--rounds", "1", "--out", str(out)]
    line = [sys.executable, "-W", "error", "-m", "gridlstm", "bench", "engine", *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(out.read_text())["cases"]
    assert case["dims"] == [repr(Dim(name)) for name in "abc"]
    assert case["median"].keys() == case["seconds"].keys()
    assert case["errors"]["wavefront"] < 1e-4
