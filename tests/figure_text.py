"""What is written in a figure: titles, labels of axes, legends and ticks."""

import re
from pathlib import Path

import matplotlib.image


def figure_text(path: Path) -> list[str]:
    """The text of a figure that a command wrote as SVG and PNG; the two are of one size.

    Matplotlib draws the letters as outlines and puts the text into a comment before them.
    """
    svg = path.with_suffix(".svg").read_text()
    height, width, _ = matplotlib.image.imread(path.with_suffix(".png")).shape
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert size is not None
    for pixels, points in zip((width, height), size.groups(), strict=True):
        assert abs(pixels - float(points) * 120 / 72) < 2  # 120 dots per inch.
    return re.findall(r"<!-- (.*?) -->", svg)
