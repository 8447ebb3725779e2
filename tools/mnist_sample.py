"""Makes the sample of MNIST that is part of the package: ``python tools/mnist_sample.py``.

It has the first images of each class, in turn, so that any part of them is balanced: 1,800 of the
training images, of which the last 300 are for validation, and 500 of the test images. MNIST is located
or downloaded as by ``gridlstm train images``.
"""

import hashlib
import lzma
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridlstm.experiments.images.data import CLASSES, ImageSet, Labelled

PLACE = Path(__file__).parent.parent / "src" / "gridlstm" / "data" / "embedded" / "mnist"


def choose(part: Labelled, count: int) -> Labelled:
    """The first ``count / 10`` images of each class, in turn."""
    places = [np.flatnonzero(part.labels == digit)[: count // CLASSES] for digit in range(CLASSES)]
    chosen = np.stack(places, 1).flatten()
    return Labelled(part.images[chosen], part.labels[chosen])


def to_idx(array: NDArray[np.uint8]) -> bytes:
    """The inverse of :func:`gridlstm.experiments.images.data.parse_idx`."""
    header = np.array([0x0800 + array.ndim, *array.shape], ">u4")
    return header.tobytes() + array.tobytes()


def sample(digits: ImageSet) -> dict[str, bytes]:
    """The content of the four files by name."""
    contents = {}
    for name, part, count in (("train", digits.retrain, 1800), ("t10k", digits.test, 500)):
        images, labels = choose(part, count)
        contents[f"{name}-images-idx3-ubyte"] = to_idx(images)
        contents[f"{name}-labels-idx1-ubyte"] = to_idx(labels.astype(np.uint8))
    return contents


if __name__ == "__main__":
    PLACE.mkdir(parents=True, exist_ok=True)
    for name, content in sample(ImageSet.mnist()).items():
        packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
        (PLACE / f"{name}.xz").write_bytes(packed)
        sha256 = hashlib.sha256(content).hexdigest()
        sys.stdout.write(f"{name}: {len(packed)} bytes packed, sha256 {sha256}\n")
