"""What a user sees of a run on a terminal: the progress bar, the outcome, and what to try next."""

import fcntl
import io
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from gridlstm.experiments.characters.data import Corpus
from gridlstm.experiments.trained import open_run
from gridlstm.experiments.translation.text_translator import load_translator
from gridlstm.training.progress import ProgressLine
from gridlstm.training.settings import Training

MODULE = [sys.executable, "-m", "gridlstm"]


def screen(command: list[str], columns: int, folder: Path) -> tuple[int, list[str]]:
    """Runs a command in a terminal: exit code, and every state of every line, as plain text."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=environment, cwd=folder
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 1 << 16)
        except OSError:  # How Linux tells that the other side is closed.
            break
        if not part:
            break
        seen += part
    os.close(leader)
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", seen.decode())
    return process.wait(60), re.split(r"[\r\n]+", plain)


class Clock:
    """Time that passes only when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def rendered(bar: ProgressLine, columns: int) -> str:
    """The line as it is now."""
    console = Console(file=io.StringIO(), width=columns, color_system=None, force_terminal=True)
    console.print(bar, end="")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("goal", "limits", "done", "left"),
    [
        ("accuracy", {}, 24_000, None),  # Not the ten hours of 5 million samples.
        ("accuracy", {"minutes": 60.0}, 24_000, "max 57:00 left"),
        ("accuracy", {"samples": 48_000}, 24_000, "max 3:00 left"),
        ("accuracy", {"samples": 48_000, "minutes": 4.0}, 24_000, "max 1:00 left"),
        (None, {"samples": 48_000}, 12_000, "9:00 left"),
        (None, {"samples": 48_000, "minutes": 4.0}, 12_000, "1:00 left"),
        (None, {"samples": 48_000, "minutes": 600.0}, 12_000, "9:00 left"),
        (None, {"samples": 2_400_000}, 12_000, "9:57:00 left"),
    ],
)
@pytest.mark.parametrize("columns", [40, 80, 160])
def test_the_time_left_is_that_of_what_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
    goal: str | None,
    limits: dict[str, float],
    done: int,
    left: str | None,
    columns: int,
) -> None:
    """After three minutes. The name goes first if there is no room; bar, count and time left stay."""
    clock = Clock()
    monkeypatch.setattr("gridlstm.training.progress.time", clock)
    bar = ProgressLine("memorization-20", 0, Training(**limits), goal, Console(file=io.StringIO()))  # type: ignore[arg-type]
    clock.now = 180.0
    bar.stepped(done, 0.5)
    bar.evaluated({"accuracy": 0.75, "whole": 0.5})
    line = rendered(bar, columns)
    assert "\n" not in line
    assert len(line) <= columns
    shown = re.search(r"(max )?[\d:]+ left", line)
    assert (shown and shown[0]) == left
    total = "" if goal else f"/{Training(**limits).samples:,}"  # type: ignore[arg-type]
    assert line.index(f"  {done:,}{total}") >= 5  # Room for the bar.
    assert ("━" in line) == (left != "9:57:00 left")
    assert ("memorization-20" in line) == (columns == 160)
    if columns >= 80:
        assert "accuracy 0.7500" in line
        assert "3:00" in line
        assert f"{done / 180:.0f}/s" in line


def test_the_bar_shows_how_near_the_end_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("gridlstm.training.progress.time", clock)
    lengths = []
    for goal, limits in (("accuracy", {}), (None, {"samples": 100}), (None, {"minutes": 2.0})):
        bar = ProgressLine("run", 0, Training(**limits), goal, Console(file=io.StringIO()))  # type: ignore[arg-type]
        clock.now += 60
        bar.stepped(50, 0.5)
        bar.evaluated({"accuracy": 0.5})
        lengths.append(rendered(bar, 160).count("━"))
    assert lengths == [20, 20, 20]  # Half of the widest there is.


@pytest.mark.parametrize("columns", [40, 80])
def test_the_bar_on_a_terminal(tmp_path: Path, columns: int) -> None:
    """It never breaks into two lines, and ends with what was measured last."""
    options = ["--preset", "smoke", "--samples", "1500", "--evaluate-every", "750", "--rate", "1e-9"]
    command = [*MODULE, "train", "memorization", *options, "--out", "runs/a-long-name-of-a-run"]
    code, lines = screen(command, columns, tmp_path)
    assert code == 0
    frames = [line for line in lines if re.search(r"\d samples", line)]
    assert max(map(len, frames)) <= columns
    assert "1,500 samples" in frames[-1]
    run = tmp_path / "runs/a-long-name-of-a-run"
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    if columns == 80:
        assert f"accuracy {last['accuracy']:.4f}" in frames[-1]
        assert not any("a-long-name" in frame for frame in frames)
    assert not any(line.startswith('{"') for line in lines)
    # What to try next is written so that it runs here.
    commands = [line.strip() for line in lines if line.startswith(f"  {sys.executable} -m gridlstm")]
    assert len(commands) == 3
    assert shlex.split(commands[0], comments=True)[-2:] == ["eval", "runs/a-long-name-of-a-run"]


def test_a_run_that_is_out_of_time_says_how_to_continue_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gridlstm"
    program.write_text(f"#!{sys.executable}\nfrom gridlstm.cli import main\n\nmain()\n")
    program.chmod(0o755)
    options = ["--preset", "smoke", "--rate", "1e-9", "--minutes", "0.02", "--samples", "9999999"]
    code, lines = screen(["bin/gridlstm", "train", "parity", *options], 200, tmp_path)
    assert code == 0
    assert f"Continue it with: bin/gridlstm train parity {shlex.join(options)} --resume" in lines


def test_translating_to_a_terminal(tmp_path: Path) -> None:
    """There are translations, how long they took, and nothing else, not even for a moment."""
    (tmp_path / "in").write_text("他不喜欢吃鱼。\n")
    command = shlex.join([*MODULE, "translate", "--beam", "2"])
    code, lines = screen(["sh", "-c", f"{command} < in"], 80, tmp_path)
    assert code == 0
    translator = load_translator(open_run(None, "translation"))
    ((_, translation),) = translator.translate([translator.source.encode("他不喜欢吃鱼。")], 2)
    shown, pace, *rest = lines
    assert shown == translation
    assert re.fullmatch(r"1 sentence, [\d.]+ s each", pace)
    assert not any(rest)


NEXT = {
    "characters": r"[\s\S]{500}\n",
    "translation": r".+\n",
    "images": r".*/a run/mistakes\.png\n.*/a run/mistakes\.svg\n",
}
"""What the last of the commands to try next writes; after the others, a text like Shakespeare's."""


@pytest.mark.parametrize(
    ("experiment", "does"),
    [
        ("memorization", r"  input  +- +\d+ +\d+ +-\n  output +[\d-]+ +[\d-]+\n"),
        ("addition", r"  input   - \d - \d -\n  output  [\d-]( [\d-])?\n"),
        ("parity", r"  input   [01]( [01]){7}\n  output  [01]\n"),
        ("characters", re.escape(Corpus.shakespeare().test[:20].tobytes().decode().splitlines()[0])),
        ("translation", r"  zh  她现在忙，没有办法跟您说话。\n  en  \w.*\n"),
        ("images", r"@.*\n(.*\n)+  recognised as \d \([\d.]+%\); it is 0\n"),
    ],
)
def test_training_ends_with_what_the_network_does_and_what_to_try(
    gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, experiment: str, does: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    out = tmp_path / "a run"
    code, output, _ = gridlstm("train", experiment, "--preset", "smoke", "--samples", 320, "--out", out)
    assert code == 0
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", output)
    _, _, end = text.partition("What it does with an unseen sample:\n\n")
    shown, _, further = end.partition("\nTry next:\n\n")
    assert re.search(does, shown), shown
    monkeypatch.delenv("FORCE_COLOR")
    commands = [shlex.split(line, comments=True) for line in further.splitlines()]
    assert [command[:2] for command in commands[:2]] == [["gridlstm", "eval"], ["gridlstm", "report"]]
    assert len(commands) == 3
    outputs = []
    for _, *arguments in commands:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("你好。\n".encode())))
        few = ("--samples", 20) if arguments[0] == "eval" else ()  # All test data would take long.
        code, output, _ = gridlstm(*arguments, *few)
        assert code == 0
        outputs.append(output)
    evaluated, reported, tried = outputs
    assert json.loads(evaluated)["run"] == "a run"
    assert reported == f"{out / 'report.html'}\n"
    page = unescape((out / "report.html").read_text())
    assert all(line[2:] in page for line in shown.splitlines())
    assert re.fullmatch(NEXT.get(experiment, r"ROMEO:[\s\S]{200,}\n"), tried), tried
