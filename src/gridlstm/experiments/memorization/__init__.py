"""Memorization: read a sequence of symbols, then repeat it (section 4.2)."""

from gridlstm.command import Command
from gridlstm.experiments.algorithmic.figure_options import DepthOptions
from gridlstm.experiments.algorithmic.options import ACCURACY, NETWORKS, TABLE
from gridlstm.experiments.memorization.options import PRESETS, MemorizationOptions
from gridlstm.experiments.memorization.reproduction import FIGURES
from gridlstm.experiments.record import Experiment

__all__ = ["MEMORIZATION"]

MEMORIZATION = Experiment(
    name="memorization",
    options=MemorizationOptions,
    presets=PRESETS,
    problem="gridlstm.experiments.memorization.problem:MemorizationProblem",
    measure=ACCURACY,
    table=TABLE,
    networks=NETWORKS,
    unit="symbols",
    figures={"depth": Command(DepthOptions, "gridlstm.experiments.algorithmic.depth:plot")},
    paper_figures=FIGURES,
)
