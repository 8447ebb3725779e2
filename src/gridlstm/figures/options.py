"""The options that all figures share. No Matplotlib here."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gridlstm.command import RunPath, RunPaths
from gridlstm.fields import check_types

__all__ = ["CurveOptions", "FigureOptions", "RunFigure", "RunsFigure"]


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """Where a figure is written.

    Attributes:
        kind: the kind of figure, as on the command line.
    """

    kind: ClassVar[str]

    out: Path | None = None
    """The file to write, as PNG and SVG; a suffix is ignored.
    Default: in the directory of the (first) run, named after the kind of figure."""

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def folder(self) -> Path:
        """The directory of the run, or of the first run."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class RunFigure(FigureOptions):
    """A figure of one run."""

    run: RunPath
    """The run's directory."""

    @property
    def folder(self) -> Path:
        """The directory of the run."""
        return self.run


@dataclass(frozen=True, kw_only=True)
class RunsFigure(FigureOptions):
    """A figure that compares runs."""

    runs: RunPaths
    """The directories of the runs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.runs:
            raise ValueError("RUN: expected the directory of at least one run, got none")

    @property
    def folder(self) -> Path:
        """The directory of the first run."""
        return self.runs[0]


@dataclass(frozen=True, kw_only=True)
class CurveOptions(RunsFigure):
    """Draw learning curves: the measurement of an experiment against samples (as in Figure 4)."""

    kind: ClassVar[str] = "curve"
