"""What the options and presets of the algorithmic experiments share. No PyTorch here."""

from typing import Literal

from gridlstm.experiments.record import Measure
from gridlstm.fields import check_fields
from gridlstm.training.settings import Training

__all__ = ["ACCURACY", "BRIEF", "LAPTOP", "TABLE", "SymbolNetwork", "check_task"]

SymbolNetwork = Literal["tied-grid", "untied-grid", "tied-stacked", "untied-stacked"]
"""The networks that read sequences of symbols."""

NETWORKS = {
    "tied-grid": "tied 2-LSTM",
    "untied-grid": "untied 2-LSTM",
    "tied-stacked": "tied Stacked LSTM",
    "untied-stacked": "Stacked LSTM",
}
"""What figures call them."""
ACCURACY = Measure("accuracy", "accuracy", lower_is_better=False)
TABLE = "gridlstm.experiments.algorithmic.results:make_table"
LAPTOP = Training(rate=3e-3, minutes=60)
BRIEF = Training(samples=6000, evaluate_every=1500, rate=1e-2)

LEAST_CONTENTS = 81
"""The least number of different samples of a task, so that some can be held out."""


def check_task(options: object, *sizes: str, contents: int = LEAST_CONTENTS) -> None:
    """Checks sizes, and that there are enough different samples to hold some out.

    Args:
        options: the options of an experiment.
        sizes: fields that must be at least 1, the size of the task first.
        contents: a lower bound of the number of different samples.

    Raises:
        ValueError: if a size is too small.
    """
    check_fields(options, *sizes, least=1)
    if contents < LEAST_CONTENTS:
        raise ValueError(
            f"{sizes[0]}: expected a task of at least {LEAST_CONTENTS} different samples, "
            f"got one of {contents}"
        )
