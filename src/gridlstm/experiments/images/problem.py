"""Images as a problem for the trainer (appendix)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.experiments.images import IMAGES
from gridlstm.experiments.images.data import CLASSES, Fill, ImageSet, Labelled, draw_images
from gridlstm.experiments.images.folder import read_folder
from gridlstm.experiments.images.mistakes import count_confusions, find_mistakes
from gridlstm.experiments.images.options import ImageOptions
from gridlstm.experiments.images.pictures import read_picture, read_square, to_digit
from gridlstm.experiments.record import EvalOptions
from gridlstm.experiments.trained import options_of, stored_weights
from gridlstm.models.convolutional import ConvolutionalNetwork
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.models.image_multidimensional import ImageMultidimensionalLSTM
from gridlstm.models.image_network import ImageNetwork, decode_names
from gridlstm.models.renet import ReNet
from gridlstm.training.problem import Measures, Problem
from gridlstm.training.rundir import RunDir, RunError

__all__ = [
    "ImageProblem",
    "as_input",
    "class_of",
    "classify",
    "load_classifier",
    "make_network",
    "read_image",
]

Bytes = NDArray[np.uint8]

IMAGES_AT_ONCE = 250
"""The number of images per batch of a measurement."""
LISTED = 200
"""The largest number of misclassified images that a test lists."""
COLUMNS = 60
"""The largest number of columns of an image that is shown as text."""
INK = " .:-=+*#%@"
"""Characters from black to white, to show an image as text."""


class ImageProblem(Problem):
    """Recognition of digits, or of the classes of own pictures.

    Args:
        options: the options of the experiment.
        data: the directory of data sets.

    Raises:
        ValueError: if the images are missing or damaged.
    """

    adam_parameters = ("relu.*", "scores.*", "projection.*")

    def __init__(self, options: ImageOptions, data: Path | None) -> None:
        self.options = options
        self.matrix_rows = options.hidden
        self.dataset = _read_images(options, data)

    def data(self) -> dict[str, str]:
        """The checksum of the images."""
        return {"images": self.dataset.sha256()}

    def show(self, count: int) -> Iterator[str]:
        """Shifted training images as text, each below its label."""
        images, labels = self._draw(0, count)
        for image, label in zip(images, labels, strict=True):
            yield self.dataset.names[label]
            yield from _as_text(image)

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """The first test image, at half its height because letters are high, and its prediction."""
        images, labels = self.dataset.test.part(None, 1)
        (probabilities,) = classify(network, images, self.options)
        predicted, names = int(probabilities.argmax()), self.dataset.names
        step = -(-images.shape[-1] // COLUMNS)
        yield from _as_text(images[0, ..., :: 2 * step, ::step])
        share = f"{probabilities[predicted]:.1%}"
        yield f"recognised as {names[predicted]} ({share}); it is {names[labels[0]]}"

    def network(self) -> nn.Module:
        """A new network of the kind named in the options."""
        return make_network(self.options, self.dataset.class_names)

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """Cross-entropy of shifted training images."""
        images, labels = self._draw(first, count)
        device = next(network.parameters()).device
        scores = network(as_input(images, self.options).to(device))
        return F.cross_entropy(scores, torch.from_numpy(labels).to(device))

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """The share of errors on the validation images, the same at every evaluation."""
        images, labels = self.dataset.valid
        return {"error": float((classify(network, images, self.options).argmax(1) != labels).mean())}

    def test(self, network: nn.Module, samples: int | None, options: EvalOptions) -> dict[str, Any]:
        """The errors on the test images. Default: all of them.

        ``confusion`` has one row per class and one column per predicted class; ``mistakes`` has the
        misclassified images by number, the most confident mistakes first. For own pictures, ``classes``
        has the names of the classes, and a mistake has the name of its file.
        """
        images, labels = self.dataset.test.part(None, samples)
        probabilities = classify(network, images, self.options)
        predicted = probabilities.argmax(1)
        wrong = int((predicted != labels).sum())
        names, files = self.dataset.class_names, self.dataset.test_files
        mistakes = [
            {
                "image": int(place),
                **({} if files is None else {"file": files[place]}),
                "digit" if names is None else "label": class_of(int(labels[place]), names),
                "class": class_of(int(predicted[place]), names),
                "probability": round(float(probabilities[place].max()), 6),
            }
            for place in find_mistakes(labels, probabilities)[:LISTED]
        ]
        return {
            "samples": len(labels),
            "wrong": wrong,
            "error": wrong / len(labels),
            **({} if names is None else {"classes": list(names)}),
            "confusion": count_confusions(labels, predicted, len(self.dataset.names)).tolist(),
            "mistakes": mistakes,
        }

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Whether there are no more errors. Never with ``retrain``: no validation images are left."""
        return not self.options.retrain and (not best or measures["error"] <= best["error"])

    def _draw(self, first: int, count: int) -> Labelled:
        options = self.options
        part = self.dataset.retrain if options.retrain else self.dataset.train
        # MNIST is black outside; own pictures may have any background.
        fill: Fill = "zeros" if options.folder is None else "edge"
        return draw_images(part, options.training.seed, first, count, options.shift, fill)


def _read_images(options: ImageOptions, data: Path | None) -> ImageSet:
    if options.folder is not None:
        return read_folder(Path(options.folder), options.pixels, colour=options.colour)
    return ImageSet.mnist(data) if options.dataset == "mnist" else ImageSet.sample()


def class_of(label: int, names: Sequence[str] | None) -> int | str:
    """A class as it is shown to a user: a digit, or a name."""
    return label if names is None else names[label]


def _as_text(image: Bytes) -> Iterator[str]:
    """The rows of an image as text."""
    grey = image.mean(0) if image.ndim == 3 else image
    for row in grey.astype(np.int64) * len(INK) // 256:
        yield "".join(INK[level] for level in row)


def make_network(options: ImageOptions, names: Sequence[str] | None = None) -> ImageNetwork:
    """Makes a new network of the kind named in the options.

    Args:
        options: the options of the experiment.
        names: the names of the classes. Default: the ten digits.
    """
    kind = options.network
    sizes = (options.side, options.hidden, options.layers)
    shared: dict[str, Any] = {
        "channels": options.channels,
        "num_classes": CLASSES if names is None else len(names),
        "class_names": names,
        "patch_size": options.patch,
        "relu_size": options.relu,
    }
    if kind == "renet":
        return ReNet(*sizes, **shared)
    if kind == "convolutional":
        return ConvolutionalNetwork(*sizes, **shared)
    if options.forget_bias is not None:
        shared["forget_bias"] = options.forget_bias
    if kind == "multidimensional":
        return ImageMultidimensionalLSTM(*sizes, **shared)
    depth = "relu" if kind.endswith("relu-grid") else "lstm"
    return ImageGridLSTM(*sizes, depth=depth, tied=kind.startswith("tied"), **shared)


def load_classifier(run: RunDir) -> ImageNetwork:
    """Loads the network of a run; the images that it was trained on are not needed.

    Raises:
        RunError: if it is a run of another experiment, or has no weights yet.
        WeightsError: if the weights cannot be read.
    """
    options, weights, names = options_of(run, IMAGES), stored_weights(run), None
    if options.folder is not None:
        try:
            names = decode_names(weights.bytes("names"))
        except ValueError as error:
            raise RunError(f"{weights.source}: names: {error}") from error
    return weights.load_into(lambda: make_network(options, names))


def read_image(path: Path, options: ImageOptions) -> Bytes:
    """Reads a picture like the images that a network was trained on.

    Returns:
        ``[28, 28]`` for digits, otherwise ``[pixels, pixels]`` or, in colour, ``[3, pixels, pixels]``.

    Raises:
        DataError: if it cannot be read, or is blank where a digit is expected.
    """
    if options.folder is None:
        return to_digit(read_picture(path), str(path))
    return read_square(path, options.pixels, colour=options.colour)


def as_input(images: Bytes, options: ImageOptions) -> Tensor:
    """Images as a network reads them: cropped, divided by 255, ``[images, channels, side, side]``."""
    begin = (images.shape[-1] - options.side) // 2
    middle = slice(begin, begin + options.side)
    cropped = images[..., middle, middle].astype(np.float32)
    shape = (len(images), options.channels, options.side, options.side)
    return torch.from_numpy(cropped.reshape(shape)) / 255


@torch.no_grad()
def classify(network: nn.Module, images: Bytes, options: ImageOptions) -> NDArray[np.float32]:
    """The probability of each class, ``[images, classes]``."""
    device = next(network.parameters()).device
    batches = [
        network(as_input(images[first : first + IMAGES_AT_ONCE], options).to(device)).softmax(1).cpu()
        for first in range(0, len(images), IMAGES_AT_ONCE)
    ]
    probabilities: NDArray[np.float32] = torch.cat(batches).numpy()
    return probabilities
