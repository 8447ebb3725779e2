"""The plan of a sweep: an experiment, and the values of options that vary. No PyTorch here."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from typing import Any, NamedTuple, get_type_hints

from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import flat, from_flat
from gridlstm.fields import check_type
from gridlstm.training.settings import Training

__all__ = ["SweepCell", "SweepPlan", "parse_over"]

LONGEST = 120
"""Characters of a cell's name. It names files, whose names are limited to 255 bytes."""


class SweepCell(NamedTuple):
    """One run of a sweep.

    Attributes:
        name: of its directory, as ``layers=2,seed=0``.
        varied: the values of the options that vary.
        options: all options of the experiment.
    """

    name: str
    varied: Mapping[str, Any]
    options: Any


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep runs.

    Attributes:
        experiment: of all cells.
        options: those of all cells, but for the ones that vary.
        over: grids; each has values by option, and its cells are all combinations of them. A cell that
            is in several grids is run once.
        test_samples: how many held-out samples each network is tested on. Default: as for
            ``gridlstm eval``.
        cells: in the order of the grids, the last option changing fastest.

    Raises:
        ValueError: if an option is unknown, or a value is of the wrong type or impossible.
    """

    experiment: Experiment[Any]
    options: Any
    over: Sequence[Mapping[str, Sequence[Any]]]
    test_samples: int | None = None
    cells: Mapping[str, SweepCell] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.over or not all(self.over):
            raise ValueError("over: expected options to vary, as layers=1,2,4 seed=0,1; got none")
        for name, values in ((name, values) for grid in self.over for name, values in grid.items()):
            _check_values(self.experiment, name, values)
        cells = {cell.name: cell for grid in self.over for cell in self._cells_of(grid)}
        object.__setattr__(self, "cells", cells)

    def _cells_of(self, grid: Mapping[str, Sequence[Any]]) -> Iterator[SweepCell]:
        base = flat(self.options)
        for values in product(*grid.values()):
            varied = dict(zip(grid, values, strict=True))
            name = _cell_name(varied)
            try:
                yield SweepCell(name, varied, from_flat(self.experiment, {**base, **varied}))
            except ValueError as error:
                raise ValueError(f"over: {name}: {error}") from None

    @property
    def name(self) -> str:
        """The default name of the sweep's directory."""
        options = "-".join(dict.fromkeys(name for grid in self.over for name in grid))
        digest = hashlib.sha256(json.dumps(self.described(), sort_keys=True).encode()).hexdigest()
        return f"{self.experiment.name}-{options[:LONGEST]}-{digest[:8]}"

    def described(self) -> dict[str, Any]:
        """The plan as it is written to a file."""
        content = {
            "experiment": self.experiment.name,
            "options": flat(self.options),
            "over": [dict(grid) for grid in self.over],
            "test_samples": self.test_samples,
        }
        as_in_file: dict[str, Any] = json.loads(json.dumps(content))
        return as_in_file


def parse_over(experiment: Experiment[Any], words: Sequence[str]) -> dict[str, list[Any]]:
    """A grid from words such as ``layers=1,2,4``.

    Raises:
        ValueError: if a word is anything else, or its option is unknown.

    >>> from gridlstm.experiments.parity import PARITY
    >>> parse_over(PARITY, ["layers=1,2", "network=tied-tanh"])
    {'layers': [1, 2], 'network': ['tied-tanh']}
    """
    grid: dict[str, list[Any]] = {}
    for word in words:
        option, equals, values = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not equals or not values or not name:
            raise ValueError(f"over: expected OPTION=VALUE,VALUE,..., got {word!r}")
        if name in grid:
            raise ValueError(f"over: {name}: expected once, got twice")
        kind = _kind(experiment, name)
        grid[name] = [_parse_value(name, text, kind) for text in values.split(",")]
    return grid


def _parse_value(name: str, text: str, kind: Any) -> Any:
    """The first meaning of a text that is of the option's type."""
    for convert in (_parse_word, int, float):
        with suppress(ValueError):
            value = convert(text)
            check_type(name, value, kind)
            return value
    return text  # Whether the option is a string is checked with all values.


def _parse_word(text: str) -> bool | None:
    words = {"None": None, "True": True, "False": False}
    if text not in words:
        raise ValueError(f"expected one of {', '.join(words)}, got {text!r}")
    return words[text]


def _kind(experiment: Experiment[Any], name: str) -> Any:
    """The annotation of an option."""
    kinds = {
        option: kind
        for owner in (experiment.options, Training)
        for option, kind in get_type_hints(owner, include_extras=True).items()
        if option != "training"
    }
    if name not in kinds:
        close = get_close_matches(name, list(kinds), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"over: expected options of {experiment.name}, got {name!r}{hint}")
    return kinds[name]


def _check_values(experiment: Experiment[Any], name: str, values: Any) -> None:
    kind = _kind(experiment, name)
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise ValueError(f"over: {name}: expected a list of values, got {values!r}")
    try:
        for value in values:
            check_type(name, tuple(value) if isinstance(value, list) else value, kind)
    except ValueError as error:
        raise ValueError(f"over: {error}") from None
    repeated = [value for place, value in enumerate(values) if value in values[:place]]
    if repeated:
        raise ValueError(f"over: {name}: expected different values, got {repeated[0]!r} twice")


def _cell_name(varied: Mapping[str, Any]) -> str:
    """A name that is readable, and different for different values.

    >>> _cell_name({"layers": 2, "rate": 0.001, "text": "my texts/novel.txt"})
    'layers=2,rate=0.001,text=my-texts-novel.txt-c7afc12f'
    """
    name = ",".join(f"{option}={_readable(str(value))}" for option, value in varied.items())
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{_digest(name)}"


def _readable(text: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9.+-]+", "-", text)
    return safe if safe == text else f"{safe[:40]}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
