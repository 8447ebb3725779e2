"""Confusions and mistakes of a classifier."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_confusions", "find_mistakes"]

Ints = NDArray[np.int64]


def count_confusions(labels: Ints, predicted: Ints, classes: int) -> Ints:
    """The confusion matrix, ``[classes, classes]``: a row per label, a column per prediction.

    >>> count_confusions(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([[1, 0],
           [1, 1]])
    """
    return np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)


def find_mistakes(labels: Ints, probabilities: NDArray[np.float32]) -> Ints:
    """The indices of misclassified images, the most confident mistakes first.

    Args:
        labels: the class of each, ``[images]``.
        probabilities: of each class, ``[images, classes]``.

    >>> find_mistakes(np.array([0, 0, 1]), np.array([[0.4, 0.6], [0.9, 0.1], [0.8, 0.2]]))
    array([2, 0])
    """
    wrong = np.flatnonzero(probabilities.argmax(1) != labels)
    return wrong[np.argsort(-probabilities.max(1)[wrong], kind="stable")]
