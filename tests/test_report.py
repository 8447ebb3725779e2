"""``gridlstm report``: a page about runs, sweeps and reproductions, from files that are not trusted."""

import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.experiments.run_record import record_and_options
from gridlstm.pages.report.parts import ReportError, find_parts
from gridlstm.pages.report.runs import read_runs
from gridlstm.pages.report.states import follow
from gridlstm.pages.report.tables import differing, results, runs_table, shared
from gridlstm.pages.report.write import write_report
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.plan import SweepPlan
from gridlstm.training.lock import LOCK_FILE, is_abandoned, locked

from .made_runs import ROWS, fill_sweep, make_run, make_sweep

PARITY = EXPERIMENTS["parity"]


class Page(HTMLParser):
    """What a browser would make of a page: its elements, the text of them, and the data."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.data: Any = None
        self._inside = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._inside = dict(attributes).get("id") or tag if tag == "script" else tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "report":
            self.data = json.loads(data)
        elif self._inside not in ("script", "style"):
            self.text.append(" ".join(data.split()))

    @property
    def words(self) -> str:
        return "\n".join(text for text in self.text if text)


def report(tmp_path: Path, *paths: Path) -> Page:
    write_report(paths, tmp_path / "page.html")
    return Page(tmp_path / "page.html")


def runs_of(*paths: Path) -> list[Any]:
    (part,) = find_parts(paths)
    return read_runs(part, follow(part)())


def test_the_command(gridlstm: Any, tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    code, output, errors = gridlstm("report", tmp_path / "a")
    assert (code, output, errors) == (0, f"{tmp_path / 'a' / 'report.html'}\n", "")
    assert Page(tmp_path / "a" / "report.html").words.startswith("a – gridlstm report")
    code, output, _ = gridlstm("report", tmp_path / "a", "--out", tmp_path / "b.html")
    assert (code, output) == (0, f"{tmp_path / 'b.html'}\n")


def test_opens_the_page(gridlstm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or len(opened) < 3)
    make_run(tmp_path / "a")
    for command in ("report", "watch", "report"):
        code, _, errors = gridlstm(command, tmp_path / "a", "--open")
        assert code == 0
    assert opened == [(tmp_path / "a" / "report.html").as_uri()] * 3
    assert errors == "no browser found; open the file in one\n"


def test_it_needs_neither_pytorch_nor_matplotlib(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    large = "{'torch', 'matplotlib'} & {*sys.modules}"
    code = f"import sys; from gridlstm.cli import main; main(); print({large})"
    command = [sys.executable, "-c", code, "report", str(tmp_path / "a")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith(
        "set()\n"
    )


def test_curves_are_the_measurements(tmp_path: Path) -> None:
    rows = [*ROWS, {**ROWS[-1], "samples": 9000, "accuracy": math.nan, "loss": math.inf}]
    make_run(tmp_path / "a", rows)
    (part,) = report(tmp_path, tmp_path / "a").data["parts"]
    (curve,) = part["runs"]
    assert curve["y"]["loss"] == [*(row["loss"] for row in ROWS), None]
    assert curve["y"]["accuracy"] == [*(row["accuracy"] for row in ROWS), None]
    assert curve["x"]["samples"] == [row["samples"] / 1000 for row in rows]
    assert curve["x"]["minutes"] == [row["seconds"] / 60 for row in rows]
    assert list(part["y"]) == ["accuracy", "loss"]
    assert not part["log"]


def test_what_differs_comes_first_and_the_seed_is_always_told(tmp_path: Path) -> None:
    make_run(tmp_path / "a", layers=1)
    make_run(tmp_path / "b", layers=2, rate=0.03)
    runs = runs_of(tmp_path / "a", tmp_path / "b")
    table = runs_table(PARITY, runs)
    assert table.titles[:4] == ["run", "layers", "rate", "seed"]
    assert [row[:4] for row in table.rows] == [["a", "1", "0.06", "0"], ["b", "2", "0.03", "0"]]
    options = shared(PARITY, runs)
    assert {"layers", "rate"}.isdisjoint(option.name for option in options)
    assert (options[0].name, options[0].value, options[0].paper) == ("bits", "8", "50")
    assert [bool(option.paper) for option in options] == sorted(
        (bool(option.paper) for option in options), reverse=True
    )
    assert differing(runs_of(tmp_path / "a")) == []


def test_how_runs_ended(tmp_path: Path) -> None:
    reasons = {"a": "solved", "b": "samples", "c": "minutes", "d": "interrupted", "e": None}
    for name, reason in reasons.items():
        make_run(tmp_path / name, reason=reason, accuracy=None if reason is None else 0.875)
    (tmp_path / "e" / LOCK_FILE).write_text("process 1 on another-machine")
    runs = runs_of(*(tmp_path / name for name in reasons))
    ended = ["solved", "out of samples", "cut off", "stopped", "in progress"]
    assert [run.state for run in runs] == ended
    row = runs_table(PARITY, runs).rows[0]
    assert row == ["a", "0", "solved", "7,500", "2.5", "0.9200", "0.9200", "0.8750"]
    table = results(PARITY, runs)
    assert not isinstance(table, str)
    assert table.rows[0][3] == "1 solved, 1 out of samples, 2 cut off"
    assert table.note == "1 of 5 runs have not ended and are not included."


def test_uncommitted_changes_are_marked(tmp_path: Path) -> None:
    make_run(tmp_path / "a", commit="0123456789ab-dirty")
    make_run(tmp_path / "b", seed=1)
    page = report(tmp_path, tmp_path / "a", tmp_path / "b")
    assert "out of samples *\n" in page.words
    assert "2 out of samples *\n" in page.words
    assert "0123456789ab, uncommitted changes" in page.words
    assert "* from a working tree with uncommitted changes" in page.words
    assert "Abacus 3000, 2 cores" in page.words


def test_samples(tmp_path: Path) -> None:
    make_run(tmp_path / "a", lines=["input   0 1", "output  1"])
    assert "input 0 1 output 1" in report(tmp_path, tmp_path / "a").words
    make_run(tmp_path / "b")
    assert "None yet:\ngridlstm train\nwrites them" in report(tmp_path, tmp_path / "b").words


@pytest.mark.parametrize("command", ["train", "eval"])
def test_training_and_evaluating_keep_a_sample(gridlstm: Any, tmp_path: Path, command: str) -> None:
    run = tmp_path / "a"
    assert gridlstm("train", "parity", "--preset", "smoke", "--samples", 30, "--out", run)[0] == 0
    lines = json.loads((run / "demonstration.json").read_text())["lines"]
    if command == "eval":
        (run / "demonstration.json").unlink()
        code, output, _ = gridlstm("eval", run, "--samples", 10)
        assert (code, "demonstration" in output) == (0, False)
    assert [line.split()[0] for line in lines[:2]] == ["input", "output"]
    words = report(tmp_path, run).words
    assert all(" ".join(line.split()) in words for line in lines)


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    make_run(tmp_path / "a", [], reason=None, accuracy=None)
    page = report(tmp_path, tmp_path / "a")
    assert "Nothing has been measured yet." in page.words
    assert "No run has ended yet." in page.words


def test_a_sweep(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", layers=[1, 2], seed=[0, 1])
    words = report(tmp_path, sweep.path).words
    assert words.count("waiting") == 4
    fill_sweep(sweep)
    run = sweep.run("layers=2,seed=1")
    (run.path / "metrics.jsonl").write_text("damaged\n")
    (run.path / "evaluation.json").unlink()
    sweep.record_failure("layers=1,seed=1", 1, "the loss is not finite")
    (sweep.path / "sweep.svg").write_text("<svg/>")
    page = report(tmp_path, sweep.path)
    assert "Sweep sweep" in page.words
    assert "the loss is not finite" in page.words
    assert "metrics.jsonl: Expecting value" in page.words
    images = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert images == ["data:image/svg+xml;base64,PHN2Zy8+"]


def test_a_reproduction(tmp_path: Path) -> None:
    for number in ("10", "9"):
        plan = PARITY.paper_figures[number].plans["smoke"]
        out = tmp_path / "reproduction" / "smoke" / f"figure-{number}"
        SweepDir.create(out, SweepPlan(PARITY, *plan))
        out.with_name(f"{out.name}.png").write_bytes(b"picture")
    page = report(tmp_path, tmp_path / "reproduction")
    titles = [f"Figure {number}, smoke scale" for number in ("9", "10")]
    assert [text for text in page.text if text in titles] == [*titles, *titles]  # Contents, headings.
    assert PARITY.paper_figures["9"].about in page.text
    assert [a["src"] for tag, a in page.elements if tag == "img"] == [
        "data:image/png;base64,cGljdHVyZQ=="
    ] * 2
    below = report(tmp_path, tmp_path / "reproduction" / "smoke" / "figure-9")
    assert below.words.startswith("Figure 9, smoke scale – gridlstm report")


def test_runs_of_two_experiments_have_a_part_each(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    make_run(tmp_path / "b", experiment="addition")
    make_run(tmp_path / "other" / "a", layers=1)
    parts = find_parts([tmp_path / "a", tmp_path / "b", tmp_path / "other" / "a"])
    assert [part.experiment.name for part in parts] == ["parity", "addition"]
    assert list(parts[0].runs) == [str(tmp_path / "a"), str(tmp_path / "other" / "a")]


def test_what_is_not_a_run(gridlstm: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(ReportError, match="expected a run, a sweep or a reproduction; found none"):
            find_parts([path])
    assert gridlstm("report", tmp_path / "missing")[0] == 2
    code, _, errors = gridlstm("report")
    assert (code, errors) == (
        2,
        "gridlstm: RUN: expected the directory of at least one run or sweep, got none\n",
    )
    make_run(tmp_path / "a")
    (tmp_path / "a" / "metrics.jsonl").write_text("damaged\n")
    code, _, errors = gridlstm("report", tmp_path / "a")
    assert (code, "metrics.jsonl: Expecting value" in errors, errors.count("\n")) == (2, True, 1)


ATTACK = (
    "</script></pre><script>hacked=1</script><img src=x onerror=hacked=1>\" onload='hacked=1' {{made}}"
)


def hostile_run(path: Path) -> Path:
    """A run whose files hold HTML wherever they can hold a string."""
    name = ATTACK.replace("/", "∕")
    attacked = [{**row, ATTACK: 1.0, "bits": 2.0} for row in ROWS]
    run = make_run(
        path / name, attacked, experiment="characters", text=ATTACK, lines=[ATTACK], commit=ATTACK
    )
    for file in ("sessions.json", "evaluation.json", "summary.json"):
        content = json.loads((run.path / file).read_text())
        for entry in content if isinstance(content, list) else [content]:
            entry.update(dict.fromkeys(("python", "threads", "bits", "best", "time"), ATTACK))
            entry.update(machine={"processor": ATTACK, "cores": ATTACK, "memory_gib": ATTACK})
            entry.update(versions={ATTACK: ATTACK}, environment={"commit": 1})
        (run.path / file).write_text(json.dumps(content))
    return run.path


def test_strings_of_files_are_escaped(tmp_path: Path) -> None:
    page = report(tmp_path, hostile_run(tmp_path))
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "report"}, {}, {}]
    assert not [tag for tag, _ in page.elements if tag == "img"]
    handlers = [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert not handlers
    assert page.words.count("<script>hacked=1") >= 5  # Shown as text.
    (curves,) = page.data["parts"]
    assert ATTACK in curves["y"]


def test_what_cannot_be_written_or_formatted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", lines=["half a pair: \ud800"])
    huge = {"accuracy": 10**400, "environment": {"machine": {"memory_gib": 10**400, "cores": 1e308}}}
    run.write_result("evaluation.json", huge)
    words = report(tmp_path, run.path).words
    assert "half a pair: ?" in words
    assert "a large number GiB" in words


def test_the_page_lets_no_other_script_run_and_loads_nothing(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    page = report(tmp_path, tmp_path / "a")
    (policy,) = [
        a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    scripts = r"script-src( 'sha256-[\w+/=]+'){2}"
    rest = "style-src 'unsafe-inline'; img-src data:"
    assert re.fullmatch(f"default-src 'none'; {scripts}; {rest}", policy)
    assert "Permission is hereby granted, free of charge" in page.words  # As uPlot's licence demands.
    assert not [a for _, a in page.elements if "src" in a or (a.get("href") or "#")[0] != "#"]


@pytest.mark.parametrize("broken", [{"samples": "many"}, {"samples": None}, {"seconds": {}}])
def test_a_table_that_cannot_be_made_is_no_reason_to_fail(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    run = make_run(tmp_path / "a")
    summary = {**json.loads((run.path / "summary.json").read_text()), **broken}
    (run.path / "summary.json").write_text(json.dumps(summary))
    assert "The files of a run are damaged" in report(tmp_path, tmp_path / "a").words


def test_an_older_run_is_read_with_the_options_of_its_version(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", layers=3)
    assert record_and_options(run)[1].layers == 3
    config = json.loads((run.path / "config.json").read_text())
    del config["options"]["momentum"]
    (run.path / "config.json").write_text(json.dumps(config))
    make_run(tmp_path / "b", layers=3)
    runs = runs_of(tmp_path / "a", tmp_path / "b")
    assert differing(runs) == ["momentum"]
    assert [row[1] for row in runs_table(PARITY, runs).rows] == ["–", "0.95"]


def test_whether_a_run_was_abandoned(tmp_path: Path) -> None:
    assert is_abandoned(tmp_path)
    with locked(tmp_path):
        assert not is_abandoned(tmp_path)  # By this process, which runs.
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock = tmp_path / LOCK_FILE
    here = lock.read_text().split()[-1]
    lock.write_text(f"process {ended.pid} on {here}\n")
    assert is_abandoned(tmp_path)
    for text in (
        f"process {ended.pid} on elsewhere",
        "",
        "process x on y",
        f"process {10**30} on {here}",
    ):
        lock.write_text(text)
        assert not is_abandoned(tmp_path)
