"""The command ``gridlstm classify``."""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from gridlstm.data.locate import DataError
from gridlstm.errors import one_line
from gridlstm.experiments.images import IMAGES
from gridlstm.experiments.images.options import ClassifyOptions, ImageOptions
from gridlstm.experiments.images.problem import class_of, classify, load_classifier, read_image
from gridlstm.experiments.trained import open_run, options_of
from gridlstm.pipes import print_json

__all__ = ["classify_pictures"]


def classify_pictures(options: ClassifyOptions) -> None:
    """Prints the class of each picture and its probability.

    Raises:
        SystemExit: 1 if a picture cannot be read, after a line about each of them and after the
            others have been classified.
    """
    run = open_run(options.run, "images")
    run_options = options_of(run, IMAGES)
    network = load_classifier(run)
    read = [(path, _read(path, run_options)) for path in options.images]
    pictures = [(path, image) for path, image in read if image is not None]
    images = np.array([image for _, image in pictures])
    console = Console()
    answers = classify(network, images, run_options) if pictures else ()
    for (path, _), probabilities in zip(pictures, answers, strict=True):
        likeliest = int(probabilities.argmax())
        answer = class_of(likeliest, network.class_names)
        if console.is_terminal:
            line = one_line(f"{path}: {answer} ({probabilities[likeliest]:.1%})")
            console.print(line, highlight=False, soft_wrap=True, markup=False)
        else:
            probability = round(float(probabilities[likeliest]), 6)
            print_json({"image": str(path), "class": answer, "probability": probability})
    if len(pictures) < len(options.images):
        raise SystemExit(1)


def _read(path: Path, options: ImageOptions) -> NDArray[np.uint8] | None:
    """A picture as an image; ``None``, after a line on standard error, if it cannot be read."""
    try:
        return read_image(path, options)
    except DataError as error:
        sys.stderr.write(f"gridlstm classify: {one_line(error)}\n")
        return None
