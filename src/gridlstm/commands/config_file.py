"""Options of ``gridlstm train`` from a file: TOML, or the ``config.json`` of a run. No PyTorch here."""

from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from gridlstm.commands.options import RunOptions, Train
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import find_experiment, flat, from_flat
from gridlstm.sweeps.source import read_toml
from gridlstm.training.run_files import parse_config

__all__ = ["ConfigFile", "read_config"]

PATHS = ("out", "data")
"""Options that are paths; a file has strings."""


class ConfigFile(NamedTuple):
    """The content of a file of options.

    Attributes:
        path: the file.
        experiment: the experiment that the options are for.
        options: those of the experiment, by name.
        run: those of :class:`RunOptions`, by name, without the preset.
        preset: the preset that the options change; ``None`` if the file does not name one.
        complete: whether the file has all options of the experiment, so that no preset matters.
    """

    path: Path
    experiment: Experiment[Any]
    options: Mapping[str, Any]
    run: Mapping[str, Any]
    preset: str | None = None
    complete: bool = False

    def apply(self, defaults: Train[Any]) -> Train[Any]:
        """Replaces defaults by the values of the file.

        Raises:
            ValueError: if a value is impossible.
        """
        try:
            options = from_flat(self.experiment, {**flat(defaults.experiment), **self.options})
            return Train(options, replace(defaults.run, **self.run))
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None


def read_config(path: Path, experiment: Experiment[Any]) -> ConfigFile:
    """Reads a file of options: ``config.json`` of a run if its suffix is ``.json``, otherwise TOML.

    Raises:
        ValueError: if it is of another experiment, or has an unknown option or preset.
        OSError: if it cannot be read.
    """
    try:
        if path.suffix == ".json":
            config = parse_config(path.read_text())
            _check_experiment(config["experiment"], experiment)
            options = flat(from_flat(experiment, config["options"]))
            return ConfigFile(path, experiment, options, {}, complete=True)
        return _parse(path, experiment, read_toml(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _parse(path: Path, experiment: Experiment[Any], content: Mapping[str, Any]) -> ConfigFile:
    # TOML has no null: "None" is written as on the command line.
    values: dict[str, Any] = {
        k.replace("-", "_"): None if v == "None" else v for k, v in content.items()
    }
    _check_experiment(values.pop("experiment", experiment.name), experiment)
    preset = values.pop("preset", None)
    if preset is not None and preset not in [*experiment.presets]:  # It may be a list.
        raise ValueError(f"preset: expected one of {', '.join(experiment.presets)}, got {preset!r}")
    of_run = {field.name for field in fields(RunOptions)} - {"config", "preset"}
    of_experiment = flat(from_flat(experiment, {})).keys()
    for name in sorted(values.keys() - of_run - of_experiment):
        close = get_close_matches(name, [*of_experiment, *of_run], 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"unknown option {name}{hint}")
    run = {name: value for name, value in values.items() if name in of_run}
    run |= {name: Path(run[name]) for name in PATHS if isinstance(run.get(name), str)}
    options = {name: value for name, value in values.items() if name in of_experiment}
    return ConfigFile(path, experiment, options, run, preset)


def _check_experiment(name: object, experiment: Experiment[Any]) -> None:
    if find_experiment(name) is not experiment:
        raise ValueError(f"expected options of {experiment.name}, got those of {name}")
