"""The options of ``gridlstm reproduce``. No PyTorch here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from gridlstm.experiments.record import Experiment, PaperFigure, Scale
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.sweeps.options import Launch

__all__ = ["FIGURES", "ReproduceOptions"]

FIGURES: dict[str, tuple[Experiment[Any], PaperFigure]] = dict(
    sorted(
        (
            (number, (experiment, figure))
            for experiment in EXPERIMENTS.values()
            for number, figure in experiment.paper_figures.items()
        ),
        key=lambda entry: int(entry[0]),
    )
)
"""The figures of the paper that can be reproduced, by number."""


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Launch):
    """Reproduce a figure of the paper: train the networks that it needs, draw it, compare."""

    figure: Annotated[str, Positional, arg(metavar="FIGURE")]
    """The number of the figure (4, 5, 6, 8, 9, 10 or 12), or all."""
    scale: Scale = "laptop"
    """How much of it: smoke takes a minute, laptop hours, paper has the settings of the paper."""
    bfloat16: bool = False
    """Compute the matrix products of all runs in bfloat16; faster only on processors with bfloat16
    units."""
    out: Path = Path("reproduction")
    """Where runs, figures and tables are written. What is there is continued."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.figure not in (*FIGURES, "all"):
            expected = ", ".join((*FIGURES, "all"))
            raise ValueError(f"FIGURE: expected one of {expected}; got {self.figure!r}")

    @property
    def numbers(self) -> list[str]:
        """The figures that were asked for."""
        return list(FIGURES) if self.figure == "all" else [self.figure]
