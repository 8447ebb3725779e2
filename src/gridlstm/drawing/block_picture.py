"""The drawing of one block (Figure 1 of the paper): what it reads, computes and returns."""

from collections.abc import Sequence
from typing import Literal

from gridlstm.drawing.canvas import Canvas, Drawing, Vector
from gridlstm.drawing.shown import ShownDim, name_cell

__all__ = ["draw_block"]

_ROW = 34
_WIDTH = 300
_ARROW = 70
Anchor = Literal["s", "c", "e"]


def draw_block(dims: Sequence[ShownDim]) -> Drawing:
    """Draws one block: the vectors that enter along each dimension, and its transforms in their order.

    The first dimension crosses it from left to right, the second upwards, the third from the front to
    the back. All further ones cross it from left to right.
    """
    canvas = Canvas()
    ordered = sorted(dims, key=lambda dim: dim.priority)
    height = 54 + _ROW * len(ordered) + 8
    canvas.box((0, 0), (_WIDTH, height))
    read = "; ".join(f"h_{dim.name}" for dim in dims)
    canvas.text((_WIDTH / 2, 28), f"H = [{read}]", anchor="c")
    has_ordinary = any(not dim.priority for dim in dims)
    for row, dim in enumerate(ordered):
        y = 48.0 + row * _ROW
        owner = dim.shares_weights_with or dim.name
        colour = [dim.name for dim in dims].index(owner)
        canvas.box((12, y), (_WIDTH - 24, _ROW - 6), colour)
        second = dim.priority and has_ordinary
        words = f"{dim.name}: {name_cell(dim)}"
        if second:
            words += ", reads the new h"
        canvas.text((_WIDTH / 2, y + 19), words, anchor="c")
    for number, dim in enumerate(dims):
        _draw_crossing(canvas, dim, number, len(dims), height)
    count = f"{len(dims)}-dimensional block"
    canvas.text((canvas.left, canvas.top - 16), count, "title")
    x, y = canvas.left, canvas.bottom + 28
    notes = ["Each transform reads H and updates only its own memory; one colour per set of weights."]
    if any(dim.priority for dim in dims) and has_ordinary:
        notes.append("Priority dimensions come last: their H has the new vectors of the others.")
    for note in notes:
        canvas.text((x, y), note, "note")
        y += 18
    return canvas.finish(f"{count}: {', '.join(f'{dim.name} ({name_cell(dim)})' for dim in dims)}")


def _draw_crossing(canvas: Canvas, dim: ShownDim, number: int, count: int, height: float) -> None:
    """The arrows into and out of the block along a dimension, with the names of the vectors."""
    start: Vector
    end: Vector
    direction: Vector
    before: Anchor = "e"
    after: Anchor = "s"
    if number == 1:
        start, end, direction = (_WIDTH / 2, height), (_WIDTH / 2, 0), (0, -_ARROW)
        before = after = "s"
    elif number == 2:
        start, end, direction = (24, height), (_WIDTH - 24, 0), (56, -48)
    else:
        rows = [i for i in range(count) if i not in (1, 2)]
        y = height * (rows.index(number) + 1) / (len(rows) + 1)
        start, end, direction = (0, y), (_WIDTH, y), (_ARROW, 0)
    if dim.reverse and number != 1:
        start, end, direction = end, start, (-direction[0], -direction[1])
        before, after = after, before
    elif dim.reverse:
        start, end, direction = end, start, (0, _ARROW)
    (x, y), (dx, dy) = start, direction
    tail, head = (x - dx, y - dy), (end[0] + dx, end[1] + dy)
    canvas.arrow(tail, start, memory=dim.has_memory)
    canvas.arrow(end, head, memory=dim.has_memory)
    vectors = f"h_{dim.name}, m_{dim.name}" if dim.has_memory else f"h_{dim.name}"
    new = vectors.replace(f"_{dim.name}", f"'_{dim.name}")
    _write(canvas, tail, vectors, before)
    _write(canvas, head, new, after)


def _write(canvas: Canvas, at: Vector, words: str, anchor: Anchor) -> None:
    """Text beside the free end of an arrow."""
    shift = {"s": 12, "c": 0, "e": -12}[anchor]
    canvas.text((at[0] + shift, at[1] + 4), words, anchor=anchor)
