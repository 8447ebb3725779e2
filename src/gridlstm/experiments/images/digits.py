"""Figures of the confusion matrix and of the misclassified digits."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gridlstm.experiments.images.mistakes import count_confusions, find_mistakes

__all__ = ["draw_confusion", "draw_mistakes"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

MAX_SHOWN, COLUMNS = 96, 12
"""The largest number of misclassified digits in a figure, and how many there are per row."""


def draw_confusion(labels: Ints, predicted: Ints, classes: int) -> Figure:
    """The confusion matrix. Only errors are coloured, because they are few."""
    counts = count_confusions(labels, predicted, classes)
    wrong = counts * (1 - np.eye(classes, dtype=np.int64))
    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.imshow(wrong, cmap="Reds", vmin=0, vmax=max(int(wrong.max()), 1))
    for row, column in np.argwhere(counts):
        dark = wrong[row, column] > wrong.max() / 2
        axes.text(
            column, row, str(counts[row, column]), ha="center", va="center", fontsize=8,
            color="white" if dark else "black",
            fontweight="bold" if row == column else "normal",
        )  # fmt: skip
    axes.set_xticks(range(classes))
    axes.set_yticks(range(classes))
    axes.set_xlabel("predicted")
    axes.set_ylabel("digit")
    axes.set_title(_error_rate(int(wrong.sum()), len(labels)), fontsize=10)
    return figure


def draw_mistakes(images: Bytes, labels: Ints, probabilities: NDArray[np.float32]) -> Figure:
    """The misclassified digits, the most confident mistakes first.

    Args:
        images: ``[images, height, width]``.
        labels: the class of each, ``[images]``.
        probabilities: of each class, ``[images, classes]``.
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
        axes.imshow(images[place], cmap="gray_r", vmin=0, vmax=255)
        title = f"{labels[place]} as {predicted[place]}, {confidence[place]:.0%}"
        axes.set_title(title, fontsize=6)
    shown_part = f"; the {len(shown)} most confident ones" if len(shown) < len(wrong) else ""
    figure.suptitle(f"{_error_rate(len(wrong), len(labels))}{shown_part}", fontsize=10)
    return figure


def _error_rate(wrong: int, count: int) -> str:
    return f"{wrong:,} of {count:,} wrong, {wrong / count:.2%}"
