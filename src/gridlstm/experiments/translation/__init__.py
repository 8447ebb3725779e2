"""Translation with the Reencoder and with attention (section 4.4)."""

from gridlstm.command import Command
from gridlstm.experiments.record import Experiment, Measure
from gridlstm.experiments.translation.options import (
    PRESETS,
    AlignmentOptions,
    TranslateOptions,
    TranslationEval,
    TranslationOptions,
)
from gridlstm.experiments.translation.reproduction import FIGURES

__all__ = ["TRANSLATION"]

_FOLDER = "gridlstm.experiments.translation"

TRANSLATION = Experiment(
    name="translation",
    options=TranslationOptions,
    presets=PRESETS,
    problem=f"{_FOLDER}.problem:TranslationProblem",
    measure=Measure("perplexity", "perplexity", scale="log"),
    load=f"{_FOLDER}.text_translator:load_translator",
    table=f"{_FOLDER}.results:make_table",
    networks={
        "reencoder": "Reencoder",
        "attention": "LSTM with attention",
        "depth-gated": "depth-gated LSTM with attention",
    },
    next_command="translate {run}  # type sentences, one per line",
    eval_options=TranslationEval,
    commands={"translate": Command(TranslateOptions, f"{_FOLDER}.commands:translate_lines")},
    figures={"alignment": Command(AlignmentOptions, f"{_FOLDER}.alignment:plot")},
    paper_figures=FIGURES,
)
