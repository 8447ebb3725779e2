"""Files are written atomically, and are on disk before they get their name."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from torch import nn

from gridlstm.figures.save import save_figure
from gridlstm.files import atomic_write, checksum, read_json, write_bytes, write_json, write_text
from gridlstm.training.weights import save_weights

WRITERS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: write_bytes(path, b"new"),
    "text": lambda path: write_text(path, "new"),
    "json": lambda path: write_json(path, {"new": 1}),
    "weights": lambda path: save_weights(nn.Linear(2, 3), path),
    "figure": lambda path: save_figure(Figure(), path),
}


def record_events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Records the files that are forced to disk and renamed from now on, in order."""
    events: list[tuple[str, str]] = []
    fsync, replace = os.fsync, Path.replace

    def forced(handle: int) -> None:
        events.append(("fsync", Path(f"/proc/self/fd/{handle}").readlink().name))
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        events.append(("rename", target.name))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(Path, "replace", renamed)
    return events


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the names of open files")
@pytest.mark.parametrize("writer", WRITERS)
def test_content_and_folder_are_forced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    events = record_events(monkeypatch)
    path = tmp_path / "new.png"
    WRITERS[writer](path)
    (first, temporary), second, third = events[:3]
    assert first == "fsync"
    assert temporary.startswith(".new.png.tmp-")
    assert second == ("rename", "new.png")
    assert third == ("fsync", tmp_path.name)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("writer", WRITERS)
def test_new_files_have_the_usual_mode(tmp_path: Path, writer: str) -> None:
    before = os.umask(0o026)
    try:
        WRITERS[writer](tmp_path / "new.png")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o640}


@pytest.mark.parametrize("folder", [False, True])
def test_a_failure_leaves_the_old_file(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "kept"
    path.write_text("old")

    def fail() -> None:
        with atomic_write(path, folder=folder) as temporary:
            (temporary / "part" if folder else temporary).write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_written_with_its_files(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "folder"
    with atomic_write(path, folder=True) as temporary:
        (temporary / "a").write_text("1")
        assert list(path.parent.iterdir()) == [temporary]
    assert (path / "a").read_text() == "1"
    assert list(path.parent.iterdir()) == [path]


def test_two_writers_do_not_meet_and_names_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / ("[é]" * 60)
    with atomic_write(path) as one, atomic_write(path) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"


def test_json_that_is_nested_deeply_is_refused_like_other_damage() -> None:
    assert read_json(json.dumps({"a": [1]})) == {"a": [1]}
    for text in ("[" * 100_000, '{"a":' * 100_000, "{", ""):
        with pytest.raises(ValueError, match=r"nested too deeply|Expecting"):
            read_json(text)


def test_a_checksum_is_that_of_the_content(tmp_path: Path) -> None:
    content = bytes(3 << 20)
    write_bytes(tmp_path / "file", content)
    assert checksum(tmp_path / "file") == hashlib.sha256(content).hexdigest()
