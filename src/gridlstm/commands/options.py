"""What can be asked of the commands. No PyTorch here, so that help comes fast."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import tyro

from gridlstm.experiments.options import Experiment
from gridlstm.fields import Threads, check_types

__all__ = [
    "Classify",
    "Collect",
    "Eval",
    "Generate",
    "List",
    "Plot",
    "Preset",
    "Run",
    "Score",
    "Train",
    "Translate",
]

Preset = Literal["smoke", "small", "laptop", "paper"]

Data = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]


@dataclass(frozen=True)
class Run:
    """Where and how a run is made."""

    preset: Preset = "laptop"
    """Where the other options start from: smoke takes seconds, small (where there is one) minutes with
    data that come with the package, laptop an hour or two, paper has the settings of the paper."""
    out: Path | None = None
    """The run's directory. Default: below runs/, named after the options."""
    resume: bool = False
    """Continue from the last checkpoint, if there is one."""
    overwrite: bool = False
    """Replace an existing run."""
    threads: Threads | None = None
    """Threads per process. Default: PyTorch's choice. Results are equal bit for bit only for equal
    numbers."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where to compute."""
    data: Data = None
    """The directory of data sets. Default: $GRIDLSTM_DATA. What is not there is downloaded."""
    show: int = 0
    """Print this many samples in the paper's notation and exit."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads: expected at least 1, got {self.threads}")
        if self.resume and self.overwrite:
            raise ValueError("overwrite: cannot be combined with --resume")
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

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's directory."""
    samples: int | None = None
    """How many held-out samples to take (characters of a text), none of which training has looked at.
    Default: 1000 of an algorithmic task, otherwise all."""
    streams: int = 1
    """characters: read the text as this many pieces side by side, which is faster; the paper
    reads one."""
    ensemble: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN")] = ()
    """translation: further runs, whose probabilities are averaged with those of the first."""
    beam: int | None = None
    """translation: candidates that are followed at once. Default: as in the run."""
    data: Data = None
    """The directory of data sets, as for train."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("samples", "streams", "beam"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")


Model = Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]


@dataclass(frozen=True)
class Generate:
    """Write text, character by character, with a network trained on characters."""

    run: Model = None
    """The run's directory. Default: the network that comes with the package."""
    prompt: str = ""
    """What the text begins with; it is written, too."""
    length: int = 1000
    """How many characters to write after the prompt; 0 goes on until it is stopped."""
    temperature: float = 1.0
    """Below 1 likely characters become likelier; 0 takes the likeliest."""
    top_k: int | None = None
    """Choose among only this many of the likeliest characters. Default: all."""
    seed: int = 0
    """The same seed writes the same text."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.length < 0:
            raise ValueError(f"length: expected at least 0, got {self.length}")
        if not (self.temperature >= 0 and self.temperature < float("inf")):
            raise ValueError(f"temperature: expected at least 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k: expected at least 1, got {self.top_k}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed: expected 0 to {2**31 - 1}, got {self.seed}")


@dataclass(frozen=True)
class Score:
    """Print bits per character of a file, given a network trained on characters."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's directory."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """Any file. Bytes that the network has never met are left out and counted."""
    streams: int = 1
    """Read it as this many pieces side by side, which is faster."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.streams < 1:
            raise ValueError(f"streams: expected at least 1, got {self.streams}")


Pictures = Annotated[
    tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(name="image", metavar="[RUN] IMAGE...")
]


@dataclass(frozen=True)
class Classify:
    """Print which digit is on a picture, given a network trained on images."""

    paths: Pictures
    """Pictures of one digit each, dark on light or light on dark, in any usual format. Before them, the
    run's directory. Default: the network that comes with the package."""

    def __post_init__(self) -> None:
        if not self.images:
            raise ValueError("IMAGE: expected at least one picture, got none")

    @property
    def run(self) -> Path | None:
        """The run, if one is named: the first path, if it is a directory."""
        return next((path for path in self.paths[:1] if path.is_dir()), None)

    @property
    def images(self) -> tuple[Path, ...]:
        """The pictures."""
        return self.paths if self.run is None else self.paths[1:]


@dataclass(frozen=True)
class Translate:
    """Translate lines from standard input to standard output; an empty line stays empty.

    The probabilities of several runs are averaged.
    """

    runs: Runs = ()
    """Directories of runs of translation, for the same languages and words. Default: the network that
    comes with the package, from Chinese to English."""
    beam: int = 20
    """Candidates of a sentence that are followed at once; 1 takes the likeliest word each time."""
    longest: int = 400
    """Refuse lines of more words than this."""
    threads: Threads | None = None
    """Threads to use. Default: PyTorch's choice."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("beam", "longest", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")


@dataclass(frozen=True)
class Plot:
    """Draw a figure of runs, as PNG and SVG."""

    runs: Runs
    """Directories of runs."""
    kind: Literal[
        "curve",
        "depth",
        "solutions",
        "memories",
        "alignment",
        "confusion",
        "mistakes",
        "activations",
    ] = "curve"
    """curve: accuracy against samples (Figure 4), bits per character, perplexity or error. depth:
    samples to reach an accuracy against layers (Figure 5). solutions: solved parities against layers
    (Figure 9). memories: the memory vectors of a 1-LSTM through its layers, of its counting neurons
    (Figure 10). alignment: how strongly each block of a Reencoder changes memory, for two sentences.
    confusion: digits and what they were taken for. mistakes: the misclassified test digits.
    activations: the vectors over one image, layer by layer."""
    out: Path | None = None
    """Where to write it. Default: into the first run's directory. The suffix does not matter."""
    thresholds: tuple[float, ...] = (0.99, 0.8, 0.5)
    """depth: the accuracies to reach."""
    input: str | None = None
    """memories: the bits to run on. Default: a fifth of zeros and then ones, as in the paper.
    activations: the number of a test image, or a picture (default: 0)."""
    neurons: int = 20
    """memories: how many counting neurons to show."""
    source: str | None = None
    """alignment: the sentence."""
    target: str | None = None
    """alignment: its translation. Default: that of the network."""
    data: Data = None
    """confusion, mistakes, activations: the directory of data sets, as for train."""

    def __post_init__(self) -> None:
        check_types(self)
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
