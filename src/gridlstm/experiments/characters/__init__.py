"""Character-level language modelling (section 4.3)."""

from gridlstm.command import Command
from gridlstm.experiments.characters.options import (
    PRESETS,
    CharacterEval,
    CharacterOptions,
    GenerateOptions,
    ScoreOptions,
)
from gridlstm.experiments.characters.reproduction import FIGURES
from gridlstm.experiments.record import Experiment, Measure

__all__ = ["CHARACTERS"]

_FOLDER = "gridlstm.experiments.characters"

CHARACTERS = Experiment(
    name="characters",
    options=CharacterOptions,
    presets=PRESETS,
    problem=f"{_FOLDER}.problem:CharacterProblem",
    measure=Measure("bits", "bits per character"),
    load=f"{_FOLDER}.commands:load_model",
    table=f"{_FOLDER}.results:make_table",
    networks={
        "tied-grid": "tied 2-LSTM",
        "untied-grid": "untied 2-LSTM",
        "shared-grid": "tied 2-LSTM with shared weights",
        "tied-stacked": "tied Stacked LSTM",
        "untied-stacked": "Stacked LSTM",
        "multiplicative": "multiplicative RNN",
        "gated-feedback": "gated-feedback LSTM",
    },
    next_command="generate {run} --length 500  # write like the text it was trained on",
    samples_unit=("characters, millions", lambda options: 1e6 / options.chunk),
    eval_options=CharacterEval,
    commands={
        "generate": Command(GenerateOptions, f"{_FOLDER}.commands:generate_text"),
        "score": Command(ScoreOptions, f"{_FOLDER}.commands:score_file"),
    },
    paper_figures=FIGURES,
)
