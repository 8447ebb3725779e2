"""Images by class: MNIST, a sample of it that is part of the package, or any other set.

The order of an epoch and the shift of each image are a pure function of the seed and the number of the
sample.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from gridlstm.data.draw import draw, shuffled_index
from gridlstm.data.locate import DataError, Source, as_data_error, check_size, embedded, find

__all__ = ["MNIST", "ImageSet", "Labelled", "draw_images", "parse_idx", "shift"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

Fill = Literal["zeros", "edge"]

CLASSES = 10
SHIFTS = 2**32
"""The stream of random numbers for shifts, beyond those of all epochs."""


def _mnist(file: str, size: int, sha256: str) -> Source:
    address = f"https://ossci-datasets.s3.amazonaws.com/mnist/{file}.gz"
    return Source(f"mnist/{file}", size, sha256, address, ".gz")


MNIST = {
    source.file: source
    for source in (
        _mnist(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _mnist(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _mnist(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _mnist(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    )
}
"""The four files of MNIST by name (LeCun, Cortes and Burges, 1998)."""
_SAMPLE = {  # Checksums of the files made by tools/mnist_sample.py.
    "train-images-idx3-ubyte": "9f355d22d26c27d78c4080a6b7a3d6dcc3ed056a9d7cb466cc7ad8d18f93c5cd",
    "train-labels-idx1-ubyte": "a7ac8b3dc98661c75e513289154bfab7ef5396ec4c903731ad4d3553fd1adf57",
    "t10k-images-idx3-ubyte": "84277aa509c05931ecc01c783e767096c40aa7da7680a310e27e38ca2de5385d",
    "t10k-labels-idx1-ubyte": "2bed0e3790b2dac87cb49ca6718054c88d630c4060f2671b4e1557c9e0ca6621",
}


class Labelled(NamedTuple):
    """Images and their labels.

    Attributes:
        images: ``[images, height, width]``, from 0 to 255; ``[images, 3, height, width]`` in colour.
        labels: the class of each, ``[images]``.
    """

    images: Bytes
    labels: Ints

    def part(self, begin: int | None, end: int | None) -> "Labelled":
        """A range of them."""
        return Labelled(self.images[begin:end], self.labels[begin:end])


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in three parts, for training, validation and test.

    >>> digits = ImageSet.sample()
    >>> [len(part.images) for part in (digits.train, digits.valid, digits.test)]
    [1500, 300, 500]
    """

    name: str
    """The name of the data set."""
    retrain: Labelled
    """The training and validation images together."""
    validated: int
    """How many of them, at the end, are for validation."""
    test: Labelled
    """The test images."""
    class_names: tuple[str, ...] | None = None
    """The names of the classes; ``None`` for the digits from 0 to 9."""
    test_files: tuple[str, ...] | None = None
    """The file of each test image, if they have files of their own."""

    @classmethod
    def mnist(cls, folder: Path | None = None) -> "ImageSet":
        """All of MNIST: 50,000, 10,000 and 10,000 images.

        Args:
            folder: the directory of data sets; see :func:`gridlstm.data.locate.find`.

        Raises:
            DataError: if it is neither found nor downloaded.
        """

        def read(name: str) -> Bytes:
            path = find(MNIST[name], folder)
            with as_data_error(f"{path}: cannot be read"):
                return np.fromfile(path, np.uint8)

        return cls("mnist", _labelled("train", read), 10_000, _labelled("t10k", read))

    @classmethod
    def sample(cls) -> "ImageSet":
        """The first images of each class, part of the package: 1,500, 300 and 500."""

        def read(name: str) -> Bytes:
            return np.frombuffer(embedded(f"mnist/{name}", _SAMPLE[name]), np.uint8)

        return cls("sample", _labelled("train", read), 300, _labelled("t10k", read))

    @property
    def train(self) -> Labelled:
        """The training images."""
        return self.retrain.part(None, -self.validated)

    @property
    def valid(self) -> Labelled:
        """The validation images."""
        return self.retrain.part(-self.validated, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.class_names or tuple(map(str, range(CLASSES)))

    def sha256(self) -> str:
        """The checksum of all images, labels and names of classes."""
        digest = hashlib.sha256("".join(f"{name}\0" for name in self.class_names or ()).encode())
        for array in (*self.retrain, *self.test):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def parse_idx(name: str, content: Bytes, axes: int) -> Bytes:
    """Parses a file in the format of MNIST: big-endian sizes, then unsigned bytes.

    Args:
        name: the name of the file.
        content: its bytes, starting with the magic number 0x0800 + ``axes``.
        axes: the number of axes.

    Raises:
        DataError: if the magic number is wrong, or the length is not that of the sizes.

    >>> parse_idx("labels", np.array([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4], np.uint8), 1)
    array([5, 0, 4], dtype=uint8)
    """
    header = 4 * (1 + axes)
    if len(content) < header:
        raise DataError(f"{name}: truncated: expected a header of {header} bytes, got {len(content)}")
    magic, *sizes = content[:header].view(">u4").tolist()
    if magic != 0x0800 + axes:
        raise DataError(
            f"{name}: expected an IDX file of {axes} axes with magic number {0x0800 + axes}, "
            f"got {magic}"
        )
    check_size(name, header + prod(sizes), len(content))
    with as_data_error(f"{name}: damaged"):  # If one size is 0, the others may be impossible.
        return content[header:].reshape(sizes)


def draw_images(
    part: Labelled, seed: int, first: int, count: int, limit: int, fill: Fill = "zeros"
) -> Labelled:
    """Training samples ``first`` to ``first + count - 1``, shifted.

    Images are visited epoch after epoch, in a different order in each epoch. Each time, an image is
    shifted by ``-limit`` to ``limit`` pixels along each axis, uniformly.
    """
    numbers = np.arange(first, first + count)
    places = shuffled_index(seed, numbers, len(part.images))
    by = draw(seed, numbers, 2, -limit, limit + 1, stream=SHIFTS)
    return Labelled(shift(part.images[places], by, limit, fill), part.labels[places])


def shift(images: Bytes, by: Ints, limit: int, fill: Fill = "zeros") -> Bytes:
    """Shifts each image down and right.

    Args:
        images: ``[images, height, width]``, or ``[images, channels, height, width]``.
        by: the pixels down and right for each image, ``[images, 2]``; negative for up and left.
        limit: the largest absolute value of ``by``.
        fill: what enters: zeros, or the pixels of the edge again.

    >>> shift(np.array([[[1, 2], [3, 4]]], np.uint8), np.array([[0, 1]]), 1)
    array([[[0, 1],
            [0, 3]]], dtype=uint8)
    """
    around = [(0, 0)] * (images.ndim - 2) + [(limit, limit)] * 2
    padded = np.pad(images, around, mode="edge" if fill == "edge" else "constant")
    windows = sliding_window_view(padded, images.shape[-2:], (-2, -1))
    down, right = limit - by.T
    return np.ascontiguousarray(windows[np.arange(len(images)), ..., down, right, :, :])


def _labelled(part: str, read: Callable[[str], Bytes]) -> Labelled:
    pixels, classes = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
    images = parse_idx(pixels, read(pixels), 3)
    labels = parse_idx(classes, read(classes), 1).astype(np.int64)
    if len(images) != len(labels) or labels.max(initial=0) >= CLASSES:
        raise DataError(
            f"{classes}: expected {len(images)} classes below {CLASSES}, one for each image, "
            f"got {len(labels)} up to {labels.max(initial=0)}"
        )
    return Labelled(images, labels)
