"""Figures as files."""

from pathlib import Path

from matplotlib.figure import Figure

__all__ = ["save_figure"]


def save_figure(figure: Figure, out: Path) -> list[Path]:
    """Writes a figure as PNG and as SVG, each whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    paths = [out.parent / f"{out.name.removesuffix(out.suffix)}{suffix}" for suffix in (".png", ".svg")]
    for path in paths:
        beside = path.with_name(f".{path.name}")
        # Without a date, the same runs give the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(beside, dpi=120, format=path.suffix[1:], metadata=metadata)
        beside.replace(path)
    return paths
