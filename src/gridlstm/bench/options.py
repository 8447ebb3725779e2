"""What can be asked of the benchmarks. No PyTorch here, so that help comes fast."""

from dataclasses import dataclass
from pathlib import Path

from gridlstm.fields import Threads, check_types

__all__ = ["Bench"]


@dataclass(frozen=True)
class Bench:
    """Time the engines beside their matrix products, a plain loop and torch.nn.LSTM.

    Everything is timed in one run, interleaved and repeated, and compared as ratios: on a shared
    machine nothing else can be trusted. Nothing is timed unless the fast engine equals the reference.
    """

    cases: tuple[str, ...] = ()
    """Which cases to run, by name. Default: all."""
    threads: tuple[Threads, ...] = (1,)
    """Numbers of threads to run with, each beside the others."""
    rounds: int = 7
    """How often each contender is timed; the median counts."""
    patience: float = 300
    """After this many seconds of a case, run no further rounds but a second one."""
    quick: bool = False
    """A few rounds with an eighth of the samples: to see that it works, not to quote."""
    bfloat16: bool = False
    """Also time bfloat16 on a processor without units for it, where it is many times slower."""
    growth: bool = False
    """Instead, measure time and peak memory against time steps, depth, batch and hidden size."""
    generation: bool = False
    """Instead, measure how many characters a second are generated on one thread."""
    search: bool = False
    """Instead, time beam search of a Reencoder, batched and incremental, beside simpler ways."""
    compare: tuple[Path, Path] | None = None
    """Instead, compare two result files: the old one and the new one."""
    out: Path | None = None
    """Where results go: a JSON file, and a plot beside it. Unless given, below runs/."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.threads:
            raise ValueError("threads: expected at least one number, got none")
        for name, value in (("rounds", self.rounds), *(("threads", count) for count in self.threads)):
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
