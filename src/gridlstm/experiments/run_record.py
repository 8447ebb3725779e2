"""The experiment and the options of a run, from its config. No PyTorch here."""

from typing import Any

from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import find_experiment, from_flat
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["record_and_options"]


def record_and_options(run: RunDir) -> tuple[Experiment[Any], Any]:
    """The experiment of a run, and its options.

    Raises:
        RunError: if this version does not know them.
    """
    config = run.config()
    try:
        experiment = find_experiment(config["experiment"])
        return experiment, from_flat(experiment, config["options"])
    except ValueError as error:
        raise RunError(f"{run.path / 'config.json'}: {error}") from error
