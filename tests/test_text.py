"""Files of data sets and texts: found whole or not at all, cut so that every character has its turn."""

import errno
import gzip
import hashlib
import io
import lzma
import os
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

from gridlstm.cache import cache_folder
from gridlstm.data.locate import DataError, Packing, Source, embedded, find
from gridlstm.experiments.characters.data import (
    Corpus,
    contiguous,
    decode,
    draw_chunks,
    encode,
    starts_sequence,
)

DATA = Path(os.environ.get("GRIDLSTM_DATA") or Path(__file__).parents[2] / "shared" / "data")
PLAIN = "Zwölf Boxkämpfer, 十二拳击手.\n".encode() * 200
PACKINGS: list[Packing] = ["", ".xz", ".gz", ".zip"]
SOURCE = Source(
    "boxers/boxers", len(PLAIN), hashlib.sha256(PLAIN).hexdigest(), "https://nowhere.test/b"
)


def pack(packing: Packing, content: bytes = PLAIN, members: tuple[str, ...] = ("boxers",)) -> bytes:
    if packing != ".zip":
        return {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[packing](content)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, content)
    return packed.getvalue()


def kept() -> list[Path]:
    """What is in the cache but for remembered checksums."""
    return [path for path in cache_folder().rglob("*") if path.is_file() and path.parent.name != "sums"]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own, no data and no network."""

    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GRIDLSTM_DATA", raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # Nobody is there.


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("below", ["", "boxers"])
@pytest.mark.parametrize("by", ["argument", "environment"])
def test_found_in_the_folder(packing, below, by, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / below).mkdir(exist_ok=True)
    file = tmp_path / below / f"boxers{packing}"
    file.write_bytes(pack(packing))
    if by == "environment":
        monkeypatch.setenv("GRIDLSTM_DATA", str(tmp_path))
    path = find(SOURCE, tmp_path if by == "argument" else None)
    assert path.read_bytes() == PLAIN
    assert path == (cache_folder() / "data" / "boxers" / "boxers" if packing else file)
    assert kept() == ([path] if packing else [])
    if packing:  # Once: from now on the packed file is not read again.
        file.write_bytes(b"")
        assert find(SOURCE, tmp_path) == find(SOURCE) == path


def test_the_cache_is_among_the_user_s(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRIDLSTM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "gridlstm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "gridlstm"


def test_a_checksum_is_remembered_until_the_file_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "boxers"
    path.write_bytes(PLAIN)
    find(SOURCE, tmp_path)
    time = path.stat().st_mtime_ns
    path.write_bytes(PLAIN[::-1])
    os.utime(path, ns=(time, time))
    assert find(SOURCE, tmp_path) == path
    os.utime(path, ns=(time, time + 1))
    with pytest.raises(DataError, match="changed"):
        find(SOURCE, tmp_path)
    path.write_bytes(PLAIN[1:])
    os.utime(path, ns=(time, time))
    with pytest.raises(DataError, match=r"boxers: truncated: expected 7400 bytes, got 7399"):
        find(SOURCE, tmp_path)


def test_checksums_need_not_be_remembered(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "boxers").write_bytes(PLAIN)
    (tmp_path / "occupied").touch()
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "occupied"))
    assert find(SOURCE, tmp_path) == tmp_path / "boxers"


def test_missing_without_network(tmp_path: Path) -> None:
    source = replace(SOURCE, packing=".zip")
    hint = (
        r"and not downloaded; put boxers\.zip from https://nowhere\.test/b into a folder named by "
        r"--data or GRIDLSTM_DATA \(.*Connection refused\)$"
    )
    with pytest.raises(DataError, match=f"^boxers/boxers: not found, {hint}"):
        find(source)
    with pytest.raises(DataError, match=f"^boxers/boxers: not found in .*, {hint}"):
        find(source, tmp_path)
    assert not kept()


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data: expected a folder, got .*nowhere$"):
        find(SOURCE, tmp_path / "nowhere")


@pytest.mark.parametrize("packing", PACKINGS[1:])
@pytest.mark.parametrize("damage", ["truncated", "changed", "garbage", "empty"])
def test_a_damaged_packed_file(packing: Packing, damage: str, tmp_path: Path) -> None:
    whole = pack(packing)
    middle = len(whole) // 2
    content = {
        "truncated": whole[:-20],
        "changed": whole[:middle] + bytes(255 - byte for byte in whole[middle:]),
        "garbage": PLAIN,
        "empty": b"",
    }
    path = tmp_path / f"boxers{packing}"
    path.write_bytes(content[damage])
    with pytest.raises(DataError, match=rf"boxers{packing}: truncated") as caught:
        find(SOURCE, tmp_path)
    assert "\n" not in str(caught.value)
    assert not kept()


@pytest.mark.parametrize("packing", PACKINGS)
def test_another_file_of_that_name(packing: Packing, tmp_path: Path) -> None:
    path = tmp_path / f"boxers{packing}"
    path.write_bytes(pack(packing, PLAIN[::-1]))
    with pytest.raises(DataError, match=rf": changed: expected sha256 {SOURCE.sha256}, got "):
        find(SOURCE, tmp_path)
    path.write_bytes(pack(packing, PLAIN * 1000))
    with pytest.raises(DataError, match=r": changed: expected 7400 bytes, got (more|7400000)$"):
        find(SOURCE, tmp_path)
    assert not kept()


def test_a_zip_is_read_by_name_only(tmp_path: Path) -> None:
    hostile = ("../../boxers", "/boxers", "boxers/", "other\\..\\boxers")
    path = tmp_path / "data" / "boxers.zip"
    path.parent.mkdir()
    path.write_bytes(pack(".zip", members=hostile))
    with pytest.raises(DataError, match=r"boxers\.zip: .*\(no boxers in the archive\)"):
        find(SOURCE, path.parent)
    path.write_bytes(pack(".zip", members=(*hostile, "boxers")))
    found = find(SOURCE, path.parent)
    everything = {path for path in tmp_path.rglob("*boxers*") if path.is_file()}
    assert everything == {path, found}


def test_a_zip_with_a_password(tmp_path: Path) -> None:
    packed = bytearray(pack(".zip"))
    for header, flags in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        packed[packed.index(header) + flags] |= 1
    (tmp_path / "boxers.zip").write_bytes(packed)
    with pytest.raises(DataError, match=r"boxers\.zip: truncated or damaged \(.*encrypted"):
        find(SOURCE, tmp_path)


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_file_that_cannot_be_read(packing: Packing, tmp_path: Path, monkeypatch) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    (tmp_path / f"boxers{packing}").write_bytes(pack(packing))
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=rf"boxers{packing}: cannot be read \(Permission denied\)$"):
        find(SOURCE, tmp_path)


@pytest.mark.parametrize("packing", [".gz", ".xz"])
def test_a_full_disk(packing: Packing, tmp_path: Path, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / f"boxers{packing}").write_bytes(pack(packing))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"boxers: cannot be written \(No space left on device\)$"):
        find(SOURCE, tmp_path)
    assert not kept()


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "occupied").touch()
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "occupied"))
    with pytest.raises(DataError, match=r"boxers: cannot be written \(Not a directory\)$"):
        find(SOURCE)
    (tmp_path / "boxers.gz").write_bytes(pack(".gz"))
    with pytest.raises(
        DataError, match=r"boxers: cannot be written \((Not a directory|File exists)\)$"
    ):
        find(SOURCE, tmp_path)


def test_processes_at_once(tmp_path: Path) -> None:
    (tmp_path / "boxers.xz").write_bytes(pack(".xz"))
    code = f"from gridlstm.data.locate import Source, find\nprint(find({SOURCE!r}).stat().st_size)"
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "GRIDLSTM_DATA": str(tmp_path)}
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [process.communicate()[0] for process in running] == ["7400\n"] * 3
    assert len(kept()) == 1


def test_a_big_file_is_unpacked_in_little_memory(tmp_path: Path) -> None:
    content = bytes(2**25)
    big = Source("big", len(content), hashlib.sha256(content).hexdigest(), SOURCE.address)
    (tmp_path / "big.gz").write_bytes(gzip.compress(content, 1))
    del content
    tracemalloc.start()
    path = find(big, tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    corpus = Corpus.from_file(path)
    assert corpus.alphabet == b"\0"
    assert tracemalloc.get_traced_memory()[1] < 2**24 + 2**25
    tracemalloc.stop()


def test_without_a_home_directory(tmp_path: Path, monkeypatch) -> None:
    """A plain file needs no cache; anything else says what to do."""

    def nobody(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("HOME", "XDG_CACHE_HOME", "GRIDLSTM_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DataError, match=r"cannot be read \(no home directory; set GRIDLSTM_CACHE"):
        find(SOURCE)
    (tmp_path / "boxers").write_bytes(PLAIN)
    assert find(SOURCE, tmp_path) == tmp_path / "boxers"


def test_a_relative_cache_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("GRIDLSTM_CACHE", "here")
    with pytest.raises(DataError, match="GRIDLSTM_CACHE: expected an absolute path, got here"):
        find(SOURCE)
    monkeypatch.delenv("GRIDLSTM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")  # By its specification not to be used.
    assert cache_folder() == Path.home() / ".cache" / "gridlstm"


def test_an_embedded_file_is_verified() -> None:
    with pytest.raises(
        DataError, match=r"tinyshakespeare\.txt\.xz: changed: expected sha256 0, got 86c"
    ):
        embedded("tinyshakespeare.txt", "0")
    with pytest.raises(DataError, match=r"hamlet\.xz: cannot be read \(No such file"):
        embedded("hamlet", "0")


def test_shakespeare() -> None:
    corpus = Corpus.shakespeare()
    text = corpus.text.tobytes().decode("ascii")
    assert len(text) == 1_115_394
    assert "".join(sorted(set(text))).encode() == corpus.alphabet
    parts = np.concatenate([corpus.train, corpus.valid, corpus.test])
    assert parts.tobytes().decode() == text


def test_texts_need_no_pytorch() -> None:
    code = "import sys, gridlstm.experiments.characters.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("size", [40, 41, 59, 99, 1000, 7400])
def test_any_file(size: int, tmp_path: Path) -> None:
    path = tmp_path / "boxers.txt"
    path.write_bytes(PLAIN[:size])
    corpus = Corpus.from_file(path)
    parts = [corpus.train, corpus.valid, corpus.test]
    assert b"".join(part.tobytes() for part in parts) == PLAIN[:size]
    assert corpus.alphabet == bytes(sorted(set(PLAIN[:size])))
    assert min(map(len, parts)) >= 2
    np.testing.assert_allclose([len(part) / size for part in parts], [0.9, 0.05, 0.05], atol=1 / size)
    with pytest.raises(ValueError, match="read-only"):
        corpus.train[0] = 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"text: file not found$"),
        ("folder", r"text: expected a file, got a folder$"),
        (b"", r"text: expected a text of at least 40 bytes, got an empty file$"),
        (PLAIN[:39], r"text: expected a text of at least 40 bytes, got 39$"),
    ],
)
def test_files_that_are_no_text(content: bytes | str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        Corpus.from_file(path)


@given(text=st.binary(max_size=60), alphabet=st.frozensets(st.integers(0, 255)))
@example(text=PLAIN[:40], alphabet=frozenset(PLAIN))
@example(text=b"\xff\0", alphabet=frozenset())
def test_numbers_in_an_alphabet(text: bytes, alphabet: frozenset[int]) -> None:
    letters = bytes(sorted(alphabet))
    for form in (text, np.frombuffer(text, np.uint8)):
        numbers, unseen = encode(form, letters)
        known = bytes(byte for byte in text if byte in alphabet)
        assert numbers.dtype == np.int64
        assert numbers.tolist() == [letters.index(byte) for byte in known]
        assert unseen == len(text) - len(known)
        assert decode(numbers, letters) == known


def test_numbers_keep_the_shape_of_known_text() -> None:
    text = np.frombuffer(b"abcabc", np.uint8).reshape(2, 3)
    assert encode(text, b"abc")[0].tolist() == [[0, 1, 2], [0, 1, 2]]


cuts = st.tuples(
    st.integers(1, 4),  # chunks of a sequence
    st.integers(1, 5),  # characters of a chunk
    st.integers(1, 7),  # streams
    st.integers(1, 6),  # sequences
    st.integers(0, 40),  # characters beyond the last one
    st.integers(0, 2**64 - 1),  # seed
)


@given(cuts)
def test_an_epoch_visits_every_sequence_once(cut: tuple[int, ...]) -> None:
    steps, chunk, streams, sequences, beyond, seed = cut
    sequence = steps * chunk
    text = np.arange(sequences * sequence + 1 + beyond % sequence)
    sizes = {"streams": streams, "chunk": chunk, "sequence": sequence}
    rounds = -(-3 * sequences // streams)
    read = [draw_chunks(text, seed, update, **sizes) for update in range(rounds * steps)]
    inputs, targets = np.stack([pair[0] for pair in read]), np.stack([pair[1] for pair in read])
    assert inputs.shape == targets.shape == (rounds * steps, streams, chunk)
    np.testing.assert_array_equal(targets, inputs + 1)
    # [rounds, steps, streams, chunk], so that what a stream reads in a round comes together.
    rows = inputs.reshape(rounds, steps, streams, chunk).swapaxes(1, 2).reshape(-1, sequence)
    np.testing.assert_array_equal(rows, rows[:, :1] + np.arange(sequence))
    for epoch in range(3):
        begins = rows[epoch * sequences : (epoch + 1) * sequences, 0]
        assert sorted(begins) == [sequence * number for number in range(sequences)]


@given(cuts, st.integers(0, 100), st.data())
def test_streams_are_shared_by_processes(cut: tuple[int, ...], update: int, data) -> None:
    steps, chunk, streams, sequences, beyond, seed = cut
    text = np.arange(sequences * steps * chunk + 1 + beyond)
    sizes = {"streams": streams, "chunk": chunk, "sequence": steps * chunk}
    whole = draw_chunks(text, seed, update, **sizes)
    first = data.draw(st.integers(0, streams - 1))
    count = data.draw(st.integers(1, streams - first))
    some = draw_chunks(text, seed, update, **sizes, first=first, count=count)
    rest = draw_chunks(text, seed, update, **sizes, first=first)
    for all_of_them, few, others in zip(whole, some, rest, strict=True):
        np.testing.assert_array_equal(few, all_of_them[first : first + count])
        np.testing.assert_array_equal(others, all_of_them[first:])


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    text = np.arange(10 * 300 + 1)
    sizes = {"streams": 300, "chunk": 10, "sequence": 10}
    pairs = [(seed, epoch) for seed in range(3) for epoch in range(3)]
    orders = [draw_chunks(text, *pair, **sizes)[0][:, 0] // 10 for pair in pairs]
    assert len({order.tobytes() for order in orders}) == 9
    correlation = np.corrcoef([np.arange(300), *orders])
    assert np.abs(correlation - np.eye(10)).max() < 0.25


def test_when_a_sequence_starts() -> None:
    assert [update for update in range(500) if starts_sequence(update, 50, 10_000)] == [0, 200, 400]


@pytest.mark.parametrize("content", [b"", PLAIN[::-1], PLAIN * 2])
def test_a_text_that_changes_during_training(content: bytes, tmp_path: Path) -> None:
    """Or vanishes, or shrinks: training goes on with what it began with."""
    path = tmp_path / "text"
    path.write_bytes(PLAIN)
    corpus = Corpus.from_file(path)
    expected = np.frombuffer(PLAIN, np.uint8)
    path.write_bytes(content)
    assert corpus.sha256() == SOURCE.sha256
    sizes = {"streams": 2, "chunk": 5, "sequence": 50}
    for update in range(200):
        for chunk, expected_chunk in zip(
            draw_chunks(corpus.train, 0, update, **sizes),
            draw_chunks(expected[: corpus.ends[0]], 0, update, **sizes),
            strict=True,
        ):
            np.testing.assert_array_equal(chunk, expected_chunk)


def test_a_text_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "text"
    path.write_bytes(PLAIN)
    read = np.fromfile

    def shrinking(*arguments: object) -> np.ndarray:
        os.truncate(path, 100)
        return read(*arguments)

    monkeypatch.setattr(np, "fromfile", shrinking)
    with pytest.raises(DataError, match=r"text: truncated: expected 7400 bytes, got 100$"):
        Corpus.from_file(path)


def test_chunks_are_bytes_of_the_text_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(PLAIN)
    corpus = Corpus.from_file(path)
    inputs, targets = draw_chunks(corpus.train, 0, 3, streams=2, chunk=5, sequence=50)
    assert inputs.dtype == np.uint8
    assert type(inputs) is np.ndarray
    assert all(row.tobytes() in PLAIN for row in np.concatenate([inputs, targets[:, -1:]], 1))


@pytest.mark.parametrize("size", [0, 1, 100])
def test_too_little_to_train_on(size: int) -> None:
    message = rf"text: expected at least 101 bytes to train on, got {size}; a smaller --sequence"
    with pytest.raises(DataError, match=message):
        draw_chunks(np.zeros(size, np.uint8), 0, 0, streams=2, chunk=10, sequence=100)
    draw_chunks(np.zeros(101, np.uint8), 0, 0, streams=2, chunk=10, sequence=100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk": 30}, r"chunk: expected a divisor of sequence \(100\), got 30"),
        ({"chunk": 0}, r"chunk: expected a divisor of sequence \(100\), got 0"),
        ({"chunk": 200}, r"chunk: expected a divisor of sequence \(100\), got 200"),
        ({"streams": 0}, r"count: expected some of 0 streams, got None from 0"),
        ({"first": -1}, r"count: expected some of 2 streams, got None from -1"),
        ({"first": 1, "count": 2}, r"count: expected some of 2 streams, got 2 from 1"),
        ({"count": 0}, r"count: expected some of 2 streams, got 0 from 0"),
        ({"count": -1}, r"count: expected some of 2 streams, got -1 from 0"),
    ],
)
def test_impossible_chunks(options: dict[str, int], message: str) -> None:
    sizes = {"streams": 2, "chunk": 10, "sequence": 100, **options}
    with pytest.raises(ValueError, match=message):
        draw_chunks(np.zeros(1000, np.uint8), 0, 0, **sizes)


@given(st.integers(2, 200), st.integers(1, 9), st.integers(1, 30))
@example(2, 9, 30)
@example(101, 4, 25)
@example(102, 4, 25)
def test_every_character_is_predicted_once(size: int, streams: int, chunk: int) -> None:
    steps = list(contiguous(np.arange(size), streams, chunk))
    inputs, targets, scored = (np.concatenate(arrays, 1) for arrays in zip(*steps, strict=True))
    assert {step.inputs.shape for step in steps} == {(streams, chunk)}
    np.testing.assert_array_equal(targets, inputs + 1)
    assert targets[scored].tolist() == list(range(1, size))
    for row, counts in zip(inputs, scored, strict=True):
        # From its beginning on, without a gap, and nothing after its end.
        assert (np.diff(row[counts]) == 1).all()
        assert (np.diff(counts.astype(int)) <= 0).all()
    lengths = scored.sum(1)
    assert lengths.max() == -(-(size - 1) // streams)
    assert len(steps) == -(-lengths.max() // chunk)


def test_one_stream_is_one_pass() -> None:
    text = np.frombuffer(PLAIN, np.uint8)
    steps = list(contiguous(text, 1, 64))
    assert b"".join(step.inputs[step.scored].tobytes() for step in steps) == PLAIN[:-1]


def test_impossible_measurements() -> None:
    with pytest.raises(DataError, match="text: expected at least 2 bytes to measure on, got 1"):
        contiguous(np.zeros(1, np.uint8), 1, 1)
    with pytest.raises(ValueError, match="streams: expected at least 1, got 0"):
        contiguous(np.zeros(9, np.uint8), 0, 1)
    with pytest.raises(ValueError, match="chunk: expected at least 1, got 0"):
        contiguous(np.zeros(9, np.uint8), 1, 0)


@pytest.fixture
def _passing_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that is gone at once: pytest keeps the folders of its last runs."""
    with TemporaryDirectory() as cache:
        monkeypatch.setenv("GRIDLSTM_CACHE", cache)
        yield


@pytest.mark.data
@pytest.mark.skipif(
    not (DATA / "enwik8").exists(), reason="needs enwik8 in GRIDLSTM_DATA or ../shared/data"
)
@pytest.mark.usefixtures("_passing_cache")
def test_enwik8() -> None:
    corpus = Corpus.enwik8(DATA)
    assert len(corpus.alphabet) == 205
    parts = [hashlib.sha256(part).hexdigest()[:8] for part in (corpus.train, corpus.valid, corpus.test)]
    assert parts == ["f8978bd9", "16b8b889", "86f62c0a"]
    inputs, _ = draw_chunks(corpus.train, 0, 0, streams=100, chunk=50, sequence=10_000)
    numbers, unseen = encode(inputs, corpus.alphabet)
    assert numbers.shape == (100, 50)
    assert unseen == 0
