"""The list of all experiments, the only place that names them. No PyTorch here."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from reprlib import repr as shortened
from typing import Any

from gridlstm.experiments.addition import ADDITION
from gridlstm.experiments.characters import CHARACTERS
from gridlstm.experiments.images import IMAGES
from gridlstm.experiments.memorization import MEMORIZATION
from gridlstm.experiments.parity import PARITY
from gridlstm.experiments.record import Experiment, OptionsType
from gridlstm.experiments.translation import TRANSLATION
from gridlstm.training.settings import Training

__all__ = ["EXPERIMENTS", "experiment_of", "find_experiment", "flat", "from_flat"]

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.name: experiment
    for experiment in (MEMORIZATION, ADDITION, PARITY, CHARACTERS, TRANSLATION, IMAGES)
}


def find_experiment(name: object) -> Experiment[Any]:
    """The experiment of this name.

    Raises:
        ValueError: if there is none.
    """
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise ValueError(f"experiment: expected one of {', '.join(EXPERIMENTS)}, got {shortened(name)}")
    return EXPERIMENTS[name]


def experiment_of(options: Any) -> Experiment[Any]:
    """The experiment that options belong to."""
    return next(e for e in EXPERIMENTS.values() if isinstance(options, e.options))


def flat(options: Any) -> dict[str, Any]:
    """All options of an experiment by name, including those of training."""
    by_name = asdict(options)
    training = by_name.pop("training")
    return {**by_name, **training}


def from_flat(experiment: Experiment[OptionsType], options: Mapping[str, Any]) -> OptionsType:
    """The options of an experiment from what :func:`flat` returned.

    An option that is newer than the run gets its default. So the default of a new option has to be what
    was done before there was such an option.

    Raises:
        ValueError: if an option is unknown or has an impossible value.
    """
    if not isinstance(options, Mapping):
        raise ValueError(f"options: expected options by name, got {shortened(options)}")
    kind: Any = experiment.options
    of_experiment, of_training = ({f.name for f in fields(k)} - {"training"} for k in (kind, Training))
    unknown = ", ".join(sorted(options.keys() - of_experiment - of_training))
    if unknown:
        raise ValueError(f"options: expected those of {experiment.name}, got others: {unknown}")
    # JSON has lists for tuples.
    values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    training = Training(**{key: values[key] for key in of_training & values.keys()})
    in_experiment = {key: values[key] for key in of_experiment & values.keys()}
    complete: OptionsType = kind(**in_experiment, training=training)
    return complete
