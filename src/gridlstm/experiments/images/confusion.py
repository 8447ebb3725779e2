"""Figures of the confusion matrix and of the misclassified images."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gridlstm.errors import one_line
from gridlstm.experiments.images.mistakes import count_confusions, find_mistakes

__all__ = ["draw_confusion", "draw_mistakes", "shortened", "show_image"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

MAX_SHOWN, COLUMNS = 96, 12
"""The largest number of misclassified images in a figure, and how many there are per row."""
LONGEST, DETAILED = 12, 20
"""The most letters of a name that are shown, and the most classes whose counts are shown as numbers."""


def draw_confusion(labels: Ints, predicted: Ints, classes: int | Sequence[str]) -> Figure:
    """The confusion matrix. Only errors are coloured, because they are few.

    Args:
        labels: the class of each image.
        predicted: the predicted class of each image.
        classes: the number of digits, or the names of the classes.
    """
    names = [str(k) for k in range(classes)] if isinstance(classes, int) else classes
    counts = count_confusions(labels, predicted, len(names))
    wrong = counts * (1 - np.eye(len(names), dtype=np.int64))
    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.imshow(wrong, cmap="Reds", vmin=0, vmax=max(int(wrong.max()), 1))
    for row, column in np.argwhere(counts) if len(names) <= DETAILED else ():
        dark = wrong[row, column] > wrong.max() / 2
        axes.text(
            column, row, str(counts[row, column]), ha="center", va="center", fontsize=8,
            color="white" if dark else "black",
            fontweight="bold" if row == column else "normal",
        )  # fmt: skip
    shown = [shortened(name) for name in names]
    size = min(10, 200 / len(names))
    axes.set_xticks(range(len(names)), shown, fontsize=size)
    axes.set_yticks(range(len(names)), shown, fontsize=size)
    if not isinstance(classes, int):
        axes.tick_params("x", rotation=90)
    axes.set_xlabel("predicted")
    axes.set_ylabel("digit" if isinstance(classes, int) else "class")
    axes.set_title(_error_rate(int(wrong.sum()), len(labels)), fontsize=10)
    return figure


def draw_mistakes(
    images: Bytes,
    labels: Ints,
    probabilities: NDArray[np.float32],
    names: Sequence[str] | None = None,
) -> Figure:
    """The misclassified images, the most confident mistakes first.

    Args:
        images: ``[images, height, width]``, or ``[images, 3, height, width]`` in colour.
        labels: the class of each, ``[images]``.
        probabilities: of each class, ``[images, classes]``.
        names: the names of the classes. Default: the images are digits, drawn dark on light.
    """
    predicted, confidence = probabilities.argmax(1), probabilities.max(1)
    wrong = find_mistakes(labels, probabilities)
    shown = wrong[:MAX_SHOWN]
    rows = max(1, -(-len(shown) // COLUMNS))
    figure = Figure(figsize=(0.8 * COLUMNS, 1.05 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
    for axes in panels:
        axes.set_axis_off()
    for axes, place in zip(panels, shown, strict=False):
        show_image(axes, images[place], inverted=names is None)
        label, answer = (
            str(k) if names is None else shortened(names[k]) for k in (labels[place], predicted[place])
        )
        axes.set_title(f"{label} as {answer}, {confidence[place]:.0%}", fontsize=6)
    shown_part = f"; the {len(shown)} most confident ones" if len(shown) < len(wrong) else ""
    figure.suptitle(f"{_error_rate(len(wrong), len(labels))}{shown_part}", fontsize=10)
    return figure


def show_image(axes: Axes, image: Bytes, *, inverted: bool) -> None:
    """Draws an image, ``[height, width]`` or ``[3, height, width]``."""
    if image.ndim == 3:
        axes.imshow(np.moveaxis(image, 0, -1))
    else:
        axes.imshow(image, cmap="gray_r" if inverted else "gray", vmin=0, vmax=255)


def shortened(name: str) -> str:
    """A name that fits, and that Matplotlib does not take for a formula."""
    name = one_line(name).replace("$", r"\$")
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _error_rate(wrong: int, count: int) -> str:
    return f"{wrong:,} of {count:,} wrong, {wrong / count:.2%}"
