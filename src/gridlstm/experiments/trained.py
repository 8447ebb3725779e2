"""Loads the experiment of a run, and its network as it was at the end or at the last checkpoint."""

import logging
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from gridlstm.experiments.memory import check_memory
from gridlstm.experiments.record import Experiment, Options, OptionsType, import_name
from gridlstm.experiments.run_record import record_and_options
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
    "find_run",
    "load",
    "load_from_options",
    "load_network",
    "open_run",
    "options_of",
    "record_and_options",
    "stored_weights",
]

SAMPLES_AT_ONCE = 100
"""About how many samples are processed at once outside of training."""
_log = logging.getLogger("gridlstm")
Network = TypeVar("Network", bound=nn.Module)


class Trained(NamedTuple):
    """A trained network with its options and its problem."""

    options: Options
    problem: Problem
    network: nn.Module


def open_run(path: Path | None, experiment: str) -> RunDir:
    """Opens a run, see :func:`find_run`. Default: that of an experiment that comes with the package.

    Raises:
        RunError: if there is no such run.
    """
    if path is not None:
        return find_run(path)
    embedded = _embedded() / experiment
    if not embedded.is_dir():
        raise RunError(
            f"RUN: expected one, because no network for {experiment} comes with this version"
        )
    return RunDir.open(embedded)


def find_run(name: str | os.PathLike[str]) -> RunDir:
    """Opens the run in a directory, or else the one of this name that comes with the package.

    Raises:
        RunError: if there is neither.
    """
    path = Path(name)
    names = sorted(folder.name for folder in _embedded().iterdir())
    # A folder "images" with other files does not hide the network.
    if str(path) in names and not (path / "config.json").exists():
        return open_run(None, path.name)
    if not path.exists():
        raise RunError(f"{path}: expected a run directory or one of {', '.join(names)}; got neither")
    return RunDir.open(path)


def _embedded() -> Path:
    return Path(str(files("gridlstm"))) / "embedded"


def options_of(run: RunDir, experiment: Experiment[OptionsType]) -> OptionsType:
    """The options of a run of this experiment.

    Raises:
        RunError: if the run is one of another experiment, or has unknown options.
    """
    record, options = record_and_options(run)
    if record is not experiment:
        raise RunError(f"{run.path}: expected a run of {experiment.name}, got one of {record.name}")
    typed: OptionsType = options
    return typed


class StoredWeights(NamedTuple):
    """The stored weights of a run.

    Attributes:
        source: a file of weights, or the folder of checkpoints.
        tensors: the tensors of a checkpoint, if they come from one.
    """

    source: Path
    tensors: dict[str, Tensor] | None = None

    def bytes(self, name: str) -> bytes:
        """Bytes that are stored with the weights, such as an alphabet.

        Raises:
            RunError: if there is no tensor of bytes with that name.
        """
        try:
            if self.tensors is not None:
                tensor = self.tensors[name]
            else:
                with safe_open(str(self.source), "pt") as weights:
                    tensor = weights.get_tensor(name)
        except KeyError:
            raise RunError(f"{self.source}: expected a network with {name}, got another one") from None
        except (OSError, ValueError, SafetensorError) as error:
            raise RunError(f"{self.source}: {error}") from error
        if tensor.dtype != torch.uint8 or tensor.dim() != 1:
            raise RunError(f"{self.source}: {name}: expected a list of bytes, got {tensor.dtype}")
        return bytes(tensor.tolist())

    def load_into(self, make: Callable[[], Network]) -> Network:
        """Makes a network with these weights, in evaluation mode.

        Its shapes are compared with those of the weights before memory is allocated: a run may come
        from anywhere, and its options need not be those of its weights.

        Raises:
            WeightsError: if the weights are not those of such a network.
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
    """Finds the weights of a run: if it has ended, the best or the last ones.

    Otherwise those of the newest checkpoint, where the best ones are preferred. Damaged files are
    skipped with a warning.

    Raises:
        RunError: if there are no weights yet.
        WeightsError: if the model of a run that has ended is damaged and there is no checkpoint.
        CheckpointError: if no checkpoint can be read.
    """
    summary, damage, checkpoint = run.summary(), None, None
    if summary is not None and run.model.exists():
        try:
            check_weights_file(run.model, summary.get("model"))
        except WeightsError as error:
            damage = error
        else:
            return StoredWeights(run.model)
    try:
        checkpoint = load_newest(run.checkpoints, run.fingerprint())
    except CheckpointError as error:
        if damage is not None or not run.model.exists():
            raise
        _log.warning("%s; using %s", error, run.model)
    if damage is not None:
        if checkpoint is None:
            raise damage
        _log.warning("%s; using a checkpoint", damage)
    if checkpoint is not None:
        best = select_prefix(checkpoint.tensors, BEST)
        # Older versions kept the best weights in a separate file.
        if not best and checkpoint.state.get("best") and _is_intact(run.old_best):
            return StoredWeights(run.old_best)
        return StoredWeights(run.checkpoints, best or select_prefix(checkpoint.tensors, NETWORK))
    for path in (run.model, run.old_best):
        if path.exists():
            return StoredWeights(path)
    raise RunError(f"{run.path}: expected a trained network, got no checkpoint yet")


def _is_intact(path: Path) -> bool:
    try:
        check_weights_file(path)
    except WeightsError as error:
        _log.warning("%s; using the last weights instead of the best", error)
        return False
    return True


def load(run: RunDir, data: Path | None = None) -> Trained:
    """Loads the trained network of a run, with its options and its problem.

    Args:
        run: the directory of the run.
        data: the directory of data sets.

    Raises:
        RunError: if there are no weights yet, or the data is not what the network was trained on.
        WeightsError: if the weights are not those of such a network.
        CheckpointError: if no checkpoint can be read.
    """
    experiment, options = record_and_options(run)
    problem = experiment.make_problem(options, data)
    trained_on = run.config().get("data", {})
    changed = [name for name, sha256 in problem.data().items() if trained_on.get(name) != sha256]
    if changed:
        names = ", ".join(changed)
        raise RunError(f"{run.path}: expected the data of its training, got others: {names}")
    check_memory(options, SAMPLES_AT_ONCE)
    return Trained(options, problem, stored_weights(run).load_into(problem.network))


def load_network(run: RunDir) -> nn.Module:
    """Loads the trained network of a run without its data, by the function that its record names.

    Raises:
        RunError: if there are no weights yet.
        WeightsError: if the weights are not those of such a network.
        CheckpointError: if no checkpoint can be read.
    """
    experiment, _ = record_and_options(run)
    network: nn.Module = import_name(experiment.load)(run)
    return network


def load_from_options(run: RunDir) -> nn.Module:
    """Loads a network that is determined by the options of its run. Raises as :func:`load_network`."""
    experiment, options = record_and_options(run)
    return stored_weights(run).load_into(experiment.make_problem(options).network)
