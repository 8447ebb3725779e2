"""``gridlstm bench all``: one file from one run, its targets, and what reads it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gridlstm.bench.options import TrainBench
from gridlstm.bench.targets import judge, target_table
from gridlstm.bench.training_steps import StepChoice, find_data

from .figure_text import figure_text

Program = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The file of a quick run and what was printed; in that process, a warning is an error."""
    out = tmp_path_factory.mktemp("bench") / "bench.json"
    line = [sys.executable, "-W", "error", "-m", "gridlstm", "bench", "all", "--quick"]
    line += ["--threads", "1", "--out", str(out)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_one_file_has_all_benchmarks(measured: tuple[Path, str]) -> None:
    path, output = measured
    results = json.loads(path.read_text())
    assert list(results) == [
        *("kind", "environment", "options"),
        *("engine", "train", "search", "generation", "targets"),
    ]
    for name in ("engine", "train", "search", "generation"):
        assert "environment" not in results[name]  # It is one run.
        assert results[name]["limit flops"] == 2 * 256**3
    parity, decoding = results["engine"]["cases"]
    assert parity["share of limit"]["1"]["wavefront"] > 0
    assert parity["memory"]["ratio"] > 0
    assert decoding["memory"] is None
    steps = [
        (step["experiment"], step["hidden"], step["optimizer"]) for step in results["train"]["steps"]
    ]
    assert steps == [
        ("addition", 16, "adam"),
        ("addition", 16, "muon"),
        ("parity", 16, "adagrad"),
        ("parity", 16, "muon"),
        ("addition", 256, "muon"),
    ]
    summaries = [
        *(by["1"] for by in (parity["seconds"], decoding["seconds"])),
        *(step["seconds"] for step in results["train"]["steps"]),
        *(result["seconds"] for result in results["search"]["results"]),
        *(size["seconds"] for size in results["generation"]["sizes"]),
    ]
    assert all("limit" in seconds for seconds in summaries)
    assert all(len(times) == 2 for seconds in summaries for times in seconds.values())
    assert results["targets"] == judge(results)
    for title in (
        "A step of the wavefront engine",
        "A training step",
        "Beam search with a Reencoder",
        "Characters per second, one thread",
        "Targets",
    ):
        assert title in output
    assert "limit: a large matrix product" in figure_text(path)


def test_it_is_compared_section_by_section(gridlstm: Program, measured: tuple[Path, str]) -> None:
    path, _ = measured
    code, output, _ = gridlstm("bench", "compare", path, path)
    assert code == 0
    for row in (
        "parity, quick",
        "parity, quick over loop",
        "addition, smoke, d 256, muon",
        "batched, incremental, d = 64",
        "4 x 128, model",
    ):
        assert row in output
    assert "limit" not in output
    code, output, _ = gridlstm("bench", "compare", RESULTS / "bench-generation.json", path)
    assert (code, "4 x 128, model" in output, "parity" in output) == (0, True, False)
    code, _, errors = gridlstm("bench", "compare", RESULTS / "bench-growth.json", path)
    assert code == 2
    assert "of kind 'growth' and" in errors
    assert "of kind 'bench', 'train', 'search', 'generation'" in errors


def test_the_tables_of_documents_read_it(measured: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = measured
    (tmp_path / "bench.json").write_text(path.read_text())  # And no other file.
    code = (
        "import json, sys; from pathlib import Path; sys.path.insert(0, 'tools')\n"
        "import bench_tables, readme_tables as r\n"
        f"bench_tables.RESULTS = Path({str(tmp_path)!r})\n"
        "names = ('speed', 'peers', 'training steps', 'targets', 'accuracy')\n"
        "names += ('beam search', 'generation')\n"
        "print(json.dumps({name: r.TABLES[name]() for name in names}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tables = json.loads(done.stdout)
    assert "| parity | 1 | 2 |" in tables["speed"]
    assert "its memory" in tables["speed"]
    assert "a plain loop over blocks" in tables["peers"]
    assert "| addition, smoke, d 256, muon | 1 | 2 |" in tables["training steps"]
    assert "| untied memorization: nn.LSTM over engine | >= 1 |  | not measured |" in tables["targets"]
    assert "2 sentences of 6 words to 4 each" in tables["beam search"]
    assert tables["generation"].endswith("`results/bench.json`.")


def engine_case(name: str, median: dict[str, dict[str, float]], memory: float | None) -> dict[str, Any]:
    bytes_ = {"peak": {"keep": 100, "recompute": 100 * (memory or 0)}}
    bytes_["held"] = {"keep": 200, "recompute": 100 * (memory or 0)}
    return {"name": name, "train": memory is not None, "median": median, "memory": memory and bytes_}


def step(experiment: str, share: float, optimiser: float = 0.0, **other: Any) -> dict[str, Any]:
    described = {"preset": "paper", "hidden": 400, "batch": 15, "threads": 1, "bfloat16": False}
    described |= {"experiment": experiment, "optimizer": "muon", "engine and products": share}
    return described | {"shares": {"optimiser": optimiser}} | other


def made_up() -> dict[str, Any]:
    """A result file with what targets are judged by."""
    untied = {
        "1": {"wavefront": 1.0, "torch.nn.LSTM": 1.1, "wavefront, recompute": 1.3},
        "2": {"wavefront": 1.0, "torch.nn.LSTM": 0.6, "wavefront, recompute": 1.2},
    }
    cases = [
        engine_case("memorization-untied", untied, 0.4),
        engine_case("cube", {"1": {"wavefront": 1.0, "wavefront, recompute": 1.4}}, 0.44),
        engine_case("decoding-8", {"1": {"wavefront": 1.0, "loop": 1.2}}, None),
        engine_case("decoding", {"1": {"wavefront": 1.0, "loop": 1.1}}, None),
    ]
    steps = [
        step("addition", 0.9, 0.3),
        step("addition", 0.86, 0.079, hidden=256),
        step("images", 0.95, optimizer="adam"),
        step("images", 0.5, threads=2),
    ]
    speeds = [
        {"layers": 4, "hidden": 128, "characters a second": {"C": 9000.0, "model": 900.0}},
        {
            "layers": 6,
            "hidden": 256,
            "characters a second": {"C": 1400.0, "C, int8": 2400.0, "model": 500.0},
        },
    ]
    return {"engine": {"cases": cases}, "train": {"steps": steps}, "generation": {"sizes": speeds}}


def test_targets_are_judged_by_the_worst_case() -> None:
    judged = {target["target"]: target for target in judge(made_up())}
    assert {name: (t["reached"], t["met"], t["where"]) for name, t in judged.items()} == {
        "optimiser: share of a step at batch 15, d 256": (
            *(0.079, True),
            "addition, paper, muon, 1 thread",
        ),
        "decoding: plain loop over engine": (1.1, False, "decoding, 1 thread"),
        "untied memorization: nn.LSTM over engine": (1.1, True, "memorization-untied, 1 thread"),
        "generation, 4 x 128: characters per second": (9000.0, True, "C, 1 thread"),
        "generation, 6 x 256: characters per second": (1400.0, False, "C, 1 thread"),
        "recompute: memory between the passes over that of kept gates": (0.22, True, "cube"),
        "recompute: peak memory over that of kept gates": (0.44, True, "cube"),
        "recompute: time over that of kept gates": (1.4, False, "cube, 1 thread"),
        "addition, muon: share of engine and products in a step": (
            *(0.86, True),
            "addition, paper, muon, 1 thread",
        ),
        "images, muon: share of engine and products in a step": (
            *(0.5, False),
            "images, paper, muon, 2 threads",
        ),
        "images, adam: share of engine and products in a step": (
            *(0.95, True),
            "images, paper, adam, 1 thread",
        ),
    }
    assert judged["decoding: plain loop over engine"]["wanted"] == ">= 1.15"


def test_targets_that_are_not_met_are_told() -> None:
    results = made_up()
    del results["generation"]["sizes"][0]
    console = Console(width=150)
    with console.capture() as captured:
        console.print(target_table(judge(results)))
    assert "6 of 11 targets are met, 4 are NOT met, 1 were not measured." in captured.get()


def test_missing_data_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "enwik8").write_text("too short")
    with pytest.raises(ValueError, match="enwik8"):
        find_data([StepChoice("characters", "paper")], TrainBench(data=tmp_path))
