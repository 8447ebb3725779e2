"""A run's experiment, and its network as it was when the run ended or last saved."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from safetensors import SafetensorError, safe_open
from torch import nn

from gridlstm.experiments.memory import check_memory
from gridlstm.experiments.options import Experiment, from_flat
from gridlstm.experiments.problems import make_problem
from gridlstm.training.checkpoint import load_newest
from gridlstm.training.problem import Problem
from gridlstm.training.rundir import RunDir, RunError
from gridlstm.training.weights import (
    NETWORK,
    check_weights,
    load_weights,
    outline,
    put_weights,
    weights_of,
)

__all__ = ["Trained", "expect", "experiment_of", "load", "load_into", "open_run", "stored"]

READ = 100
"""Samples that a network reads at once, about, where nothing is learnt."""

Kind = TypeVar("Kind", bound=Experiment)
Network = TypeVar("Network", bound=nn.Module)


class Trained(NamedTuple):
    """What a run has given."""

    experiment: Experiment
    problem: Problem
    network: nn.Module


def open_run(path: Path | None, shipped: str) -> RunDir:
    """A run, or if none is named the one of an experiment that comes with the package.

    Raises:
        RunError: if there is no such run.
    """
    if path is not None:
        return RunDir.open(path)
    place = Path(str(files("gridlstm"))) / "embedded" / shipped
    if not place.is_dir():
        raise RunError(f"RUN: expected one, because no network for {shipped} comes with this version")
    return RunDir.open(place)


def experiment_of(run: RunDir) -> Experiment:
    """What was asked for.

    Raises:
        RunError: if it is nothing that this version knows.
    """
    config = run.config()
    try:
        return from_flat(config["experiment"], config["options"])
    except (KeyError, ValueError) as error:
        raise RunError(f"{run.path / 'config.json'}: {error}") from error


def expect(run: RunDir, kind: type[Kind]) -> Kind:
    """What was asked for, if it is an experiment of this kind.

    Raises:
        RunError: if it is another.
    """
    experiment = experiment_of(run)
    if not isinstance(experiment, kind):
        raise RunError(f"{run.path}: expected a run of {kind.name}, got one of {experiment.name}")
    return experiment


def stored(run: RunDir, name: str) -> bytes:
    """Bytes that are kept with the final or else the best weights.

    Raises:
        RunError: if there are no weights yet, or nothing of that name, or it is something else.
    """
    path = _weights(run)
    if path is None:
        raise RunError(f"{run.path}: expected a trained network, got none yet")
    try:
        with safe_open(str(path), "pt") as weights:
            found = weights.get_slice(name)
            if (found.get_dtype(), len(found.get_shape())) != ("U8", 1):
                raise RunError(f"{path}: {name}: expected a list of bytes, got {found.get_dtype()}")
            return bytes(weights.get_tensor(name).tolist())
    except (OSError, ValueError, SafetensorError) as error:
        raise RunError(f"{path}: {error}") from error


def load(run: RunDir, data: Path | None = None) -> Trained:
    """The network, ready to be used: the final or the best one, or that of the last checkpoint.

    Args:
        run: its directory.
        data: where data sets are.

    Raises:
        RunError: if there is none of them, or the data are not those of its training.
        WeightsError: if the file is not of such a network.
        CheckpointError: if no checkpoint can be read.
    """
    experiment = experiment_of(run)
    problem = make_problem(experiment, data)
    trained_on = run.config().get("data")
    known = trained_on if isinstance(trained_on, dict) else {}
    other = [name for name, sha in problem.data().items() if known.get(name) != sha]
    if other:
        raise RunError(f"{run.path}: expected the data of its training, got others: {', '.join(other)}")
    check_memory(experiment, READ)
    return Trained(experiment, problem, load_into(problem.network, run))


def load_into(make: Callable[[], Network], run: RunDir) -> Network:
    """A network with the weights of a run; raises what :func:`load` does.

    It is made only once its outline is known to be that of the weights: a run may come from anywhere,
    and what it says about sizes need not be true.
    """
    weights, drawn = _weights(run), outline(make)
    if weights is not None:
        check_weights(drawn, weights)
        network = make()
        load_weights(network, weights)
    else:
        shapes = {f"{NETWORK}{name}": t.shape for name, t in weights_of(drawn).items()}
        found = load_newest(run.checkpoints, run.origin(), shapes)
        if found is None:
            raise RunError(f"{run.path}: expected a trained network, got no checkpoint yet")
        network = make()
        put_weights(network, found)
    return network.eval()


def _weights(run: RunDir) -> Path | None:
    return next((path for path in (run.model, run.best) if path.exists()), None)
