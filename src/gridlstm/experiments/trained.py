"""The experiment of a run, and its network as it was when the run ended or last saved."""

import logging
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from gridlstm.experiments.memory import check_memory
from gridlstm.experiments.record import Experiment, Options, OptionsType
from gridlstm.experiments.registry import find_experiment, from_flat
from gridlstm.training.checkpoint import BEST, NETWORK, CheckpointError, load_newest, select_prefix
from gridlstm.training.problem import Problem
from gridlstm.training.rundir import RunDir, RunError
from gridlstm.training.weights import (
    WeightsError,
    check_header,
    check_weights_file,
    load_weights,
    make_on_meta,
    set_weights,
)

__all__ = [
    "StoredWeights",
    "Trained",
    "load",
    "open_run",
    "options_of",
    "record_and_options",
    "stored_weights",
]

SAMPLES_AT_ONCE = 100
"""About how many samples a network reads at once when it is not trained."""
_log = logging.getLogger("gridlstm")
Network = TypeVar("Network", bound=nn.Module)


class Trained(NamedTuple):
    """A trained network with its options and its problem."""

    options: Options
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


def options_of(run: RunDir, experiment: Experiment[OptionsType]) -> OptionsType:
    """The options of a run of this experiment.

    Raises:
        RunError: if it is a run of another one, or its options are unknown.
    """
    record, options = record_and_options(run)
    if record is not experiment:
        raise RunError(f"{run.path}: expected a run of {experiment.name}, got one of {record.name}")
    known: OptionsType = options
    return known


class StoredWeights(NamedTuple):
    """The weights of a run's network.

    Attributes:
        source: a file of weights, or the folder of a checkpoint.
        tensors: those of the checkpoint.
    """

    source: Path
    tensors: dict[str, Tensor] | None = None

    def bytes(self, name: str) -> bytes:
        """Bytes that are kept with them.

        Raises:
            RunError: if there is nothing of that name, or it is something else.
        """
        try:
            if self.tensors is not None:
                found = self.tensors[name]
            else:
                with safe_open(str(self.source), "pt") as weights:
                    found = weights.get_tensor(name)
        except KeyError:
            raise RunError(f"{self.source}: expected a network with {name}, got another one") from None
        except (OSError, ValueError, SafetensorError) as error:
            raise RunError(f"{self.source}: {error}") from error
        if found.dtype != torch.uint8 or found.dim() != 1:
            raise RunError(f"{self.source}: {name}: expected a list of bytes, got {found.dtype}")
        return bytes(found.tolist())

    def load_into(self, make: Callable[[], Network]) -> Network:
        """A network with them.

        It is made only once its make_on_meta is known to be that of the weights: a run may come from
        anywhere, and what it says about sizes need not be true.

        Raises:
            WeightsError: if they are not of such a network.
        """
        if self.tensors is None:
            check_header(make_on_meta(make), self.source)
            network = make()
            load_weights(network, self.source)
        else:
            set_weights(make_on_meta(make), self.tensors)
            network = make()
            set_weights(network, self.tensors)
        return network.eval()


def stored_weights(run: RunDir) -> StoredWeights:
    """The weights of a run: if it has ended, the final or the best ones.

    Otherwise those of the newest checkpoint, its best ones where they are kept. What is damaged is
    passed over for what comes next, with a warning.

    Raises:
        RunError: if there are none yet.
        WeightsError: if a run that has ended is damaged and has no checkpoints.
        CheckpointError: if no checkpoint can be read.
    """
    ended, damaged, found = run.summary(), None, None
    if ended is not None and run.model.exists():
        try:
            check_weights_file(run.model, ended.get("model"))
        except WeightsError as error:
            damaged = error
        else:
            return StoredWeights(run.model)
    try:
        found = load_newest(run.checkpoints, run.fingerprint())
    except CheckpointError as error:
        if damaged is not None or not run.model.exists():
            raise
        _log.warning("%s; using %s", error, run.model)
    if damaged is not None:
        if found is None:
            raise damaged
        _log.warning("%s; using a checkpoint", damaged)
    if found is not None:
        best = select_prefix(found.tensors, BEST)
        if not best and found.state.get("best") and _whole(run.old_best):  # Of an older version.
            return StoredWeights(run.old_best)
        return StoredWeights(run.checkpoints, best or select_prefix(found.tensors, NETWORK))
    for path in (run.model, run.old_best):
        if path.exists():
            return StoredWeights(path)
    raise RunError(f"{run.path}: expected a trained network, got no checkpoint yet")


def _whole(path: Path) -> bool:
    try:
        check_weights_file(path)
    except WeightsError as error:
        _log.warning("%s; using the last weights instead of the best", error)
        return False
    return True


def load(run: RunDir, data: Path | None = None) -> Trained:
    """The network, ready to be used: the final or the best one, or that of the last checkpoint.

    Args:
        run: its directory.
        data: the directory of data sets.

    Raises:
        RunError: if there is none of them, or the data is not that of its training.
        WeightsError: if they are not of such a network.
        CheckpointError: if no checkpoint can be read.
    """
    experiment, options = record_and_options(run)
    problem = experiment.make_problem(options, data)
    trained_on = run.config().get("data", {})
    changed = [name for name, sha in problem.data().items() if trained_on.get(name) != sha]
    if changed:
        names = ", ".join(changed)
        raise RunError(f"{run.path}: expected the data of its training, got others: {names}")
    check_memory(options, SAMPLES_AT_ONCE)
    return Trained(options, problem, stored_weights(run).load_into(problem.network))
