"""The record of an experiment: what the rest of the program knows about it. No PyTorch here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from gridlstm.command import Command
from gridlstm.training.settings import Training

if TYPE_CHECKING:
    from gridlstm.training.problem import Problem

__all__ = [
    "EvalOptions",
    "Experiment",
    "Measure",
    "Options",
    "OptionsType",
    "PaperFigure",
    "RunPlan",
    "Scale",
    "import_name",
]


class Options:
    """The options of an experiment: the base of a frozen dataclass that has at least these fields.

    Attributes:
        network: which network is trained.
        layers: of depth.
        hidden: the length of hidden and memory vectors.
        training: how to train.
    """

    network: str
    layers: int
    hidden: int
    training: Training

    @property
    def size(self) -> int | str:
        """The size of the task, or the name of its data. It is part of a run's name."""
        raise NotImplementedError

    @property
    def positions(self) -> int:
        """Positions of a sample: blocks per layer. At least 1; more may depend on the data."""
        return 1

    @property
    def stored_layers(self) -> int:
        """Layers that keep a vector for each position until the backward pass."""
        return self.layers


@dataclass(frozen=True)
class Measure:
    """The measurement that a run is judged by.

    Attributes:
        name: its name in ``metrics.jsonl``.
        label: the label of its axis in a figure.
        lower_is_better: whether small values are good.
        scale: the scale of its axis.
        percent: whether to show values as percentages.
    """

    name: str
    label: str
    lower_is_better: bool = True
    scale: Literal["linear", "log"] = "linear"
    percent: bool = False


Scale = Literal["smoke", "laptop", "paper"]
"""How much of a figure is reproduced: seconds to see that it works, hours, or as in the paper."""


class RunPlan(NamedTuple):
    """Runs that differ in some options.

    Attributes:
        options: those of all runs, but for the ones that vary.
        over: grids; each has values by option, and there is a run for each combination of them.
    """

    options: Any
    over: Sequence[Mapping[str, Sequence[Any]]]


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper, and how it is reproduced.

    Attributes:
        about: what it shows.
        draw: makes the figure from the runs, as ``"package.module:function"``.
        plans: the runs that it needs.
    """

    about: str
    draw: str
    plans: Mapping[Scale, RunPlan]


@dataclass(frozen=True)
class EvalOptions:
    """Options of a test, apart from the number of samples."""

    @property
    def result(self) -> str:
        """The name of the file of measurements in the run's directory, without suffix."""
        return "evaluation"


def _thousands(options: Any) -> float:
    return 1000.0


OptionsType = TypeVar("OptionsType", bound=Options)


@dataclass(frozen=True)
class Experiment(Generic[OptionsType]):
    """An experiment of the paper.

    Names of what needs PyTorch or Matplotlib are strings, ``"package.module:name"``, imported at use.

    Attributes:
        name: the name on the command line.
        options: the dataclass of its options. The docstring describes the experiment.
        presets: options by name: ``smoke``, ``laptop``, ``paper``, and optionally ``small``.
        problem: makes the :class:`~gridlstm.training.problem.Problem` from options and the directory
            of data sets.
        measure: the measurement that a run is judged by.
        load: loads the trained network from a :class:`~gridlstm.training.rundir.RunDir`, without the
            data that it was trained on. Default: the network is that of the problem, which needs none.
        table: makes the table of results from runs that ``gridlstm collect`` wrote.
        networks: what the figures call each network.
        next_command: a command to suggest after training: arguments, ``  # `` and what it does.
        unit: the unit of the size of the task, as ``"bits"``.
        samples_unit: the label of the horizontal axis of a learning curve, and a function of the
            options that returns the number of samples per unit of that axis.
        eval_options: the dataclass of further options of ``gridlstm eval``.
        commands: the commands of this experiment.
        figures: the kinds of ``gridlstm plot`` of this experiment.
        paper_figures: the figures of the paper that ``gridlstm reproduce`` makes, by number.
    """

    name: str
    options: type[OptionsType]
    presets: Mapping[str, OptionsType]
    problem: str
    measure: Measure
    table: str
    load: str = "gridlstm.experiments.trained:load_from_options"
    networks: Mapping[str, str] = field(default_factory=dict)
    next_command: str = "generate --prompt ROMEO:  # write like Shakespeare"
    unit: str = ""
    samples_unit: tuple[str, Callable[[OptionsType], float]] = ("samples, thousands", _thousands)
    eval_options: type[EvalOptions] = EvalOptions
    commands: Mapping[str, Command] = field(default_factory=dict)
    figures: Mapping[str, Command] = field(default_factory=dict)
    paper_figures: Mapping[str, PaperFigure] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The description of the experiment, in one line."""
        return (self.options.__doc__ or "").splitlines()[0]

    def make_problem(self, options: OptionsType, data: Path | None = None) -> "Problem":
        """Makes the problem to train on.

        Args:
            options: the options of this experiment.
            data: the directory of data sets. Default: ``$GRIDLSTM_DATA``; missing files are downloaded.

        Raises:
            ValueError: if the data is missing, damaged or too small.
        """
        problem: Problem = import_name(self.problem)(options, data)
        return problem

    def network_title(self, network: str) -> str:
        """What figures call a network."""
        return self.networks.get(network, network.replace("-", " "))

    def run_name(self, options: OptionsType) -> str:
        """The default name of a run."""
        return (
            f"{self.name}-{options.size}-{options.network}-{options.layers}x{options.hidden}"
            f"-seed{options.training.seed}"
        )

    def describe(self, options: OptionsType) -> str:
        """The task and the network, in one line."""
        task = f"{options.size} {self.unit}".strip()
        return f"{task}, {options.network}, {options.layers} layers of {options.hidden}"


def import_name(place: str) -> Any:
    """Imports what ``"package.module:name"`` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
