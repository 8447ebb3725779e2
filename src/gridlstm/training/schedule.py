"""Learning rate schedules."""

import math

from gridlstm.training.settings import Training

__all__ = ["rate_factor"]


def rate_factor(settings: Training, samples: int) -> float:
    """The factor of the learning rate after this many samples."""
    factor = min(1.0, (samples + settings.batch) / settings.warmup) if settings.warmup else 1.0
    left = max(0.0, 1 - samples / settings.samples)
    if settings.schedule == "linear":
        factor *= left
    elif settings.schedule == "cosine":
        factor *= (1 - math.cos(math.pi * left)) / 2
    elif settings.schedule == "trapezoid":
        factor *= min(1.0, 4 * left)
    return factor
