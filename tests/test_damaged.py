"""Files of data that are damaged, hostile or no files: one line says so, in little time and memory."""

import gzip
import hashlib
import io
import lzma
import os
import random
import socket
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gridlstm.data.locate import DataError, Packing, Source, find
from gridlstm.experiments.characters.data import Corpus, read_file
from gridlstm.experiments.images.data import parse_idx
from gridlstm.experiments.images.pictures import read_picture, to_digit
from gridlstm.experiments.translation.data import read_pairs

PLAIN = "Zwölf Boxkämpfer\ttwelve boxers\nja\tyes\n".encode() * 40
SOURCE = Source("t/t", len(PLAIN), hashlib.sha256(PLAIN).hexdigest(), "https://nowhere.test/t")
READERS: dict[str, Callable[[Path], object]] = {
    "text": Corpus.from_file,
    "score": read_file,
    "table": lambda path: read_pairs([path]),
    "sentences": lambda path: read_pairs([path, path]),
    "picture": read_picture,
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # Nobody is there.


def zipped(content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("t", content)
    return packed.getvalue()


def picture(kind: str) -> bytes:
    saved = io.BytesIO()
    digit = np.zeros((30, 20), np.uint8)
    digit[5:25, 8:12] = 255
    Image.fromarray(digit).save(saved, kind)
    return saved.getvalue()


def damage(content: bytes, draw: random.Random) -> bytes:
    """The same with some bytes changed, left out, repeated or put in; mostly near the beginning."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 8])):
        place = draw.randrange(min(len(changed), draw.choice([16, 64, 10**6])) + 1)
        length = draw.choice([1, 1, 4, 40])
        new = draw.choice([draw.randbytes(length), b"\0" * length, b"\xff" * length])
        how = draw.choice(["change", "change", "leave out", "put in", "end"])
        if how == "end":
            del changed[place:]
        else:
            changed[place : place + (0 if how == "put in" else length)] = (
                b"" if how == "leave out" else new
            )
    return bytes(changed)


def refused(reads: Iterable[Callable[[], object]]) -> int:
    """How many are refused, in one line each; whatever else is raised fails the test."""
    said = [line for line in map(refusal, reads) if line is not None]
    assert not [line for line in said if "\n" in line]
    return len(said)


def refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except DataError as error:
        return str(error)
    return None


def damaged(path: Path, whole: bytes, count: int) -> Iterator[Path]:
    """A path at which there is another damaged file every time."""
    draw = random.Random(0)
    for _ in range(count):
        path.write_bytes(damage(whole, draw))
        yield path


@pytest.mark.parametrize("packing", [".xz", ".gz", ".zip"])
def test_damaged_packed_files(packing: Packing, tmp_path: Path) -> None:
    def read() -> None:
        found = find(SOURCE, tmp_path)
        assert found.read_bytes() == PLAIN
        found.unlink()

    whole = {".xz": lzma.compress, ".gz": gzip.compress, ".zip": zipped}[packing](PLAIN)
    assert refused(read for _ in damaged(tmp_path / f"t{packing}", whole, 150)) > 100


def test_damaged_tables(tmp_path: Path) -> None:
    files = damaged(tmp_path / "t.tsv", PLAIN, 150)
    assert 20 < refused(partial(read_pairs, [path]) for path in files) < 150


def test_damaged_images_of_mnist() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
    header = b"".join(size.to_bytes(4, "big") for size in (0x0803, 5, 4, 3))
    draw = random.Random(0)
    contents = [damage(header + images.tobytes(), draw) for _ in range(300)]
    huge = ((0, 2**32 - 1, 2**32 - 1), (2**32 - 1, 0, 2**32 - 1), (2**31, 2**31, 2**31))
    contents += [b"".join(size.to_bytes(4, "big") for size in (0x0803, *sizes)) for sizes in huge]
    arrays = [np.frombuffer(content, np.uint8) for content in contents]
    assert 150 < refused(partial(parse_idx, "file", array, 3) for array in arrays) < 300


@pytest.mark.parametrize(
    "kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "TGA", "PCX", "ICO"]
)
def test_damaged_pictures(kind: str, tmp_path: Path) -> None:
    def read(path: Path) -> None:
        to_digit(read_picture(path), "picture")

    files = damaged(tmp_path / "picture", picture(kind), 60)
    assert refused(partial(read, path) for path in files) > 5


def make(path: Path, kind: str) -> Path:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "broken link":
        path.symlink_to("nowhere")
    return path


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("pipe", "expected a file, got a pipe or device"),
        ("socket", "expected a file, got a pipe or device"),
        ("device", "expected a file, got a pipe or device"),
        ("folder", "expected a file, got a folder"),
        ("broken link", "file not found"),
        ("missing", "file not found"),
    ],
)
def test_what_is_no_file(
    reader: str, kind: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # Names of sockets are short.
    path = make(Path("it"), kind)
    with pytest.raises(DataError, match=f"^it: {message}$"):
        READERS[reader](path)


@pytest.mark.parametrize("packing", ["", ".xz", ".gz", ".zip"])
def test_a_pipe_among_data_sets(packing: Packing, tmp_path: Path) -> None:
    make(tmp_path / f"t{packing}", "pipe")
    with pytest.raises(DataError, match="t/t: not found"):
        find(SOURCE, tmp_path)


def wide(packed: bytes) -> bytes:
    """An xz file that says it needs a dictionary of 4 GB."""
    changed = bytearray(packed)
    end = 12 + (changed[12] + 1) * 4 - 4  # Of the header of the first block, without its checksum.
    place = changed.index(b"\x21\x01", 12, end)  # LZMA2, one byte of properties.
    changed[place + 2] = 40
    changed[end : end + 4] = zlib.crc32(changed[12:end]).to_bytes(4, "little")
    return bytes(changed)


def test_a_dictionary_of_gigabytes(tmp_path: Path) -> None:
    packed = wide(lzma.compress(PLAIN))
    assert lzma.decompress(packed) == PLAIN  # It is whole, and only asks for too much.
    (tmp_path / "t.xz").write_bytes(packed)
    with pytest.raises(DataError, match=r"t\.xz: truncated or damaged \(Memory usage limit exceeded\)"):
        find(SOURCE, tmp_path)
    (tmp_path / "t.xz").write_bytes(lzma.compress(PLAIN, preset=9))
    assert find(SOURCE, tmp_path).read_bytes() == PLAIN


@pytest.mark.parametrize("packing", [".xz", ".gz", ".zip"])
def test_what_would_unpack_to_far_too_much(packing: Packing, tmp_path: Path) -> None:
    zeros = bytes(2**27)
    packed = {
        ".xz": lambda content: lzma.compress(content, preset=0),
        ".gz": lambda content: gzip.compress(content, 1),
        ".zip": zipped,
    }[packing](zeros)
    del zeros
    (tmp_path / f"t{packing}").write_bytes(packed)
    tracemalloc.start()
    with pytest.raises(DataError, match=f"changed: expected {len(PLAIN)} bytes, got more"):
        find(SOURCE, tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_unusual_zip(method: int, tmp_path: Path) -> None:
    (tmp_path / "t.zip").write_bytes(zipped(PLAIN, method))
    with pytest.raises(DataError, match=r"t\.zip: .*\(t is neither stored nor deflated\)"):
        find(SOURCE, tmp_path)
