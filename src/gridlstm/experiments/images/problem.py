"""Images of digits as a problem for the trainer (appendix)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.experiments.images import IMAGES
from gridlstm.experiments.images.data import CLASSES, Digits, Labelled, draw_images
from gridlstm.experiments.images.mistakes import count_confusions, find_mistakes
from gridlstm.experiments.images.options import ImageOptions
from gridlstm.experiments.record import EvalOptions
from gridlstm.experiments.trained import options_of, stored_weights
from gridlstm.models.convolutional import ConvolutionalNetwork
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.models.image_multidimensional import ImageMultidimensionalLSTM
from gridlstm.models.image_network import ImageNetwork
from gridlstm.models.renet import ReNet
from gridlstm.training.problem import Measures, Problem
from gridlstm.training.rundir import RunDir

__all__ = ["ImageProblem", "as_input", "classify", "load_classifier", "make_network"]

Bytes = NDArray[np.uint8]

IMAGES_AT_ONCE = 250
"""The number of images per batch of a measurement."""
LISTED = 200
"""The largest number of misclassified images that a test lists."""
INK = " .:-=+*#%@"
"""Characters from black to white, to show an image as text."""


class ImageProblem(Problem):
    """Recognition of digits.

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
        self.digits = Digits.mnist(data) if options.dataset == "mnist" else Digits.sample()

    def data(self) -> dict[str, str]:
        """The checksum of the images."""
        return {"images": self.digits.sha256()}

    def show(self, count: int) -> Iterator[str]:
        """Shifted training images as text, each below its label."""
        images, labels = self._draw(0, count)
        for image, label in zip(images, labels, strict=True):
            yield str(label)
            yield from _as_text(image)

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """The first test image, at half its height because letters are high, and its prediction."""
        images, labels = self.digits.test.part(None, 1)
        (probabilities,) = classify(network, images, self.options)
        predicted = int(probabilities.argmax())
        yield from _as_text(images[0, ::2])
        yield f"recognised as {predicted} ({probabilities[predicted]:.1%}); it is {labels[0]}"

    def network(self) -> nn.Module:
        """A new network of the kind named in the options."""
        return make_network(self.options)

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """Cross-entropy of shifted training images."""
        images, labels = self._draw(first, count)
        device = next(network.parameters()).device
        scores = network(as_input(images, self.options).to(device))
        return F.cross_entropy(scores, torch.from_numpy(labels).to(device))

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """The share of errors on the validation images, the same at every evaluation."""
        images, labels = self.digits.valid
        return {"error": float((classify(network, images, self.options).argmax(1) != labels).mean())}

    def test(self, network: nn.Module, samples: int | None, options: EvalOptions) -> dict[str, Any]:
        """The errors on the test images. Default: all of them.

        ``confusion`` has one row per digit and one column per predicted class; ``mistakes`` has the
        misclassified images by number, the most confident mistakes first.
        """
        images, labels = self.digits.test.part(None, samples)
        probabilities = classify(network, images, self.options)
        predicted = probabilities.argmax(1)
        wrong = int((predicted != labels).sum())
        mistakes = [
            {
                "image": int(place),
                "digit": int(labels[place]),
                "class": int(predicted[place]),
                "probability": round(float(probabilities[place].max()), 6),
            }
            for place in find_mistakes(labels, probabilities)[:LISTED]
        ]
        return {
            "samples": len(labels),
            "wrong": wrong,
            "error": wrong / len(labels),
            "confusion": count_confusions(labels, predicted, CLASSES).tolist(),
            "mistakes": mistakes,
        }

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Whether there are no more errors. Never with ``retrain``: no validation images are left."""
        return not self.options.retrain and (not best or measures["error"] <= best["error"])

    def _draw(self, first: int, count: int) -> Labelled:
        options = self.options
        part = self.digits.retrain if options.retrain else self.digits.train
        return draw_images(part, options.training.seed, first, count, options.shift)


def _as_text(image: Bytes) -> Iterator[str]:
    """The rows of an image as text."""
    for row in image.astype(np.int64) * len(INK) // 256:
        yield "".join(INK[level] for level in row)


def make_network(options: ImageOptions) -> ImageNetwork:
    """Makes a new network of the kind named in the options."""
    kind = options.network
    sizes = (options.side, options.hidden, options.layers)
    shared: dict[str, Any] = {"patch_size": options.patch, "relu_size": options.relu}
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
    options = options_of(run, IMAGES)
    return stored_weights(run).load_into(lambda: make_network(options))


def as_input(images: Bytes, options: ImageOptions) -> Tensor:
    """Images as a network reads them: cropped, divided by 255, ``[images, 1, side, side]``."""
    begin = (images.shape[1] - options.side) // 2
    middle = slice(begin, begin + options.side)
    cropped = images[:, None, middle, middle].astype(np.float32)
    return torch.from_numpy(cropped) / 255


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
