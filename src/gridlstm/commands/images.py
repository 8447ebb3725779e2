"""The command ``gridlstm classify``, and the figures of networks that look at images."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console

from gridlstm.commands.load import expect, load, load_into, open_run
from gridlstm.commands.options import Classify, Plot
from gridlstm.data.locate import DataError
from gridlstm.data.pictures import read_picture, to_digit
from gridlstm.errors import one_line
from gridlstm.experiments.images import ImageProblem, as_input, classify, make_network
from gridlstm.experiments.options import Images
from gridlstm.figures.activations import draw_activations
from gridlstm.figures.digits import draw_confusion, draw_mistakes
from gridlstm.models.image_network import ImageNetwork
from gridlstm.pipes import print_json
from gridlstm.training.rundir import RunDir

__all__ = ["PICTURES", "draw_picture", "run_classify"]

PICTURES = ("confusion", "mistakes", "activations")
"""Kinds of figures that show what a network makes of images."""


def run_classify(options: Classify) -> None:
    """Tells the class of each picture and its probability.

    Raises:
        SystemExit: 1 if some pictures cannot be read, after a line for each of them; the others are
            classified nevertheless.
    """
    run = open_run(options.run, "images")
    experiment = expect(run, Images)
    network = load_into(lambda: make_network(experiment), run)
    read = [(path, _read(path)) for path in options.images]
    pictures = [(path, image) for path, image in read if image is not None]
    images = np.array([image for _, image in pictures])
    console = Console()
    answers = classify(network, images, experiment) if pictures else ()
    for (path, _), probabilities in zip(pictures, answers, strict=True):
        found = int(probabilities.argmax())
        if console.is_terminal:
            line = one_line(f"{path}: {found} ({probabilities[found]:.1%})")
            console.print(line, highlight=False, soft_wrap=True, markup=False)
        else:
            probability = round(float(probabilities[found]), 6)
            print_json({"image": str(path), "class": found, "probability": probability})
    if len(pictures) < len(options.images):
        raise SystemExit(1)


def _read(path: Path) -> NDArray[np.uint8] | None:
    """The digit on a picture; none, after a line on standard error, if it cannot be read."""
    try:
        return to_digit(read_picture(path), str(path))
    except DataError as error:
        sys.stderr.write(f"gridlstm classify: {one_line(error)}\n")
        return None


def draw_picture(run: RunDir, options: Plot) -> Figure:
    """A figure of what the network of a run makes of images.

    Raises:
        RunError: if the run is not one of images.
        ValueError: if there is no such image.
    """
    experiment = expect(run, Images)
    given = options.input or "0"
    if options.kind == "activations" and not given.isdecimal():  # A picture: no data set is needed.
        own = to_digit(read_picture(Path(given)), given)
        return _activations(load_into(lambda: make_network(experiment), run), own, experiment)
    _, problem, network = load(run, options.data)
    assert isinstance(problem, ImageProblem), "the problem of images"
    assert isinstance(network, ImageNetwork), "their network"
    test = problem.digits.test
    if options.kind == "activations":
        if int(given) >= len(test.images):
            raise ValueError(
                f"--input: expected a number below {len(test.images)} or a picture, got {given}"
            )
        return _activations(network, test.images[int(given)], experiment)
    probabilities = classify(network, test.images, experiment)
    if options.kind == "confusion":
        return draw_confusion(test.labels, probabilities.argmax(1), probabilities.shape[1])
    return draw_mistakes(test.images, test.labels, probabilities)


def _activations(network: ImageNetwork, image: NDArray[np.uint8], experiment: Images) -> Figure:
    return draw_activations(network, image, as_input(image[None], experiment))
