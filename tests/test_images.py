"""Images of digits: files read whole or not at all, samples that follow from their numbers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gridlstm.data.locate import DataError
from gridlstm.experiments.images.data import MNIST, ImageSet, Labelled, draw_images, parse_idx, shift

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRIDLSTM_DATA") or ROOT.parent / "shared" / "data")
needs_mnist = pytest.mark.skipif(
    not (DATA / "mnist").exists(), reason="needs MNIST in GRIDLSTM_DATA or ../shared/data"
)


def idx(array: np.ndarray, magic: int | None = None) -> np.ndarray:
    """A file of the format, written from its description."""
    content = (0x0800 + array.ndim if magic is None else magic).to_bytes(4, "big")
    for size in array.shape:
        content += size.to_bytes(4, "big")
    return np.frombuffer(content + array.tobytes(), np.uint8)


@given(arrays.arrays(np.uint8, arrays.array_shapes(min_dims=3, max_dims=3, min_side=0, max_side=9)))
def test_idx(array: np.ndarray) -> None:
    np.testing.assert_array_equal(parse_idx("file", idx(array), 3), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(np.zeros((3, 4, 4), np.uint8))[:-1], "^file: truncated: expected 64 bytes, got 63$"),
        (idx(np.zeros((3, 4, 4), np.uint8)).repeat(2)[:128], "expected an IDX file of 3 axes"),
        (
            np.append(idx(np.zeros((3, 4, 4), np.uint8)), np.uint8(0)),
            "^file: changed: expected 64 bytes, got 65$",
        ),
        (np.zeros(9, np.uint8), "^file: truncated: expected a header of 16 bytes, got 9$"),
        (np.zeros(0, np.uint8), "got 0$"),
        (idx(np.zeros(64, np.uint8)), "with magic number 2051, got 2049$"),
        (idx(np.zeros((3, 4, 4), np.uint8), 0x0D03), "with magic number 2051, got 3331$"),
    ],
)
def test_a_file_that_is_not_whole(content: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_idx("file", content, 3)


def test_labels_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for labels in (np.zeros(4, np.uint8), np.array([0, 1, 10], np.uint8)):
        files = {"images": idx(np.zeros((3, 2, 2), np.uint8)), "labels": idx(labels)}
        monkeypatch.setattr(
            "gridlstm.experiments.images.data.embedded",
            lambda name, sha, files=files: files[name.split("-")[1]].tobytes(),
        )
        with pytest.raises(DataError, match="train-labels-idx1-ubyte: expected 3 classes below 10"):
            ImageSet.sample()


def moved(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """Pixel by pixel."""
    found = np.zeros_like(image)
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            if 0 <= y - down < height and 0 <= x - right < width:
                found[y, x] = image[y - down, x - right]
    return found


@given(
    arrays.arrays(np.uint8, (3, 5, 7)),
    arrays.arrays(np.int64, (3, 2), elements=st.integers(-4, 4)),
    st.integers(4, 6),
)
def test_shift(images: np.ndarray, by: np.ndarray, most: int) -> None:
    expected = np.stack([moved(image, *own) for image, own in zip(images, by, strict=True)])
    np.testing.assert_array_equal(shift(images, by, most), expected)


def dots(count: int) -> Labelled:
    """Images of 28 × 28 with a white pixel in the middle, so that a shift can be read off."""
    images = np.zeros((count, 28, 28), np.uint8)
    images[:, 14, 14] = 255
    return Labelled(images, np.arange(count))


def test_samples_follow_from_their_numbers() -> None:
    part = dots(50)
    whole = draw_images(part, 3, 0, 200, 4)
    for first, count in ((0, 1), (37, 40), (190, 10)):
        again = draw_images(part, 3, first, count, 4)
        np.testing.assert_array_equal(again.images, whole.images[first : first + count])
        np.testing.assert_array_equal(again.labels, whole.labels[first : first + count])
    # Every epoch has each image once, in an order of its own.
    epochs = whole.labels.reshape(4, 50)
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert not np.array_equal(draw_images(part, 4, 0, 50, 4).labels, epochs[0])


def test_shifts_are_uniform_and_independent() -> None:
    count = 20_000
    images, labels = draw_images(dots(100), 0, 0, count, 4)
    _, y, x = np.nonzero(images)
    assert len(y) == count
    down, right = y - 14, x - 14
    for found in (down, right):
        shares = np.bincount(found + 4, minlength=9) / count
        assert len(shares) == 9
        np.testing.assert_allclose(shares, 1 / 9, atol=0.01)
    for a, b in ((down, right), (down, labels), (right, labels), (down[:-1], down[1:])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    still = draw_images(dots(100), 0, 0, 200, 0).images
    assert (still[:, 14, 14] == 255).all()


def test_the_sample_is_balanced() -> None:
    digits = ImageSet.sample()
    for part, each in ((digits.train, 150), (digits.valid, 30), (digits.test, 50)):
        assert np.bincount(part.labels).tolist() == [each] * 10
        assert part.images.shape == (10 * each, 28, 28)
    assert len(digits.retrain.images) == 1800
    # No image is in two parts.
    every = np.concatenate([digits.retrain.images, digits.test.images]).reshape(2300, -1)
    assert len(np.unique(every, axis=0)) == 2300
    assert digits.sha256() != ImageSet("x", digits.retrain, 300, digits.retrain).sha256()


def test_the_sample_is_small_and_has_a_notice() -> None:
    folder = ROOT / "src" / "gridlstm" / "data" / "embedded"
    assert sum(path.stat().st_size for path in (folder / "mnist").iterdir()) < 500_000
    assert "Attribution-Share Alike 3.0" in (folder / "NOTICE").read_text()


def test_there_is_no_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz: truncated or damaged"):
        ImageSet.mnist(tmp_path)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # Nobody is there.
    (tmp_path / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"put train-images-idx3-ubyte\.gz from https://ossci-datasets"):
        ImageSet.mnist(tmp_path)


@pytest.mark.data
@needs_mnist
def test_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path))
    digits = ImageSet.mnist(DATA)
    parts = (digits.train, digits.valid, digits.test)
    assert [len(part.images) for part in parts] == [50_000, 10_000, 10_000]
    assert digits.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert round(float(digits.retrain.images.mean()) / 255, 4) == 0.1307
    assert (digits.valid.images[0] == digits.retrain.images[50_000]).all()
    assert set(MNIST) == {path.name for path in (tmp_path / "data" / "mnist").iterdir()}
    # The sample is what the tool makes of it.
    code = (
        "import hashlib, mnist_sample as m; d = m.ImageSet.mnist(); "
        "print(*(hashlib.sha256(c).hexdigest() for c in m.sample(d).values()))"
    )
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); {code}"
    environment = {**os.environ, "GRIDLSTM_CACHE": str(tmp_path), "GRIDLSTM_DATA": str(DATA)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    from gridlstm.experiments.images import data as images

    assert done.stdout.split() == list(images._SAMPLE.values())
