"""A run's experiment, and its network as it was when the run ended or last saved."""

from typing import NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_model
from torch import nn

from gridlstm.experiments.options import Experiment, from_flat
from gridlstm.experiments.problems import TaskProblem, make_problem
from gridlstm.training.checkpoint import load_newest
from gridlstm.training.rundir import RunDir, RunError
from gridlstm.training.trainer import NETWORK, put_weights, weights_of

__all__ = ["Trained", "experiment_of", "load"]


class Trained(NamedTuple):
    """What a run has given."""

    experiment: Experiment
    problem: TaskProblem
    network: nn.Module


def experiment_of(run: RunDir) -> Experiment:
    """What was asked for.

    Raises:
        RunError: if it is nothing that this version knows.
    """
    config = run.config()
    try:
        return from_flat(config["experiment"], config["options"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunError(f"{run.path / 'config.json'}: {error}") from error


def load(run: RunDir) -> Trained:
    """The network, ready to be used: the final one, or that of the last checkpoint.

    Raises:
        RunError: if there is neither, or the file is not of such a network.
        CheckpointError: if no checkpoint can be read.
    """
    experiment = experiment_of(run)
    problem = make_problem(experiment)
    network = problem.network()
    if run.model.exists():
        try:
            load_model(network, str(run.model))
        except (OSError, RuntimeError, SafetensorError) as error:
            raise RunError(f"{run.model}: {error}") from error
    else:
        shapes = {f"{NETWORK}{name}": t.shape for name, t in weights_of(network).items()}
        found = load_newest(run.checkpoints, run.origin(), shapes)
        if found is None:
            raise RunError(f"{run.path}: expected a trained network, got no checkpoint yet")
        put_weights(network, found)
    return Trained(experiment, problem, network.eval())
