"""The benchmarks: their cases agree with the reference, and the command does what it says."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from gridlstm.bench.command import run
from PIL import Image

from gridlstm.bench import contenders, growth, measure
from gridlstm.bench.cases import CASES, Case
from gridlstm.bench.contenders import CONTENDERS
from gridlstm.bench.options import Bench
from gridlstm.bench.peak import peak_memory
from gridlstm.dim import Dim


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


@pytest.mark.parametrize("name", ["memorization", "addition"])
def test_torch_lstm_has_the_same_number_of_operations(name: str) -> None:
    """Counted by PyTorch's own counter, for the grid's products and for those of the LSTM."""
    from torch.utils.flop_counter import FlopCounterMode

    case = replace(CASES[name], sizes=(3, 2), dims=CASES[name].dims, batch=2, hidden=4)
    floor = CONTENDERS["products"](case)
    assert floor is not None
    with FlopCounterMode(display=False) as counter:
        floor()
    assert counter.get_total_flops() == case.flops()
    cell = torch.nn.LSTMCell(4, 4)
    with FlopCounterMode(display=False) as counter:
        cell(torch.zeros(2, 4))
    assert counter.get_total_flops() * 3 * 2 * 2 * 3 == case.flops()  # 3 times, 2 · 2 layers, 3 passes


def test_a_contender_that_disagrees_is_not_timed(
    tiny_cases: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    timed = []
    monkeypatch.setattr(measure, "_time", timed.append)
    monkeypatch.setitem(CONTENDERS, "loop", lambda case: contenders._grid(replace(case, hidden=6)))
    wrong = contenders._grid

    def off(case: Case):
        work = wrong(case)
        return lambda: [tensor * 1.01 for tensor in work()]

    monkeypatch.setitem(CONTENDERS, "wavefront", off)
    with pytest.raises(
        measure.DisagreementError, match=r"cube: wavefront differs from the reference by 1.0e-02"
    ):
        run(Bench(cases=("cube",), out=tmp_path / "bench.json"))
    assert not timed
    assert not list(tmp_path.iterdir())


def test_a_contender_without_numbers_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = contenders._grid

    def none(case: Case):
        work = right(case)
        return lambda: [*work()[:-1], torch.tensor(float("nan"))]

    monkeypatch.setitem(CONTENDERS, "wavefront", none)
    with pytest.raises(measure.DisagreementError):
        measure.check(tiny(CASES["cube"]), ["wavefront"])


def test_results_table_plot_and_comparison(
    tiny_cases: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bench.json"
    names = ("memorization", "cube", "decoding")
    run(Bench(cases=names, threads=(1, 2), rounds=3, out=out))
    results = json.loads(out.read_text())
    assert [case["name"] for case in results["cases"]] == list(names)
    for case in results["cases"]:
        for seconds in case["seconds"].values():
            assert len(seconds["wavefront"]) == 3
            assert len(seconds["loop"]) == 3
            assert all(value > 0 for values in seconds.values() for value in values)
    assert results["environment"]["machine"]["cores"]
    for suffix in (".png", ".svg"):
        assert out.with_suffix(suffix).stat().st_size > 1000
    with Image.open(out.with_suffix(".png")) as image:
        assert image.size[0] > 300
    assert "torch.nn.LSTM of equal FLOPs" in " ".join(capsys.readouterr().out.split())
    run(Bench(compare=(out, out)))
    shown = capsys.readouterr().out
    assert "1.00" in shown
    assert "memorization" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cases": ("nothing",)}, "--cases: expected some of memorization, "),
        ({"threads": (0,)}, "threads: expected at least 1, got 0"),
        ({"threads": ()}, "threads: expected at least one number, got none"),
        ({"rounds": 0}, "rounds: expected at least 1, got 0"),
        ({"compare": (Path("nowhere.json"), Path("nowhere.json"))}, "got nowhere.json"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(Bench(**options))


def test_growth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(growth, "BASE", {"time": 3, "depth": 2, "batch": 2, "hidden": 4})
    asked = []
    monkeypatch.setattr(growth, "peak_memory", lambda **sizes: asked.append(sizes) or 2**20)
    out = tmp_path / "growth.json"
    run(Bench(growth=True, quick=True, out=out))
    axes = json.loads(out.read_text())["axes"]
    assert {axis: found["values"] for axis, found in axes.items()} == {
        "time": [3, 6],
        "depth": [2, 4],
        "batch": [2, 4],
        "hidden": [4, 8],
    }
    assert len(asked) == 4 * 2 * 2
    assert out.with_suffix(".png").exists()


def test_the_exponent_is_that_of_the_largest_sizes() -> None:
    assert growth._last_slope([1, 2, 4], [1.0, 5.0, 10.0]) == pytest.approx(1)
    assert growth._last_slope([1, 2, 4], [1.0, 2.0, 8.0]) == pytest.approx(2)


def test_recomputation_takes_less_memory() -> None:
    sizes = {"time": 60, "depth": 12, "batch": 16, "hidden": 100}
    kept = peak_memory(recompute=False, **sizes)
    less = peak_memory(recompute=True, **sizes)
    # hidden, memory and gates of every block are 12 vectors of 4 bytes a value.
    assert kept > 60 * 12 * 16 * 12 * 100 * 4
    assert less < 0.6 * kept


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-W", "error", "-c", "from gridlstm.cli import main; main()", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_help_does_not_wait_for_pytorch() -> None:
    code = "import sys, gridlstm.cli; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    shown = command("bench", "--help")
    assert shown.returncode == 0
    assert "--threads" in shown.stdout


def test_an_unknown_option_is_refused() -> None:
    refused = command("bench", "--thread", "2")
    assert refused.returncode == 2
    assert "--threads" in refused.stdout + refused.stderr


def test_the_command_runs_a_case(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    done = command("bench", "--cases", "cube", "--quick", "--rounds", "1", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["cases"][0]["dims"] == [repr(Dim(name)) for name in "abc"]
