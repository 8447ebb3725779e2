"""Damaged, hostile and foreign files of runs: every command ends with one line and an exit code.

``GRIDLSTM_FUZZ`` is how many cases to run, ``GRIDLSTM_FUZZ_SEED`` where their numbers begin.
"""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CASES = int(os.environ.get("GRIDLSTM_FUZZ", "250"))
FIRST = int(os.environ.get("GRIDLSTM_FUZZ_SEED", "0"))
SECONDS = 60
"""What takes longer hangs, however busy the machine is."""
MEMORY = 400 * 2**20
"""Bytes that nothing may take beyond what there was."""

STRANGE: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        0.5,
        -0.0,
        float("nan"),
        float("inf"),
        1e308,
        2**26,
        10**9,
        2**53,
    ),
    *(
        2**63,
        10**30,
        10**4000,
        "",
        "x",
        "tied-grid",
        "[bold]",
        "\x1b[31mred",
        "\ud800",
        "a\nb",
        "é" * 500,
    ),
    *([], {}, [[]], [1, 2], ["x"], {"": {}}, {"step": "x"}, [None] * 50),
]
NAMES = [
    *("config.json", "sessions.json", "metrics.jsonl", "summary.json", "evaluation.json"),
    *("demonstration.json", "model.safetensors", "state.json", "tensors.safetensors"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of characters and one of memorization, each evaluated."""
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("whole")
    text = folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 60)
    brief = ["--preset", "smoke", "--samples", "32", "--evaluate-every", "16", "--hidden", "4"]
    sizes = {
        "characters": ["--text", str(text), "--chunk", "10", "--sequence", "20", "--validated", "50"],
        "memorization": ["--batch", "16"],
    }
    start = [sys.executable, "-m", "gridlstm"]
    for name, options in sizes.items():
        out = str(folder / name)
        subprocess.run([*start, "train", name, *brief, *options, "--out", out], check=True)
        subprocess.run([*start, "eval", out, "--samples", "20"], check=True)
    return {name: folder / name for name in sizes}


def strange_json(rng: random.Random, content: Any) -> Any:
    """The same with one place of it changed, anywhere."""
    if isinstance(content, dict | list) and content and rng.random() < 0.85:
        keys = list(content) if isinstance(content, dict) else range(len(content))
        place = rng.choice(list(keys))
        changed = content.copy()
        kind = rng.random()
        if kind < 0.1:
            del changed[place]
        elif kind < 0.2 and isinstance(changed, dict):
            changed[rng.choice(["", "odd", "[red]", "\x1b"])] = changed.pop(place)
        else:
            changed[place] = strange_json(rng, content[place])
        return changed
    return rng.choice([*STRANGE, [content], {"x": content}])


def strange_text(rng: random.Random, text: str) -> str:
    """JSON, or lines of it, with another structure."""
    lines = text.splitlines() if text.startswith('{"samples"') else [text]
    place = rng.randrange(len(lines))
    if rng.random() < 0.05:
        depth = rng.choice([500, 100_000])
        lines[place] = rng.choice(
            ["[" * depth, "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth]
        )
    else:
        lines[place] = json.dumps(strange_json(rng, json.loads(lines[place])))
    return "\n".join(lines) + "\n"


def strange_tensors(rng: random.Random, content: bytes) -> bytes:
    """Weights with another header, or with strange numbers."""
    (size,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    kind = rng.random()
    if kind < 0.2:
        number = rng.choice([float("nan"), float("inf"), 1e38])
        place = 4 * rng.randrange(len(body) // 4)
        body = body[:place] + struct.pack("<f", number) + body[place + 4 :]
    elif kind < 0.5:
        entry = header[rng.choice(list(header))]
        if "dtype" in entry:
            entry[rng.choice(["dtype", "shape"])] = rng.choice(
                ["F32", "F64", "I64", "U8", "BF16", [], [1], [2**26], [2**40, 2**40], [0], [4, 4, 4]]
            )
    elif kind < 0.6:  # The bomb: a number where there should be bytes.
        header["alphabet"] = {"dtype": "I64", "shape": [], "data_offsets": [len(body), len(body) + 8]}
        body += struct.pack("<q", 2**26)
    else:
        header = strange_json(rng, header)
    written = json.dumps(header).encode()
    return struct.pack("<Q", rng.choice([len(written)] * 9 + [2**62])) + written + body


def strange_bytes(rng: random.Random, content: bytes) -> bytes:
    """Bytes that are lost, changed or added."""
    place, length = rng.randrange(len(content) + 1), rng.choice([1, 1, 2, 8, 100])
    kind = rng.random()
    if kind < 0.3:
        return content[:place]
    if kind < 0.6:
        return content[:place] + rng.randbytes(length) + content[place + length :]
    if kind < 0.8:
        return content[:place] + content[place + length :]
    return content[:place] + rng.randbytes(length) + content[place:]


def sign(checkpoint: Path) -> None:
    """Makes a changed checkpoint pass for whole."""
    path = checkpoint / "state.json"
    described = json.loads(path.read_text())
    if isinstance(described, dict):
        content = (checkpoint / "tensors.safetensors").read_bytes()
        described["tensors"] = hashlib.sha256(content).hexdigest()
        described.pop("sha256", None)
        text = json.dumps(described, sort_keys=True)
        path.write_text(json.dumps({**described, "sha256": hashlib.sha256(text.encode()).hexdigest()}))


def damage(rng: random.Random, run: Path, other: Path) -> str:
    """Changes one file of a run. Returns what was done."""
    (checkpoint,) = (run / "checkpoints").iterdir()
    name = rng.choice(NAMES)
    inside = name in ("state.json", "tensors.safetensors")
    path = (checkpoint if inside else run) / name
    if inside:  # It is looked at only where there is nothing better.
        (run / "model.safetensors").unlink()
        (run / "best.safetensors").unlink(missing_ok=True)
    content, kind = path.read_bytes(), rng.random()
    if kind < 0.05:
        path.unlink()
        rng.choice([lambda: None, path.mkdir, lambda: path.symlink_to(path.name)])()
        return f"{name} gone"
    if kind < 0.1:
        files = [file for file in other.rglob("*") if file.is_file()]
        path.write_bytes(rng.choice(files).read_bytes())
        return f"{name} swapped"
    if kind < 0.35:
        path.write_bytes(strange_bytes(rng, content))
        return f"{name} damaged"
    if name.endswith("safetensors"):
        path.write_bytes(strange_tensors(rng, content))
    else:
        path.write_text(strange_text(rng, content.decode()))
    if inside and rng.random() < 0.8:
        try:
            sign(checkpoint)
        except (ValueError, RecursionError):
            return f"{name} changed, cannot be signed"
        return f"{name} changed and signed"
    return f"{name} changed"


def command(rng: random.Random, run: Path, kind: str, text: Path) -> list[object]:
    commands: list[list[object]] = [
        ["list", "--folder", run.parent],
        ["collect", run, "--out", run.parent / "kept.json"],
        ["report", run, "--out", run.parent / "report.html"],
        ["eval", run, "--samples", 20],
        ["train", kind, "--out", run, "--resume", "--samples", 32],
    ]
    if rng.random() < 0.15:
        commands = [["plot", "curve", run, "--out", run.parent / "figure"]]
    elif kind == "characters":
        commands += [["generate", run, "--length", 10], ["score", run, text]]
    return rng.choice(commands)


def peak() -> int:
    """The most bytes of memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.filterwarnings("ignore::UserWarning:matplotlib")
def test_no_file_of_a_run_breaks_a_command(
    gridlstm: Callable[..., tuple[int, str, str]], runs: dict[str, Path], tmp_path: Path
) -> None:
    def too_long(number: int, frame: object) -> None:
        raise AssertionError(f"took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    text, failed, codes = runs["characters"].parent / "text.txt", [], {0: 0, 1: 0, 2: 0}
    for kind, run in runs.items():  # Whatever is imported is there before memory is measured.
        for words in (
            ["eval", run, "--samples", 20],
            ["plot", "curve", run, "--out", tmp_path / "figure"],
        ):
            assert gridlstm(*words)[0] == 0, kind
    allowed = peak() + MEMORY
    for number in range(FIRST, FIRST + CASES):
        rng = random.Random(number)
        kind = rng.choice(list(runs))
        run = tmp_path / rng.choice(["run", "a [bold]run[/x]", "\x1b[31mrun"])
        shutil.copytree(runs[kind], run)
        done = damage(rng, run, runs[rng.choice(list(runs))])
        words = command(rng, run, kind, text)
        signal.alarm(SECONDS)
        code, output, errors = gridlstm(*words)
        signal.alarm(0)
        shutil.rmtree(run)
        codes[code] = codes.get(code, 0) + 1
        lines = errors.splitlines()
        explained = code == 0 or (bool(lines) and lines[-1].startswith("gridlstm"))
        if code not in (0, 1, 2) or not explained or "Traceback" in errors or "\x1b" in output + errors:
            failed.append(f"case {number}, {kind}, {done}: {words}: {code} {errors[-1500:]}")
        if peak() > allowed:
            failed.append(f"case {number}, {kind}, {done}: {words}: memory")
            allowed = peak() + MEMORY
    signal.signal(signal.SIGALRM, before)
    assert not failed, "\n\n".join([f"{len(failed)} of {CASES}, {codes}", *failed[:20]])
    # The cases are neither all harmless nor all hopeless.
    assert min(codes[0], codes[2]) > CASES / 20, codes
