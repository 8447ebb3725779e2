"""The training options that all experiments share. No PyTorch here: the help of commands reads them."""

from dataclasses import dataclass
from typing import Literal

from gridlstm.fields import check_fields, check_types

__all__ = ["TrackerName", "Training"]

TrackerName = Literal["tensorboard", "wandb"]
"""Where metrics can go besides the directory of a run. Each has a folder of this name there."""


@dataclass(frozen=True)
class Training:
    """Training options."""

    batch: int = 15
    """Samples per update, over all processes."""
    samples: int = 5_000_000
    """Stop after this many samples."""
    minutes: float | None = None
    """Stop after this many minutes of this session; --resume continues the run."""
    optimizer: Literal["adam", "muon", "adagrad", "sgd"] = "adam"
    """The optimiser; muon is Adam with orthogonalised updates of recurrent weights."""
    rate: float = 1e-3
    """The learning rate."""
    momentum: float = 0.95
    """The momentum of muon."""
    schedule: Literal["constant", "linear", "cosine", "trapezoid"] = "constant"
    """How the learning rate falls towards the last sample; trapezoid: in the last quarter only."""
    warmup: int = 0
    """Samples over which the learning rate rises from 0."""
    clip: float | None = 1.0
    """Clip the gradient norm to this."""
    evaluate_every: int = 1_500
    """Samples between evaluations."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; one is also written at the end and when interrupted."""
    bfloat16: bool = False
    """Compute matrix products in bfloat16; faster only on processors with bfloat16 units."""
    seed: int = 0
    """The seed of initial weights and data: the same seed makes the same run, bit for bit."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "batch", "samples", "evaluate_every", least=1)
        check_fields(self, "rate", "checkpoint_minutes", above=0)
        check_fields(self, "minutes", "clip", above=0, optional=True)
        check_fields(self, "momentum", least=0, below=1)
        check_fields(self, "warmup", least=0)
        check_fields(self, "seed", least=0, most=2**31 - 1)
