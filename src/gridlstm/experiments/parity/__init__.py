"""Parity of a string of bits, read as a whole (appendix)."""

from gridlstm.command import Command
from gridlstm.experiments.algorithmic.options import ACCURACY, TABLE
from gridlstm.experiments.parity.options import (
    PRESETS,
    MemoriesOptions,
    ParityOptions,
    SolutionsOptions,
)
from gridlstm.experiments.parity.reproduction import FIGURES
from gridlstm.experiments.record import Experiment

__all__ = ["PARITY"]

PARITY = Experiment(
    name="parity",
    options=ParityOptions,
    presets=PRESETS,
    problem="gridlstm.experiments.parity.problem:ParityProblem",
    measure=ACCURACY,
    table=TABLE,
    networks={
        "tied-grid": "tied 1-LSTM",
        "untied-grid": "untied 1-LSTM",
        "tied-tanh": "tied tanh network",
        "untied-tanh": "untied tanh network",
        "tied-relu": "tied ReLU network",
        "untied-relu": "untied ReLU network",
    },
    unit="bits",
    figures={
        "solutions": Command(SolutionsOptions, "gridlstm.experiments.parity.solutions:plot"),
        "memories": Command(MemoriesOptions, "gridlstm.experiments.parity.memories:plot"),
    },
    paper_figures=FIGURES,
)
