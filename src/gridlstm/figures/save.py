"""Writes figures to files."""

import sys
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from gridlstm.errors import one_line
from gridlstm.figures.options import FigureOptions
from gridlstm.files import atomic_write

__all__ = ["save_figure", "write_figure"]


def write_figure(figure: Figure, options: FigureOptions) -> None:
    """Writes a figure to the path in the options, and prints the names of its files."""
    for path in save_figure(figure, options.out or options.folder / options.kind):
        sys.stdout.write(f"{one_line(path)}\n")


def save_figure(figure: Figure, out: Path) -> list[Path]:
    """Writes a figure as PNG and SVG, each atomically."""
    paths = [out.parent / f"{out.name.removesuffix(out.suffix)}{suffix}" for suffix in (".png", ".svg")]
    for path in paths:
        # Without a date and with fixed names of elements, the same runs make the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        with atomic_write(path) as temporary, rc_context({"svg.hashsalt": "gridlstm"}):
            figure.savefig(temporary, dpi=120, format=path.suffix[1:], metadata=metadata)
    return paths
