"""What can be asked of the commands. No PyTorch here, so that help comes fast."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import tyro

from gridlstm.experiments.options import Experiment

__all__ = ["Collect", "Eval", "List", "Plot", "Preset", "Run", "Train"]

Preset = Literal["smoke", "laptop", "paper"]


@dataclass(frozen=True)
class Run:
    """Where and how a run is made."""

    preset: Preset = "laptop"
    """Where the other options start from: smoke takes seconds, laptop up to an hour, paper has the
    settings of the paper."""
    out: Path | None = None
    """The run's directory. Unless given, below runs/ and named after what sets it apart."""
    resume: bool = False
    """Go on from the last checkpoint, if there is one."""
    threads: int | None = None
    """Threads of a process; PyTorch's choice unless given. Results are equal bit for bit only for equal
    numbers."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where to compute."""
    show: int = 0
    """Print so many samples in the paper's notation, and do nothing else."""

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads: expected at least 1, got {self.threads}")
        if self.show < 0:
            raise ValueError(f"show: expected at least 0, got {self.show}")


Chosen = TypeVar("Chosen", bound=Experiment)


@dataclass(frozen=True)
class Train(Generic[Chosen]):
    """An experiment, and how a run of it is made."""

    experiment: Chosen
    run: Run = field(default_factory=Run)


Runs = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]


@dataclass(frozen=True)
class Eval:
    """Measure the network of a run on samples that it has never seen."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run's directory."""
    samples: int = 1000
    """How many held-out samples to take, none of which an evaluation in training has looked at."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples: expected at least 1, got {self.samples}")


@dataclass(frozen=True)
class Plot:
    """Draw a figure of runs, as PNG and SVG."""

    runs: Runs
    """Directories of runs."""
    kind: Literal["curve", "depth", "solutions", "memories"] = "curve"
    """curve: accuracy against samples (Figure 4). depth: samples to reach an accuracy against layers
    (Figure 5). solutions: solved parities against layers (Figure 9). memories: the memory vectors of a
    1-LSTM through its layers, of its counting neurons (Figure 10)."""
    out: Path | None = None
    """Where to; in the first run's directory unless given. The suffix does not matter."""
    thresholds: tuple[float, ...] = (0.99, 0.8, 0.5)
    """depth: the accuracies to reach."""
    input: str | None = None
    """memories: the bits to run on; a fifth of zeros and then ones unless given, as in the paper."""
    neurons: int = 20
    """memories: how many counting neurons to show."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("RUN: expected the directory of at least one run, got none")
        if self.neurons < 1:
            raise ValueError(f"neurons: expected at least 1, got {self.neurons}")
        for threshold in self.thresholds:
            if not 0 < threshold <= 1:
                raise ValueError(f"thresholds: expected more than 0 and at most 1, got {threshold}")


@dataclass(frozen=True)
class List:
    """List the experiments and their presets, and the runs so far."""

    folder: Path = Path("runs")
    """Where to look for runs."""


@dataclass(frozen=True)
class Collect:
    """Put what is worth keeping of runs into one small file: options, machine, curve, outcome."""

    runs: Runs
    """Directories of runs."""
    out: Path = Path("results/runs.json")
    """Where to."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("RUN: expected the directory of at least one run, got none")
