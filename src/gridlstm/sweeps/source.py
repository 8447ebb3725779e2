"""Plans from files: TOML, or the directory of a sweep. No PyTorch here."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridlstm.experiments.registry import find_experiment, flat, from_flat
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.plan import SweepPlan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["read_plan", "read_toml"]

KEYS = ("experiment", "preset", "options", "over", "test_samples")


def read_plan(path: Path) -> SweepPlan:
    """The plan of a sweep's directory, or of a TOML file.

    Raises:
        ExpectedError: if the directory is not that of a sweep.
        ValueError: if the file does not describe a plan.
        OSError: if it cannot be read.
    """
    if path.is_dir():
        return SweepDir.open(path).plan
    try:
        return _make_plan(read_toml(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        ValueError: if it is not TOML.
        OSError: if it cannot be read.
    """
    return tomllib.loads(path.read_text())


def _make_plan(described: Mapping[str, Any]) -> SweepPlan:
    unknown = [name for name in described if name not in KEYS]
    if unknown:
        raise ValueError(f"expected {', '.join(KEYS)}; got {', '.join(unknown)}")
    experiment = find_experiment(described.get("experiment"))
    preset = described.get("preset", "laptop")
    if preset not in [*experiment.presets]:  # It may be a list.
        raise ValueError(f"preset: expected one of {', '.join(experiment.presets)}, got {preset!r}")
    changed, over = described.get("options", {}), described.get("over", [])
    if not isinstance(changed, dict):
        raise ValueError(f"options: expected a table, got {changed!r}")
    grids = over if isinstance(over, list) else [over]
    if not all(isinstance(grid, dict) for grid in grids):
        raise ValueError(f"over: expected a table of lists of values, got {over!r}")
    base = {**flat(experiment.presets[preset]), **{k.replace("-", "_"): v for k, v in changed.items()}}
    over = [{name.replace("-", "_"): values for name, values in grid.items()} for grid in grids]
    return SweepPlan(experiment, from_flat(experiment, base), over, described.get("test_samples"))
