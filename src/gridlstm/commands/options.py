"""The options of the commands that all experiments share. No PyTorch here, so that help is fast."""

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Generic, Literal

from gridlstm.command import DataFolder, OptionalRun, RunPath, RunPaths
from gridlstm.experiments.record import EvalOptions, Experiment, OptionsType
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.fields import Threads, check_fields, check_types
from gridlstm.training.settings import TrackerName

__all__ = [
    "CollectOptions",
    "Eval",
    "ExportOptions",
    "GalleryOptions",
    "ListOptions",
    "Preset",
    "RunOptions",
    "Train",
]

Preset = Literal["smoke", "small", "laptop", "paper"]


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, other than those of its experiment."""

    preset: Preset = "laptop"
    """The defaults of the other options: smoke takes seconds, small (if there is one) minutes.
    laptop takes an hour or two; paper has the settings of the paper."""
    config: Path | None = None
    """A TOML file of options, or the config.json of a run. Options of the command line win."""
    out: Path | None = None
    """The run's directory. Default: in runs/, named after the options."""
    resume: bool = False
    """Continue from the last checkpoint, if there is one."""
    overwrite: bool = False
    """Replace an existing run."""
    threads: Threads | None = None
    """Threads per process. Default: PyTorch's choice.
    Results are equal bit for bit only for the same number."""
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    """The device to train on; mps is the GPU of a Mac."""
    track: TrackerName | None = None
    """Also send metrics to TensorBoard or to Weights & Biases (offline: WANDB_MODE=offline)."""
    data: DataFolder = None
    """The directory of data sets. Default: $GRIDLSTM_DATA. Missing files are downloaded."""
    show: int = 0
    """Print this many samples in the paper's notation and exit."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "threads", least=1, optional=True)
        check_fields(self, "show", least=0)
        if self.resume and self.overwrite:
            raise ValueError("overwrite: cannot be combined with --resume")


@dataclass(frozen=True)
class Train(Generic[OptionsType]):
    """The options of an experiment and of a run of it."""

    experiment: OptionsType
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class _CommonEval:
    """Test the network of a run on samples that it has never seen."""

    run: RunPath
    """The run's directory."""
    samples: int | None = None
    """How many held-out samples (for a text: characters) to test on.
    Default: 1000 for an algorithmic task, otherwise all."""
    data: DataFolder = None
    """The directory of data sets, as for train."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "samples", least=1, optional=True)

    def options_for(self, experiment: Experiment[Any]) -> EvalOptions:
        """The options of ``eval`` that only this experiment has.

        Raises:
            ValueError: if options of another experiment are set.
        """
        for name, record in _WITH_OPTIONS.items():
            if record is not experiment and getattr(self, name) != record.eval_options():
                options = ", ".join(f"--{option}" for option in vars(getattr(self, name)))
                raise ValueError(f"{options}: expected a run of {name}, got one of {experiment.name}")
        eval_options: EvalOptions = getattr(self, experiment.name, EvalOptions())
        return eval_options


_WITH_OPTIONS: Mapping[str, Experiment[Any]] = {
    name: record for name, record in EXPERIMENTS.items() if record.eval_options is not EvalOptions
}
Eval = make_dataclass(
    "Eval",
    [
        (name, record.eval_options, field(default_factory=record.eval_options))
        for name, record in _WITH_OPTIONS.items()
    ],
    bases=(_CommonEval,),
    namespace={"__doc__": _CommonEval.__doc__},
    frozen=True,
)
"""The options of ``gridlstm eval``: those that all experiments share, and those of each."""


@dataclass(frozen=True)
class ExportOptions:
    """Write a trained network, or any module, as an ONNX file, and verify it with onnxruntime."""

    run: OptionalRun = None
    """The run's directory, the name of a network that comes with the package (characters, images),
    or a folder that gridlstm.hub.save_pretrained has written."""
    module: str | None = None
    """In place of a run, package.module:name of a module, or of a function that returns one."""
    out: Path | None = None
    """The file to write. Default: the name of the run or module, with the suffix .onnx."""
    step: bool = False
    """For a network over sequences: read one element, with the state going in and out."""
    state: bool = False
    """For a network over sequences: start from a state that is given, not from zero."""
    lengths: bool = False
    """For a SequenceGridLSTM or a GridLSTM: read samples of different lengths."""

    def __post_init__(self) -> None:
        check_types(self)
        if (self.run is None) == (self.module is None):
            got = "neither" if self.run is None else "both"
            raise ValueError(f"RUN: expected either a run or --module, got {got}")


@dataclass(frozen=True)
class ListOptions:
    """List the experiments, their presets, and existing runs."""

    folder: Path = Path("runs")
    """The directory to search for runs."""


@dataclass(frozen=True)
class CollectOptions:
    """Write the options, machine, learning curve and results of runs to one small file."""

    runs: RunPaths
    """The directories of the runs."""
    out: Path = Path("results/runs.json")
    """The file to write."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("RUN: expected the directory of at least one run, got none")


@dataclass(frozen=True)
class GalleryOptions:
    """Draw blocks, grids and networks as SVG, and the wavefront as a moving picture."""

    out: Path = Path("gallery")
    """The directory to write to."""
