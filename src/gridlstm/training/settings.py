"""How to train, as data: what every experiment has in common. No PyTorch here."""

from dataclasses import dataclass
from typing import Literal

from gridlstm.fields import check_fields

__all__ = ["Training"]


@dataclass(frozen=True)
class Training:
    """How to train."""

    batch: int = 15
    """Samples of an update, over all processes."""
    samples: int = 5_000_000
    """Stop after so many samples."""
    minutes: float | None = None
    """Stop after so many minutes of this session; --resume goes on."""
    optimizer: Literal["adam", "muon", "adagrad", "sgd"] = "adam"
    """The update rule; muon is Adam with orthogonal updates of the weights that recur."""
    rate: float = 1e-3
    """The learning rate."""
    momentum: float = 0.95
    """muon: how much of the last direction remains."""
    schedule: Literal["constant", "linear", "cosine", "trapezoid"] = "constant"
    """How the learning rate falls towards the end of the samples; trapezoid: in the last quarter."""
    warmup: int = 0
    """Samples over which the learning rate rises from 0."""
    clip: float | None = 1.0
    """Clip the gradient's norm to this."""
    evaluate_every: int = 1_500
    """Samples between evaluations."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; there is one at the end and at an interruption, too."""
    bfloat16: bool = False
    """Matrix products in bfloat16; worth it only on processors with units for it."""
    seed: int = 0
    """Of initial weights and of data: the same seed gives the same run, bit for bit."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("batch", "samples", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 1, got {getattr(self, name)}")
        for name in ("rate", "checkpoint_minutes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: expected more than 0, got {getattr(self, name)}")
        for name in ("minutes", "clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}: expected more than 0 or None, got {value}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum: expected at least 0 and less than 1, got {self.momentum}")
        if self.warmup < 0:
            raise ValueError(f"warmup: expected at least 0, got {self.warmup}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed: expected 0 to {2**31 - 1}, got {self.seed}")
