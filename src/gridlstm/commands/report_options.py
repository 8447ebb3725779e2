"""The options of ``gridlstm report`` and ``gridlstm watch``. No PyTorch here."""

from dataclasses import dataclass
from pathlib import Path

from gridlstm.command import RunPath, RunPaths
from gridlstm.fields import check_fields, check_types

__all__ = ["PAGE", "ReportOptions", "WatchOptions"]

PAGE = "report.html"


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Write a page about runs: options, curves, tables, samples, environment; works offline."""

    runs: RunPaths
    """The directories of runs, of sweeps, or of figures that gridlstm reproduce made."""
    out: Path | None = None
    """The file to write. Default: report.html in the (first) directory."""
    open: bool = False
    """Open the page in the browser."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.runs:
            raise ValueError("RUN: expected the directory of at least one run or sweep, got none")

    @property
    def page(self) -> Path:
        """The file to write."""
        return self.out or self.runs[0] / PAGE


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """Follow a run or a sweep in progress: its progress here, and its report in a browser."""

    run: RunPath
    """The directory of a run or of a sweep, which need not exist yet."""
    out: Path | None = None
    """The page to write again and again. Default: report.html in the directory."""
    open: bool = False
    """Open the page in the browser."""
    every: float = 5.0
    """Seconds between two looks."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "every", least=0.1)

    @property
    def page(self) -> Path:
        """The file to write."""
        return self.out or self.run / PAGE
