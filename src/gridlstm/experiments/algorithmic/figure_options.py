"""The options of figures of algorithmic experiments. No Matplotlib here."""

from dataclasses import dataclass
from typing import ClassVar

from gridlstm.figures.options import RunsFigure

__all__ = ["DepthOptions"]


@dataclass(frozen=True, kw_only=True)
class DepthOptions(RunsFigure):
    """Draw the number of samples needed to reach an accuracy, against layers (Figure 5)."""

    kind: ClassVar[str] = "depth"

    thresholds: tuple[float, ...] = (0.99, 0.8, 0.5)
    """The accuracies to reach, one panel each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for threshold in self.thresholds:
            if not 0 < threshold <= 1:
                raise ValueError(f"thresholds: expected more than 0 and at most 1, got {threshold}")
