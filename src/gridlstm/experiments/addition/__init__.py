"""Addition of two numbers, digit by digit (section 4.1)."""

from gridlstm.experiments.addition.options import PRESETS, AdditionOptions
from gridlstm.experiments.addition.reproduction import FIGURES
from gridlstm.experiments.algorithmic.options import ACCURACY, NETWORKS, TABLE
from gridlstm.experiments.record import Experiment

__all__ = ["ADDITION"]

ADDITION = Experiment(
    name="addition",
    options=AdditionOptions,
    presets=PRESETS,
    problem="gridlstm.experiments.addition.problem:AdditionProblem",
    measure=ACCURACY,
    table=TABLE,
    networks=NETWORKS,
    unit="digits",
    paper_figures=FIGURES,
)
