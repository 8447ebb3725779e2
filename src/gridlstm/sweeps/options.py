"""The options of ``gridlstm sweep``. No PyTorch here, so that help is fast."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, Literal

from tyro.conf import Suppress

from gridlstm.command import DataFolder
from gridlstm.experiments.record import OptionsType
from gridlstm.fields import check_fields, check_types

__all__ = ["Launch", "Sweep", "SweepOptions"]


@dataclass(frozen=True)
class Launch:
    """Where and how the cells of a sweep are run. Two workers may differ in it."""

    workers: int | None = None
    """Cells at a time, each with one thread. Default: the number of cores."""
    launcher: Literal["local", "slurm", "ray"] = "local"
    """Where workers run: on this machine, as jobs of SLURM, or on a Ray cluster."""
    slurm: tuple[str, ...] = ()
    """slurm: parameters of its jobs, as submitit calls them: slurm_partition=long timeout_min=600."""
    retry_failed: bool = False
    """Try cells that failed again."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where to compute."""
    data: DataFolder = None
    """The directory of data sets, as for train."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "workers", least=1, optional=True)
        for word in self.slurm:
            if not all(word.partition("=")):
                raise ValueError(f"slurm: expected NAME=VALUE, got {word!r}")
        if self.slurm and self.launcher != "slurm":
            raise ValueError(f"slurm: expected --launcher slurm, got {self.launcher}")

    @property
    def worker_count(self) -> int:
        """Cells at a time."""
        if self.workers is not None:
            return self.workers
        usable = getattr(os, "sched_getaffinity", None)  # Not on every system.
        return len(usable(0)) if usable else os.cpu_count() or 1


@dataclass(frozen=True)
class SweepOptions(Launch):
    """What to vary, and where."""

    preset: Literal["smoke", "small", "laptop", "paper"] = "laptop"
    """Where the other options start from, as for train."""
    over: tuple[str, ...] = ()
    """Options to vary and their values, as layers=1,2,4 seed=0,1,2: all combinations are trained."""
    test_samples: int | None = None
    """How many held-out samples to test each network on, as eval --samples."""
    out: Path | None = None
    """The directory of the sweep. Default: below sweeps/, named after the options. If the sweep exists,
    it is continued."""
    status: bool = False
    """Print how far the cells are, and start nothing."""
    source: Annotated[Path | None, Suppress] = None
    """The file or directory that the plan was read from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "test_samples", least=1, optional=True)


@dataclass(frozen=True)
class Sweep(Generic[OptionsType]):
    """Train all combinations of values of some options, on this machine or on many."""

    experiment: OptionsType
    run: SweepOptions = field(default_factory=SweepOptions)
