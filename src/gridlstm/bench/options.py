"""The options of each benchmark. No PyTorch here, so that help comes fast."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gridlstm.fields import Threads, check_fields, check_types
from gridlstm.ranges import check_number

__all__ = [
    "AllBench",
    "CompareBench",
    "EngineBench",
    "GenerationBench",
    "GrowthBench",
    "SearchBench",
    "TrainBench",
]


@dataclass(frozen=True)
class MeasuredBench:
    """Options of every benchmark that measures something."""

    rounds: int = 7
    """How often everything is measured, in turn; medians and their spread are reported."""
    quick: bool = False
    """Measure small sizes in few rounds, to check that it works; do not quote the results."""
    out: Path = Path("runs/bench.json")
    """The JSON file for the results. Figures are written beside it."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "rounds", least=1)
        if self.out.suffix in (".png", ".svg"):  # A figure would replace the results.
            raise ValueError(f"out: expected a JSON file, got {self.out}")


@dataclass(frozen=True)
class ThreadedBench(MeasuredBench):
    """Options of a benchmark that compares numbers of threads."""

    threads: tuple[Threads, ...] = (1,)
    """Numbers of threads to run with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.threads:
            raise ValueError("threads: expected at least one number, got none")
        for count in self.threads:
            check_number("threads", count, least=1)


@dataclass(frozen=True)
class EngineBench(ThreadedBench):
    """Time the engines next to their matrix products, a plain loop and torch.nn.LSTM.

    All are timed in turn with the limit of the machine, the rate of a large product, in one process,
    and compared as ratios: on a shared machine, times of different runs cannot be compared. Nothing is
    timed unless all agree with the reference engine. The memory of training steps is measured, too.
    """

    cases: tuple[str, ...] = ()
    """The names of the cases to run. Default: all."""
    patience: float = 300
    """After this many seconds, start no further round of a case, and only main contenders of two."""
    bfloat16: bool = False
    """Also time bfloat16 on processors without instructions for it, where it is many times slower."""
    out: Path = Path("runs/bench-engine.json")
    """The JSON file for the results. A figure is written beside it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "patience", least=0)


@dataclass(frozen=True)
class TrainBench(ThreadedBench):
    """Time whole training steps of the experiments, split into their parts.

    A step is timed in turn with its own matrix products alone, and with the limit of the machine: the
    rate of a large product.
    """

    experiments: tuple[str, ...] = ()
    """The names of the experiments. Default: all."""
    presets: tuple[Literal["smoke", "laptop", "paper"], ...] = ("laptop", "paper")
    """The presets of each experiment."""
    optimizers: tuple[Literal["adam", "muon", "adagrad", "sgd"], ...] = ()
    """Optimisers to use. Default: that of the preset."""
    hidden: int | None = None
    """The hidden size. Default: that of the preset."""
    bfloat16: bool = False
    """Compute matrix products in bfloat16."""
    patience: float = 60
    """Start no further round of a step after this many seconds. There are at least two rounds."""
    data: Path | None = None
    """The directory of data sets. Default: $GRIDLSTM_DATA. Missing files are downloaded."""
    out: Path = Path("runs/bench-train.json")
    """The JSON file for the results."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "patience", least=0)
        if self.hidden is not None:
            check_fields(self, "hidden", least=1)


@dataclass(frozen=True)
class GrowthBench(MeasuredBench):
    """Measure time and peak memory against time steps, depth, batch and hidden size."""

    threads: Threads = 1
    """The number of threads to run with."""
    out: Path = Path("runs/bench-growth.json")
    """The JSON file for the results. A figure is written beside it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "threads", least=1)


@dataclass(frozen=True)
class GenerationBench(MeasuredBench):
    """Measure how many characters per second are generated on one thread."""

    out: Path = Path("runs/bench-generation.json")
    """The JSON file for the results."""


@dataclass(frozen=True)
class SearchBench(ThreadedBench):
    """Time batched, incremental beam search with a Reencoder, next to simpler ways."""

    patience: float = 300
    """After this many seconds, start no further round, and no simpler way in the second round."""
    out: Path = Path("runs/bench-search.json")
    """The JSON file for the results."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "patience", least=0)


@dataclass(frozen=True)
class AllBench(ThreadedBench):
    """Measure engine, training steps, beam search and generation in one run, and compare with targets.

    Writes one file. Takes more than half an hour on two idle cores; nothing else should run.
    """

    rounds: int = 5
    """How often everything is measured, in turn; medians and their spread are reported."""
    patience: float = 30
    """After this many seconds, start no further round of a case, and only main contenders of two."""
    threads: tuple[Threads, ...] = (1, 2)
    """Numbers of threads to run with."""
    cases: tuple[str, ...] = ()
    """The names of the engine's cases. Default: all."""
    data: Path | None = None
    """The directory of data sets. Default: $GRIDLSTM_DATA. Missing files are downloaded."""
    out: Path = Path("runs/bench.json")
    """The JSON file for the results. A figure is written beside it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "patience", least=0)


@dataclass(frozen=True)
class CompareBench:
    """Compare two result files, case by case: all benchmarks that both contain."""

    old: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OLD")]
    """The old result file."""
    new: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="NEW")]
    """The new result file."""

    def __post_init__(self) -> None:
        check_types(self)
