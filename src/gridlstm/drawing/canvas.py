"""Lines, boxes and text of a drawing, and the SVG that they make.

A drawing is legible on light and on dark pages: it has its own background, and its colours follow the
reader's preference. Names of classes start with ``gl-``, because a notebook puts all drawings into one
page.
"""

from colorsys import hls_to_rgb
from dataclasses import dataclass, field
from math import hypot
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from gridlstm.files import write_text

__all__ = ["Canvas", "Drawing", "Vector"]

Vector = tuple[float, float]
"""A point or a direction in pixels, to the right and down."""

_STYLE = {
    "gl-page": ("fill:#ffffff;stroke:#d1d5db", "fill:#111827;stroke:#374151"),
    "gl-text": ("fill:#111827", "fill:#f3f4f6"),
    "gl-note": ("fill:#4b5563", "fill:#c0c6d0"),
    "gl-h": ("stroke:#2563eb;fill:#2563eb", "stroke:#7db0ff;fill:#7db0ff"),
    "gl-m": ("stroke:#c2570c;fill:#c2570c", "stroke:#fb9a4b;fill:#fb9a4b"),
    "gl-box": ("fill:#ffffff;stroke:#6b7280", "fill:#1f2937;stroke:#9ca3af"),
}
_PLAIN = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;font-size:13px}"
    ".gl-title{font-size:15px;font-weight:600}.gl-note{font-size:12px}.gl-small{font-size:11px}"
    ".gl-c{text-anchor:middle}.gl-e{text-anchor:end}"
    ".gl-line{stroke-width:1.8;fill:none}.gl-head{stroke:none}"
    ".gl-box,.gl-block{stroke-width:1.3}.gl-far{stroke-dasharray:2 4}"
)
_CHARACTER = 7.1
"""Pixels per character, on the safe side: the font of the reader is unknown."""
_MARGIN = 18


@dataclass(frozen=True)
class Drawing:
    """An SVG picture. Notebooks show it; ``str`` is its text.

    Attributes:
        svg: the picture.

    >>> from gridlstm import GridLSTM
    >>> drawing = GridLSTM(["depth"], hidden_size=8).draw()
    >>> str(drawing).startswith("<svg")
    True
    """

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Writes the picture to a file, atomically.

        Raises:
            ValueError: if the name does not end in ``.svg``.
            OSError: if it cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ValueError(f"path: expected a name that ends in .svg, got {path.name!r}")
        write_text(path, self.svg)


class Canvas:
    """Elements of a drawing, and the rectangle that they need. Coordinates may be negative."""

    def __init__(self) -> None:
        self.elements: list[str] = []
        self.sets = 0
        self.style = ""
        self.left = self.top = float("inf")
        self.right = self.bottom = float("-inf")

    def reach(self, *points: Vector) -> None:
        """Makes the rectangle contain these points."""
        for x, y in points:
            self.left, self.right = min(self.left, x), max(self.right, x)
            self.top, self.bottom = min(self.top, y), max(self.bottom, y)

    def text(
        self,
        at: Vector,
        words: str,
        kind: Literal["text", "note", "title", "small"] = "text",
        anchor: Literal["s", "c", "e"] = "s",
        name: str = "",
    ) -> None:
        """Writes a line of text that starts (s), is centred (c) or ends (e) at a point."""
        width = len(words) * _CHARACTER * (1.15 if kind == "title" else 1)
        start = at[0] - {"s": 0.0, "c": width / 2, "e": width}[anchor]
        self.reach((start, at[1] - 12), (start + width, at[1] + 4))
        classes = {"note": "gl-note"}.get(kind, f"gl-text gl-{kind}")
        self.elements.append(
            f'<text class="{f"{classes} gl-{anchor} {name}".strip()}" x="{at[0]:g}" y="{at[1]:g}">'
            f"{escape(words)}</text>"
        )

    def box(
        self,
        corner: Vector,
        size: Vector,
        weight_set: int | None = None,
        name: str = "",
        about: str = "",
    ) -> None:
        """A rounded box, in the colour of a weight set or without colour.

        Args:
            corner: its upper left corner.
            size: width and height.
            weight_set: the number of the colour.
            name: a further class.
            about: shown when the pointer rests on it.
        """
        (x, y), (width, height) = corner, size
        self.reach(corner, (x + width, y + height))
        colour = "gl-box" if weight_set is None else f"gl-block gl-s{weight_set}"
        if weight_set is not None:
            self.sets = max(self.sets, weight_set + 1)
        self.elements.append(
            f'<rect class="{f"{colour} {name}".strip()}" x="{x:g}" y="{y:g}" width="{width:g}" '
            f'height="{height:g}" rx="7"'
            + (f"><title>{escape(about)}</title></rect>" if about else "/>")
        )

    def arrow(self, start: Vector, end: Vector, *, memory: bool, far: bool = False) -> None:
        """The vectors that travel from one point to another: hidden, and with ``memory`` both.

        With ``far`` the line is dotted: blocks are left out.
        """
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = hypot(dx, dy)
        dx, dy = dx / length, dy / length
        for kind, offset in (("h", -3.5), ("m", 3.5)) if memory else (("h", 0.0),):
            across = (-dy * offset, dx * offset)
            a = (start[0] + across[0], start[1] + across[1])
            b = (end[0] + across[0], end[1] + across[1])
            neck = (b[0] - 6 * dx, b[1] - 6 * dy)
            self.reach(a, b)
            self.elements.append(
                f'<path class="gl-line gl-{kind}{" gl-far" if far else ""}" '
                f'd="M{a[0]:.1f} {a[1]:.1f}L{neck[0]:.1f} {neck[1]:.1f}"/>'
            )
            corners = (b, (neck[0] - 3 * dy, neck[1] + 3 * dx), (neck[0] + 3 * dy, neck[1] - 3 * dx))
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
            self.elements.append(f'<polygon class="gl-head gl-{kind}" points="{points}"/>')

    def paste(self, other: "Canvas", by: Vector) -> None:
        """Adds the elements of another canvas, moved."""
        self.elements += [f'<g transform="translate({by[0]:g} {by[1]:g})">', *other.elements, "</g>"]
        self.sets = max(self.sets, other.sets)
        self.reach((other.left + by[0], other.top + by[1]), (other.right + by[0], other.bottom + by[1]))

    def finish(self, about: str) -> Drawing:
        """The picture, with a sentence for readers who do not see it."""
        left, top = self.left - _MARGIN, self.top - _MARGIN
        width = self.right + _MARGIN - left
        height = self.bottom + _MARGIN - top
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gl" role="img" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" '
            f'aria-label="{escape(about, {chr(34): "&quot;"})}">',
            f"<style>{self._rules()}</style>",
            f'<rect class="gl-page" x="{left + 0.5:.1f}" y="{top + 0.5:.1f}" width="{width - 1:.0f}" '
            f'height="{height - 1:.0f}" rx="10"/>',
            *self.elements,
            "</svg>",
        ]
        return Drawing("\n".join(lines) + "\n")

    def _rules(self) -> str:
        colours = _STYLE | {f"gl-s{k}": _set_colours(k) for k in range(self.sets)}
        light, dark = (
            "".join(f".gl .{name}{{{pair[k]}}}" for name, pair in colours.items()) for k in (0, 1)
        )
        plain = (
            _PLAIN.replace("text{", ".gl text{").replace(".gl-", ".gl .gl-").replace(",.gl .", ",.gl .")
        )
        return f"{light}{plain}@media (prefers-color-scheme:dark){{{dark}}}{self.style}"


def _set_colours(number: int) -> tuple[str, str]:
    """The fill and outline of a weight set, on light and on dark pages.

    Hues are a golden angle apart, so that neighbours differ however many there are.
    """

    def colour(lightness: float, saturation: float) -> str:
        hue = (0.58 + number * 0.381966) % 1
        return "#" + "".join(
            f"{round(255 * part):02x}" for part in hls_to_rgb(hue, lightness, saturation)
        )

    return (
        f"fill:{colour(0.86, 0.75)};stroke:{colour(0.4, 0.5)}",
        f"fill:{colour(0.3, 0.5)};stroke:{colour(0.68, 0.6)}",
    )
