"""What a network took digits for: the confusion matrix, and the digits that it got wrong."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gridlstm.experiments.images.mistakes import count_confusions, find_mistakes

__all__ = ["draw_confusion", "draw_mistakes"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

MOST = 96
"""Misclassified digits that a figure has room for."""
ACROSS = 12


def draw_confusion(labels: Ints, found: Ints, classes: int) -> Figure:
    """The confusion matrix. Colours are those of errors only, which are few beside what is right."""
    counts = count_confusions(labels, found, classes)
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
    axes.set_xlabel("taken for")
    axes.set_ylabel("digit")
    axes.set_title(_told(int(wrong.sum()), len(labels)), fontsize=10)
    return figure


def draw_mistakes(images: Bytes, labels: Ints, probabilities: NDArray[np.float32]) -> Figure:
    """The digits that were taken for others, those first that it was surest of.

    Args:
        images: ``[images, height, width]``.
        labels: the class of each, ``[images]``.
        probabilities: of each class, ``[images, classes]``.
    """
    found, sure = probabilities.argmax(1), probabilities.max(1)
    wrong = find_mistakes(labels, probabilities)
    shown = wrong[:MOST]
    rows = max(1, -(-len(shown) // ACROSS))
    figure = Figure(figsize=(0.8 * ACROSS, 1.05 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, ACROSS, squeeze=False).flatten()
    for axes in panels:
        axes.set_axis_off()
    for axes, place in zip(panels, shown, strict=False):
        axes.imshow(images[place], cmap="gray_r", vmin=0, vmax=255)
        axes.set_title(f"{labels[place]} as {found[place]}, {sure[place]:.0%}", fontsize=6)
    more = f"; the {len(shown)} that it was surest of" if len(shown) < len(wrong) else ""
    figure.suptitle(f"{_told(len(wrong), len(labels))}{more}", fontsize=10)
    return figure


def _told(wrong: int, count: int) -> str:
    return f"{wrong:,} of {count:,} wrong, {wrong / count:.2%}"
