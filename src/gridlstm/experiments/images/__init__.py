"""Recognition of handwritten digits (appendix)."""

from gridlstm.command import Command
from gridlstm.experiments.images.options import (
    NETWORKS,
    PRESETS,
    ActivationsOptions,
    ClassifyOptions,
    ConfusionOptions,
    ImageOptions,
    MistakesOptions,
)
from gridlstm.experiments.images.reproduction import FIGURES
from gridlstm.experiments.record import Experiment, Measure

__all__ = ["IMAGES"]

_FOLDER = "gridlstm.experiments.images"

IMAGES = Experiment(
    name="images",
    options=ImageOptions,
    presets=PRESETS,
    problem=f"{_FOLDER}.problem:ImageProblem",
    measure=Measure("error", "error on validation images", scale="log", percent=True),
    load=f"{_FOLDER}.problem:load_classifier",
    table=f"{_FOLDER}.results:make_table",
    networks=NETWORKS,
    next_command="plot mistakes {run}  # the test images it gets wrong",
    commands={"classify": Command(ClassifyOptions, f"{_FOLDER}.commands:classify_pictures")},
    figures={
        "confusion": Command(ConfusionOptions, f"{_FOLDER}.figures:plot_confusion"),
        "mistakes": Command(MistakesOptions, f"{_FOLDER}.figures:plot_mistakes"),
        "activations": Command(ActivationsOptions, f"{_FOLDER}.figures:plot_activations"),
    },
    paper_figures=FIGURES,
)
