"""The commands ``gridlstm plot confusion``, ``mistakes`` and ``activations``."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlstm.experiments.images import IMAGES
from gridlstm.experiments.images.activations import draw_activations
from gridlstm.experiments.images.confusion import draw_confusion, draw_mistakes
from gridlstm.experiments.images.data import Labelled
from gridlstm.experiments.images.options import (
    ActivationsOptions,
    ConfusionOptions,
    ImageOptions,
    MistakesOptions,
)
from gridlstm.experiments.images.problem import (
    ImageProblem,
    as_input,
    classify,
    load_classifier,
    read_image,
)
from gridlstm.experiments.trained import load, options_of
from gridlstm.figures.save import write_figure
from gridlstm.models.image_network import ImageNetwork
from gridlstm.training.rundir import RunDir

__all__ = ["plot_activations", "plot_confusion", "plot_mistakes"]


class _Tested(NamedTuple):
    """The test images, and the network of a run."""

    test: Labelled
    network: ImageNetwork
    options: ImageOptions


def plot_confusion(options: ConfusionOptions) -> None:
    """Draws the confusion matrix of the test images."""
    tested = _load(options.run, options.data)
    probabilities = classify(tested.network, tested.test.images, tested.options)
    predicted, names = probabilities.argmax(1), tested.network.class_names
    classes = names or probabilities.shape[1]
    write_figure(draw_confusion(tested.test.labels, predicted, classes), options)


def plot_mistakes(options: MistakesOptions) -> None:
    """Draws the misclassified test images."""
    tested = _load(options.run, options.data)
    probabilities = classify(tested.network, tested.test.images, tested.options)
    names = tested.network.class_names
    write_figure(draw_mistakes(*tested.test, probabilities, names), options)


def plot_activations(options: ActivationsOptions) -> None:
    """Draws the vectors over a test image or a picture. A picture needs no data set.

    Raises:
        ValueError: if there is no such test image.
    """
    image: NDArray[np.uint8]
    if options.input.isdecimal():
        (images, _), network, run_options = _load(options.run, options.data)
        if int(options.input) >= len(images):
            raise ValueError(
                f"--input: expected a number below {len(images)} or a picture, got {options.input}"
            )
        image = images[int(options.input)]
    else:
        run = RunDir.open(options.run)
        run_options = options_of(run, IMAGES)
        image = read_image(Path(options.input), run_options)
        network = load_classifier(run)
    write_figure(draw_activations(network, image, as_input(image[None], run_options)), options)


def _load(path: Path, data: Path | None) -> _Tested:
    run = RunDir.open(path)
    options = options_of(run, IMAGES)
    _, problem, network = load(run, data)
    assert isinstance(problem, ImageProblem), "the problem of images"
    assert isinstance(network, ImageNetwork), "their network"
    return _Tested(problem.dataset.test, network, options)
