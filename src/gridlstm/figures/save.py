"""Figures as files."""

from pathlib import Path

from matplotlib.figure import Figure

from gridlstm.files import atomic_write

__all__ = ["save_figure"]


def save_figure(figure: Figure, out: Path) -> list[Path]:
    """Writes a figure as PNG and as SVG, each whole or not at all."""
    paths = [out.parent / f"{out.name.removesuffix(out.suffix)}{suffix}" for suffix in (".png", ".svg")]
    for path in paths:
        # Without a date, the same runs give the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        with atomic_write(path) as beside:
            figure.savefig(beside, dpi=120, format=path.suffix[1:], metadata=metadata)
    return paths
