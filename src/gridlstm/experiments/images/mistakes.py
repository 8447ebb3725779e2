"""What a network took images for."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_confusions", "find_mistakes"]

Ints = NDArray[np.int64]


def count_confusions(labels: Ints, found: Ints, classes: int) -> Ints:
    """How often each class was taken for each, ``[classes, classes]``; right ones on the diagonal.

    >>> count_confusions(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([[1, 0],
           [1, 1]])
    """
    return np.bincount(labels * classes + found, minlength=classes**2).reshape(classes, classes)


def find_mistakes(labels: Ints, probabilities: NDArray[np.float32]) -> Ints:
    """The numbers of images that were taken for others, those first that the network was surest of.

    Args:
        labels: the class of each, ``[images]``.
        probabilities: of each class, ``[images, classes]``.

    >>> find_mistakes(np.array([0, 0, 1]), np.array([[0.4, 0.6], [0.9, 0.1], [0.8, 0.2]]))
    array([2, 0])
    """
    wrong = np.flatnonzero(probabilities.argmax(1) != labels)
    return wrong[np.argsort(-probabilities.max(1)[wrong], kind="stable")]
