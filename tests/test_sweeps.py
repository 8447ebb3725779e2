"""Sweeps: every cell is run once, whatever happens to the processes that work on them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gridlstm.commands import sweep_cell
from gridlstm.experiments.parity import PARITY
from gridlstm.sweeps import claims as claims_module
from gridlstm.sweeps.claims import Claim, ClaimWatch, newest_claim
from gridlstm.sweeps.directory import SweepDir, SweepError
from gridlstm.sweeps.launchers import remote
from gridlstm.sweeps.plan import SweepPlan, parse_over
from gridlstm.sweeps.results import draw_sweep
from gridlstm.sweeps.source import read_plan
from gridlstm.sweeps.status import CellState, SweepWatch
from gridlstm.sweeps.worker import Worker

from .test_terminal import screen

COMMAND = [sys.executable, "-m", "gridlstm", "sweep"]
SMOKE = PARITY.presets["smoke"]
# It never learns, so it never ends early; the checkpoints of a killed cell are frequent.
LONG = ("--preset", "smoke", "--rate", "1e-9", "--samples", "12000", "--checkpoint-minutes", "0.01")
Swept = tuple[Path, list[str], list[str]]


def plan(**over: list[Any]) -> SweepPlan:
    return SweepPlan(PARITY, SMOKE, [over])


def start(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    command = [*COMMAND, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def sessions(folder: Path) -> dict[str, list[int]]:
    """The updates done before each session of each cell."""
    return {
        path.parent.name: [session["step"] for session in json.loads(path.read_text())]
        for path in sorted((folder / "runs").glob("*/sessions.json"))
    }


def states(folder: Path) -> dict[str, str]:
    return {state.cell.name: state.state for state in SweepWatch(SweepDir.open(folder)).look()}


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


def cell_processes(folder: Path) -> list[int]:
    """The processes that hold a claim."""
    found = [newest_claim(path) for path in sorted((folder / "claims").glob("*"))]
    return [
        claim.holder["process"]
        for claim in found
        if claim is not None and claim.holder and not claim.released and not claim.process_is_gone
    ]


def has_checkpoint(folder: Path) -> bool:
    return any(folder.glob("runs/*/checkpoints/step-*"))


# The plan


def test_cells_are_all_combinations() -> None:
    cells = plan(layers=[1, 2], network=["tied-grid", "tied-tanh"], seed=[0, 1]).cells
    assert len(cells) == 8
    assert list(cells)[:2] == [
        "layers=1,network=tied-grid,seed=0",
        "layers=1,network=tied-grid,seed=1",
    ]
    options = cells["layers=2,network=tied-tanh,seed=1"].options
    assert (options.layers, options.network, options.training.seed) == (2, "tied-tanh", 1)
    assert options.bits == SMOKE.bits


def test_grids_are_joined() -> None:
    joined = SweepPlan(PARITY, SMOKE, [{"layers": [1, 2]}, {"layers": [2, 3]}, {"bits": [8]}])
    assert list(joined.cells) == ["layers=1", "layers=2", "layers=3", "bits=8"]


def test_values_have_the_type_of_their_option() -> None:
    words = ["layers=1,2", "rate=1e-3,1", "clip=None,2.5", "signs=True,False", "start=random"]
    assert parse_over(PARITY, words) == {
        "layers": [1, 2],
        "rate": [1e-3, 1],
        "clip": [None, 2.5],
        "signs": [True, False],
        "start": ["random"],
    }
    assert parse_over(PARITY, ["forget-bias=2"]) == {"forget_bias": [2]}


def test_names_differ_where_values_do() -> None:
    from gridlstm.experiments.characters import CHARACTERS

    texts = ["a/b.txt", "a-b.txt", "a b.txt", "x" * 300, "x" * 301]
    cells = SweepPlan(CHARACTERS, CHARACTERS.presets["smoke"], [{"text": texts}]).cells
    assert len(cells) == len(texts)
    assert all("/" not in name and len(name) < 200 for name in cells)


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ([], "over: expected options to vary, as layers=1,2,4 seed=0,1; got none"),
        (["layers"], "over: expected OPTION=VALUE,VALUE,..., got 'layers'"),
        (["layers=1", "layers=2"], "over: layers: expected once, got twice"),
        (["layer=1"], "over: expected options of parity, got 'layer'; did you mean layers?"),
        (["training=1"], "over: expected options of parity, got 'training'"),
        (["layers=x"], "over: layers: expected an integer of at most 1,000, got 'x'"),
        (["layers=1,"], "over: layers: expected an integer of at most 1,000, got ''"),
        (["seed=0,1", "layers=0"], "over: seed=0,layers=0: layers: expected at least 1, got 0"),
        (["layers=1,2,1"], "over: layers: expected different values, got 1 twice"),
        (["rate=nan"], "over: rate: expected a number, got 'nan'"),
    ],
)
def test_what_cannot_be_varied(gridlstm, tmp_path: Path, over: list[str], message: str) -> None:
    out = tmp_path / "sweep"
    code, output, errors = gridlstm(
        "sweep", "parity", "--preset", "smoke", "--over", *over, "--out", out
    )
    assert (code, output, errors) == (2, "", f"gridlstm sweep: {message}\n")
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], "workers: expected at least 1 or None, got 0"),
        (["--slurm", "partition=long"], "slurm: expected --launcher slurm, got local"),
        (
            ["--slurm", "partition", "--launcher", "slurm"],
            "slurm: expected NAME=VALUE, got 'partition'",
        ),
        (["--test-samples", "0"], "test_samples: expected at least 1 or None, got 0"),
        (["--worker", "2"], "unknown option --worker; did you mean --workers?"),
    ],
)
def test_options_that_make_no_sense(gridlstm, arguments: list[str], message: str) -> None:
    code, _, errors = gridlstm("sweep", "parity", "--over", "layers=1", *arguments)
    assert (code, errors) == (2, f"gridlstm: {message}\n")


@pytest.mark.parametrize(("launcher", "package"), [("slurm", "submitit"), ("ray", "ray")])
def test_launchers_say_what_they_need(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, package: str
) -> None:
    monkeypatch.setattr("gridlstm.sweeps.run.find_spec", lambda name: None)
    out = tmp_path / "sweep"
    code, _, errors = gridlstm(
        "sweep", "parity", "--over", "layers=1", "--launcher", launcher, "--out", out
    )
    needed = f"--launcher {launcher} needs {package}: pip install 'gridlstm[{launcher}]'"
    assert (code, errors) == (2, f"gridlstm sweep: {needed}\n")
    assert not out.exists()


def test_a_sweep_keeps_its_plan(gridlstm, tmp_path: Path) -> None:
    SweepDir.create(tmp_path / "sweep", plan(layers=[1, 2]))
    assert SweepDir.open(tmp_path / "sweep").plan.cells.keys() == {"layers=1", "layers=2"}
    with pytest.raises(SweepError, match=r"another plan: over was .* now .*3"):
        SweepDir.create(tmp_path / "sweep", plan(layers=[1, 3]))
    code, _, errors = gridlstm("sweep", tmp_path / "sweep", "--hidden", 8)
    assert code == 2
    assert errors.endswith("cannot be continued with another plan: hidden was 16, now 8\n")
    (tmp_path / "other").write_text("")
    code, _, errors = gridlstm("sweep", "parity", "--over", "layers=1", "--out", tmp_path)
    assert code == 2
    assert errors.endswith("not the directory of a sweep (no plan.json), and not empty\n")
    code, _, errors = gridlstm("sweep", tmp_path)
    assert errors.endswith("not the directory of a sweep (no plan.json)\n")
    (tmp_path / "sweep" / "plan.json").write_text("[]")
    code, _, errors = gridlstm("sweep", tmp_path / "sweep", "--status")
    assert code == 2
    assert errors.count("\n") == 1


FILE = """
experiment = "parity"
preset = "smoke"
test_samples = 50

[options]
hidden = 8
samples = 60

[over]
layers = [1, 2]
forget-bias = [1.0]
"""


@pytest.mark.parametrize("name", ["addition", "memorization"])
def test_examples_have_three_seeds_of_each_setting(name: str) -> None:
    plan = read_plan(Path(__file__).parent.parent / "examples" / "sweeps" / f"{name}.toml")
    assert plan.experiment.name == name
    seeds = Counter(cell.partition("seed=")[0] for cell in plan.cells)
    assert set(seeds.values()) == {3}


def test_a_plan_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(FILE)
    made = read_plan(file)
    assert list(made.cells) == ["layers=1,forget_bias=1.0", "layers=2,forget_bias=1.0"]
    assert (made.options.hidden, made.options.bits, made.test_samples) == (8, SMOKE.bits, 50)
    file.write_text(FILE.replace("[over]", "[[over]]") + "[[over]]\nseed = [1]\n")
    assert list(read_plan(file).cells)[2:] == ["seed=1"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"parity"', '"parities"', "experiment: expected one of "),
        ('"smoke"', '"smok"', "preset: expected one of smoke, laptop, paper, got 'smok'"),
        ("hidden", "hiden", "options: expected those of parity, got others: hiden"),
        ("[over]", "[ove]", "expected experiment, preset, options, over, test_samples; got ove"),
        ("[1, 2]", "1", "over: layers: expected a list of values, got 1"),
        ("[1, 2]", '["1"]', "over: layers: expected an integer of at most 1,000, got '1'"),
        ("[1, 2]", "[1, 2", "Unclosed array"),
    ],
)
def test_a_file_that_is_no_plan(gridlstm, tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(FILE.replace(old, new))
    code, _, errors = gridlstm("sweep", file)
    assert code == 2
    assert f"gridlstm: {file}: {message}" in errors
    assert errors.count("\n") == 1


def test_a_file_and_options_do_not_contradict(gridlstm, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(FILE)
    for option, value in (("preset", "smoke"), ("over", "layers=1")):
        code, _, errors = gridlstm("sweep", tmp_path / "plan.toml", f"--{option}", value)
        assert code == 2
        assert f"{option}: expected none, because " in errors


# Claims


def test_only_one_process_gets_a_claim(tmp_path: Path) -> None:
    assert ClaimWatch().free_number(newest_claim(tmp_path)) == 1
    claim = Claim.take(tmp_path, 1)
    assert claim is not None
    assert Claim.take(tmp_path, 1) is None
    assert ClaimWatch().free_number(newest_claim(tmp_path)) is None
    claim.release()
    assert ClaimWatch().free_number(newest_claim(tmp_path)) == 2
    assert Claim.take(tmp_path, 1) is None, "whoever decided upon an old number is too late"


def test_the_claim_of_a_process_that_is_gone_is_stale(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from gridlstm.sweeps.claims import Claim; "
        "assert Claim.take(Path(sys.argv[1]), 1); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ClaimWatch().free_number(newest_claim(tmp_path)) == 2


@pytest.mark.parametrize("content", ["", '{"host": "elsewhere", "process": 1, "started": "5"}'])
def test_a_claim_without_signs_of_life_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """Of another machine, or of a process that was killed before it wrote who it is."""
    now = 1000.0
    monkeypatch.setattr(claims_module.time, "monotonic", lambda: now)
    (tmp_path / "1.json").write_text(content)
    watch = ClaimWatch()
    assert watch.free_number(newest_claim(tmp_path)) is None
    now += claims_module.STALE - 1
    os.utime(tmp_path / "1.json", (1, 1))
    assert watch.free_number(newest_claim(tmp_path)) is None, "it was touched, whatever the clock says"
    now += claims_module.STALE - 1
    assert watch.free_number(newest_claim(tmp_path)) is None
    now += 2
    assert watch.free_number(newest_claim(tmp_path)) == 2


def test_a_process_ends_when_its_claim_was_taken_over(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from gridlstm.sweeps.claims import Claim; "
        "c = Claim.take(Path(sys.argv[1]), 1); c.keep(os.getppid(), lambda: None); time.sleep(60)"
    )
    (tmp_path / "2.json").write_text("{}")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == claims_module.LOST


# Whole sweeps


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Two commands at the same time on one sweep, one cell of which fails."""
    folder = tmp_path_factory.mktemp("sweeps") / "both"
    arguments = ("parity", "--preset", "smoke", "--samples", 60, "--test-samples", 50, "--out", folder)
    over = ("--over", "rate=0.06,0.05,1e30")
    both = [start(*arguments, *over, "--workers", 1) for _ in range(2)]
    told = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [1, 1]
    return folder, [out for out, _ in told], [errors for _, errors in told]


def test_two_commands_do_every_cell_once(swept: Swept) -> None:
    folder, outputs, _ = swept
    assert sessions(folder) == {"rate=0.05": [0], "rate=0.06": [0], "rate=1e+30": [0]}
    assert list(states(folder).values()) == ["samples", "samples", "failed"]
    for output in outputs:
        *rows, end = map(json.loads, output.splitlines())
        assert end == {"end": {"sweep": str(folder), "samples": 2, "failed": 1}}
        assert {row["cell"] for row in rows} == states(folder).keys()


def test_failed_cells_are_named_with_their_last_line(swept: Swept) -> None:
    folder, _, errors = swept
    for line in errors:
        assert line.startswith("gridlstm sweep: 1 of 3 cells failed: rate=1e+30 (gridlstm train: ")
        assert "the loss is nan" in line
        assert line.count("\n") == 1
    failure = json.loads((folder / "failed" / "rate=1e+30.json").read_text())
    assert failure["code"] == 1
    assert failure["line"] in (folder / "logs" / "rate=1e+30.log").read_text()


def test_results_of_a_sweep(swept: Swept) -> None:
    folder, _, _ = swept
    results = json.loads((folder / "sweep.json").read_text())
    assert results["outcome"] == {"samples": 2, "failed": 1}
    assert results["options"]["bits"] == SMOKE.bits
    assert {"commit", "machine", "versions"} <= results["environment"].keys()
    first, *_, last = results["cells"]
    assert (first["varied"], first["ended"]) == ({"rate": 0.06}, "samples")
    assert first["evaluation"]["samples"] == 50
    assert first["accuracy"] == first["evaluation"]["accuracy"]
    assert first["samples"] == 60
    assert "the loss is nan" in last["failure"]
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "sweep.svg").read_text()


def test_the_figure_shows_points_and_means() -> None:
    swept = plan(layers=[1, 4], network=["tied-grid", "tied-tanh"], seed=[0, 1])
    ended = [
        CellState(cell, "solved", measured=cell.options.layers / 8 + cell.options.training.seed / 10)
        for cell in swept.cells.values()
    ]
    axes = draw_sweep(swept, ended).axes[0]
    points, mean = axes.lines[:2]
    assert sorted(points.get_xdata()) == [1, 1, 4, 4]
    assert mean.get_xydata().tolist() == [[1, pytest.approx(0.175)], [4, pytest.approx(0.55)]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "network tied-grid",
        "network tied-tanh",
    ]
    words = plan(network=["tied-grid", "tied-tanh"])
    ended = [CellState(cell, "solved", measured=1.0) for cell in words.cells.values()]
    labels = draw_sweep(words, ended).axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == ["tied-grid", "tied-tanh"]


def test_a_sweep_that_is_over_starts_nothing(gridlstm, swept: Swept) -> None:
    folder, _, _ = swept
    before = sessions(folder)
    assert gridlstm("sweep", folder, "--workers", 1)[0] == 1
    assert sessions(folder) == before
    code, output, errors = gridlstm("sweep", folder, "--status")
    assert (code, errors) == (0, "")
    rows = [json.loads(line) for line in output.splitlines()]
    assert {row["cell"]: row["state"] for row in rows} == states(folder)
    assert [row["line"] for row in rows if row["state"] == "failed"]


def test_status_on_a_terminal(swept: Swept, tmp_path: Path) -> None:
    folder, _, _ = swept
    code, lines = screen([*COMMAND, str(folder), "--status"], 200, tmp_path)
    assert code == 0
    assert any("rate=0.06" in line and "samples" in line and " 60 " in line for line in lines)
    assert any("rate=1e+30" in line and "the loss is nan" in line for line in lines)
    assert any("3 cells: 2 samples, 1 failed" in line for line in lines)


def test_failed_cells_are_tried_again_if_asked(tmp_path: Path) -> None:
    """The text that was missing is there the second time. On a terminal, too."""
    text, out = tmp_path / "novel.txt", tmp_path / "sweep"
    arguments = (
        "characters", "--preset", "smoke", "--samples", 48, "--validated", 200, "--test-samples", 100,
        "--over", f"text={text}", "--workers", 1, "--out", out,
    )  # fmt: skip
    process = start(*arguments)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "1 of 1 cells failed" in errors
    text.write_text("It is a truth universally acknowledged. " * 500)
    code, lines = screen([*COMMAND, *map(str, arguments), "--retry-failed"], 200, tmp_path)
    assert code == 0, lines
    assert any("running" in line for line in lines)
    assert any("1 cell: 1 samples" in line for line in lines)
    assert any("sweep.json, sweep.png, sweep.svg" in line for line in lines)


def test_sigkill_loses_nothing(tmp_path: Path) -> None:
    """First the process of a cell is killed, then the whole command; then another one joins."""
    out = tmp_path / "sweep"
    command = start("parity", *LONG, "--over", "seed=0,1", "--workers", 2, "--out", out)
    wait_for(lambda: has_checkpoint(out) and len(cell_processes(out)) == 2)
    victim = cell_processes(out)[0]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in cell_processes(out))
    command.kill()
    command.communicate()
    joined = start(out, "--workers", 2)
    _, errors = joined.communicate()
    assert joined.returncode == 0, errors
    assert states(out) == {"seed=0": "samples", "seed=1": "samples"}
    assert max(map(len, sessions(out).values())) > 1
    for name, steps in sessions(out).items():
        assert steps == sorted(steps), "a session continues what the one before had saved"
        rows = (out / "runs" / name / "metrics.jsonl").read_text().splitlines()
        updates = [json.loads(row)["step"] for row in rows]
        assert updates == sorted(set(updates)), "no update is counted twice"
        assert updates[-1] == 12000 // SMOKE.training.batch
    assert not cell_processes(out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_cells_stop_with_their_command(tmp_path: Path, number: signal.Signals) -> None:
    """They write a checkpoint, even if the command was killed and could not tell them."""
    out = tmp_path / "sweep"
    endless = (*LONG, "--samples", 10**8, "--checkpoint-minutes", 60)
    command = start("parity", *endless, "--over", "seed=0", "--out", out)
    wait_for(lambda: any(out.glob("runs/*/metrics.jsonl")))
    command.send_signal(number)
    _, errors = command.communicate()
    if number == signal.SIGKILL:
        assert command.returncode == -number
    else:
        assert command.returncode == 128 + number
        assert errors == f"Continue it with: gridlstm sweep {out}\n"
    wait_for(lambda: not cell_processes(out))
    claim = newest_claim(out / "claims" / "seed=0")
    assert claim is not None
    assert claim.released
    assert states(out) == {"seed=0": "stopped"}
    assert has_checkpoint(out)
    assert not (out / "sweep.json").exists()


# One cell, in this process


@pytest.fixture
def run_cell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[SweepDir, str, int], int]]:
    """Does what the process of a cell does: its exit code."""
    monkeypatch.setattr(Claim, "keep", lambda *_: None)  # It would end this process.
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(sweep: SweepDir, name: str, number: int) -> int:
        try:
            sweep_cell.main(str(sweep.path), name, str(number), str(os.getppid()), "cpu")
        except SystemExit as stopped:
            return int(stopped.code or 0)
        return 0

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_cell_is_trained_and_tested_once(tmp_path: Path, run_cell) -> None:
    brief = SweepPlan(PARITY, SMOKE, [{"samples": [30]}], test_samples=20)
    sweep = SweepDir.create(tmp_path / "sweep", brief)
    assert run_cell(sweep, "samples=30", 1) == 0
    assert states(sweep.path) == {"samples=30": "samples"}
    assert run_cell(sweep, "samples=30", 1) == 0, "the claim is taken"
    (tmp_path / "sweep" / "runs" / "samples=30" / "evaluation.json").unlink()
    assert states(sweep.path) == {"samples=30": "stopped"}
    assert run_cell(sweep, "samples=30", 2) == 0
    assert sessions(sweep.path) == {"samples=30": [0]}, "it is only tested again"
    assert states(sweep.path) == {"samples=30": "samples"}


def test_a_cell_in_use_is_left_alone(tmp_path: Path, run_cell, monkeypatch) -> None:
    """By a process that was suspended, has lost its claim and does not know it yet."""
    monkeypatch.setattr(sweep_cell, "PAUSE", 0.0)
    sweep = SweepDir.create(tmp_path / "sweep", plan(seed=[0]))
    with sweep.run("seed=0").lock():
        assert run_cell(sweep, "seed=0", 1) == 0
    assert states(sweep.path) == {"seed=0": "waiting"}


def test_a_cell_that_is_killed_again_and_again_has_failed(tmp_path: Path, run_cell, capfd) -> None:
    sweep = SweepDir.create(tmp_path / "sweep", plan(seed=[0]))
    sweep.log("seed=0").write_text("its last words\n")
    dead = Claim.take(sweep.claims("seed=0"), 1, step=-1, deaths=2)
    assert dead is not None
    dead.path.write_text(json.dumps({**dead.holder, "process": 2**22 + 1}))
    assert states(sweep.path) == {"seed=0": "waiting"}
    assert run_cell(sweep, "seed=0", 2) == 1
    assert "killed 3 times, or out of memory; before: its last words" in capfd.readouterr().err
    assert states(sweep.path) == {"seed=0": "failed"}
    sweep.forget_failures()
    claim = newest_claim(sweep.claims("seed=0"))
    assert claim is not None
    assert claim.released


# Workers elsewhere


class Pool:
    """Workers that end without having done anything."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.stop_file = Path()

    def start(self, count: int, stop_file: Path) -> None:
        self.started.append(count)
        self.stop_file = stop_file

    def running(self) -> bool:
        return False

    def cancel(self) -> None:
        pass


def test_workers_that_do_nothing_are_not_started_for_ever(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(remote, "LOOK", 0.0)
    sweep, pool = SweepDir.create(tmp_path / "sweep", plan(seed=[0, 1, 2])), Pool()
    with pytest.raises(SweepError, match="workers ended 3 times without a cell ended"):
        remote.supervise(pool, Worker(sweep.path), 2, lambda: False, lambda states: None)
    assert pool.started == [2, 2, 2]
    assert pool.stop_file.exists(), "workers that wait to run end at once"


def test_a_remote_worker_stops_when_a_file_appears(tmp_path: Path) -> None:
    sweep = SweepDir.create(tmp_path / "sweep", plan(seed=[0]))
    (tmp_path / "stop").touch()
    remote.run_remotely(Worker(sweep.path), tmp_path / "stop")
    assert states(sweep.path) == {"seed=0": "waiting"}


def test_cells_that_cannot_start_end_the_sweep(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridlstm.sweeps.worker.CELL_PROCESS", "gridlstm.no_such_module")
    code, _, errors = gridlstm(
        "sweep", "parity", "--preset", "smoke", "--over", "seed=0", "--out", tmp_path / "sweep"
    )
    assert code == 1
    assert "seed=0: its process ended with code 1: " in errors
    assert "No module named gridlstm.no_such_module" in errors
