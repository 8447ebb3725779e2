"""The problem that an experiment sets the trainer."""

from pathlib import Path

from gridlstm.experiments import options
from gridlstm.experiments.algorithms import TaskProblem
from gridlstm.experiments.characters import CharacterProblem
from gridlstm.experiments.images import ImageProblem
from gridlstm.experiments.translation import TranslationProblem
from gridlstm.training.problem import Problem

__all__ = ["make_problem"]


def make_problem(experiment: options.Experiment, data: Path | None = None) -> Problem:
    """The problem of an experiment.

    Args:
        experiment: which one.
        data: where data sets are; unless given, where an environment variable says, or downloaded.

    Raises:
        ValueError: if the data are missing, damaged or too few.
    """
    if isinstance(experiment, options.Characters):
        return CharacterProblem(experiment, data)
    if isinstance(experiment, options.Translation):
        return TranslationProblem(experiment, data)
    if isinstance(experiment, options.Images):
        return ImageProblem(experiment, data)
    return TaskProblem(experiment)
