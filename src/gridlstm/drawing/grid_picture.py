"""The drawing of a grid: blocks, the vectors between them, and the sides."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import Literal, NamedTuple

from gridlstm.drawing.canvas import Canvas, Drawing, Vector
from gridlstm.drawing.shown import ShownDim, call_sizes, describe, describe_side
from gridlstm.geometry import set_number

__all__ = ["BLOCK", "Layout", "draw_blocks", "draw_grid", "draw_stack", "key", "lay_out"]

_DIRECTIONS: dict[int, tuple[Vector, ...]] = {
    1: ((100, 0),),
    2: ((100, 0), (0, -88)),
    3: ((170, 0), (64, -52), (0, -150)),
}
"""Pixels from a block to the next along each dimension, by number of dimensions."""
BLOCK = 40
_STUB = {1: 44, 2: 44, 3: 30}
"""The length of the arrows at the sides."""
_MOST = {1: 6, 2: 5, 3: 3}
"""Along a dimension with more blocks, some are left out."""


class Layout(NamedTuple):
    """Where the blocks of a grid are drawn.

    Attributes:
        places: for each dimension, the drawn positions and their distance from the first, in blocks.
        directions: for each dimension, the pixels from a block to the next.
    """

    places: list[dict[int, float]]
    directions: tuple[Vector, ...]

    def point(self, at: Sequence[float]) -> Vector:
        """The pixel at some distance from the first block along each dimension."""
        x, y = (
            sum(t * direction[k] for t, direction in zip(at, self.directions, strict=True))
            for k in (0, 1)
        )
        return x, y

    def blocks(self) -> Iterator[tuple[int, ...]]:
        """The drawn positions, those at the back first."""
        order = [list(place) for place in self.places]
        if len(order) == 3:
            order = [order[0], order[1][::-1], order[2]]
            return ((x, y, z) for y, z, x in product(order[1], order[2], order[0]))
        return product(*order)

    def frame(self) -> tuple[float, float, float, float]:
        """The left, top, right and bottom of all blocks and of the arrows at the sides."""
        corners = [
            self.point(at) for at in product(*((0, max(place.values())) for place in self.places))
        ]
        reach = BLOCK / 2 + _STUB[len(self.places)] + 4
        xs, ys = ([corner[k] for corner in corners] for k in (0, 1))
        return min(xs) - reach, min(ys) - reach, max(xs) + reach, max(ys) + reach

    def centre(self, position: Sequence[int]) -> Vector:
        """The middle of a block."""
        return self.point([place[i] for place, i in zip(self.places, position, strict=True)])


def lay_out(sizes: Sequence[int | None], most: int | None = None) -> Layout:
    """Places up to three dimensions; of one with an unknown size, the first blocks and the last."""
    directions = _DIRECTIONS[len(sizes)]
    return Layout([_places(size, most or _MOST[len(sizes)]) for size in sizes], directions)


def _places(size: int | None, most: int) -> dict[int, float]:
    if size is not None and size <= most:
        return {i: float(i) for i in range(size)}
    first = 2 if most <= 3 else 3
    last = (size or 10**6) - 1  # For an unknown size, any number that is not among the first.
    return {**{i: float(i) for i in range(first)}, last: first + (0.4 if most > 3 else 0)}


def draw_grid(dims: Sequence[ShownDim], sizes: Mapping[str, int] | None = None) -> Drawing:
    """Draws a grid with its sides; one of more than three dimensions as pairs of them.

    Raises:
        TypeError, ValueError: as in :meth:`~gridlstm.GridLSTM.draw`.
    """
    known = call_sizes(dims, sizes)
    names = " × ".join(dim.name for dim in dims)
    canvas = Canvas()
    if len(dims) <= 3:
        draw_blocks(canvas, dims, known, range(len(dims)))
    else:
        _draw_pairs(canvas, dims, known)
    title = f"{len(dims)}-dimensional grid: {names}"
    canvas.text((canvas.left, canvas.top - 18), title, "title")
    key(canvas, dims, known)
    return canvas.finish(f"{title}. {'; '.join(map(describe, dims, known))}.")


def draw_stack(layers: Sequence[Sequence[ShownDim]], along: str, weights: Sequence[int]) -> Drawing:
    """Draws grids stacked along a dimension, from the first to the last, two in a row.

    Args:
        layers: the dimensions of each grid.
        along: the dimension along which they are stacked.
        weights: for each grid, the number of the first grid that has the same weights.
    """
    canvas, pictures = Canvas(), []
    for k, dims in enumerate(layers):
        backwards = [dim.name for dim in dims if dim.reverse]
        note = f"{' and '.join(backwards)} backwards" if backwards else "all dimensions forwards"
        picture = Canvas()
        sizes = call_sizes(dims, None)
        sets = prod(size or 1 for dim, size in zip(dims, sizes, strict=True) if not dim.tied)
        draw_blocks(picture, dims, sizes, range(min(len(dims), 3)), first=weights[k] * sets)
        picture.text((picture.left, picture.top - 14), f"layer {k + 1}: {note}")
        pictures.append(picture)
    _tile(canvas, pictures, columns=2)
    title = f"{len(layers)} grids, stacked along {along}"
    canvas.text((canvas.left, canvas.top - 22), title, "title")
    line = f'What leaves a layer as out["{along}"] enters the next as sides["{along}"]; '
    line += "layers of one colour have the same weights."
    canvas.text((canvas.left, canvas.bottom + 26), line, "note")
    key(canvas, layers[0], call_sizes(layers[0], None), directions=False)
    return canvas.finish(f"{title}. {line}")


def _draw_pairs(canvas: Canvas, dims: Sequence[ShownDim], sizes: Sequence[int | None]) -> None:
    """One picture for each pair of dimensions."""
    pictures = []
    for pair in combinations(range(len(dims)), 2):
        picture = Canvas()
        draw_blocks(picture, dims, sizes, pair, most=3)
        first, second = (dims[i].name for i in pair)
        picture.text(
            (picture.left, picture.top - 12), f"{first} × {second}, one position of the others"
        )
        pictures.append(picture)
    _tile(canvas, pictures, columns=3)


def _tile(canvas: Canvas, pictures: Sequence[Canvas], columns: int) -> None:
    """Puts pictures into rows, each in a cell as large as the largest."""
    width = max(picture.right - picture.left for picture in pictures) + 40
    height = max(picture.bottom - picture.top for picture in pictures) + 40
    for k, picture in enumerate(pictures):
        row, column = divmod(k, columns)
        canvas.paste(picture, (column * width - picture.left, row * height - picture.top))


def draw_blocks(
    canvas: Canvas,
    dims: Sequence[ShownDim],
    sizes: Sequence[int | None],
    axes: Sequence[int],
    most: int | None = None,
    first: int = 0,
) -> None:
    """Draws some dimensions of a grid: its blocks, arrows and sides.

    Args:
        canvas: what is drawn on.
        dims: all dimensions.
        sizes: their sizes.
        axes: the dimensions that are drawn.
        most: the most blocks along a dimension. Default: it depends on the number of dimensions.
        first: the number of the first colour.
    """
    layout = lay_out([sizes[i] for i in axes], most)
    shown = [dims[i] for i in axes]
    untied = [not dim.tied for dim in shown]
    count = [size or 1 for size in (sizes[i] for i in axes)]
    colours: dict[int, int] = {}
    for position in layout.blocks():
        for k, dim in enumerate(shown):
            _draw_arrows(canvas, layout, position, k, dim)
        weight_set = set_number(position, count, untied)
        colour = colours.setdefault(weight_set, first + len(colours))
        x, y = layout.centre(position)
        corner, size = (x - BLOCK / 2, y - BLOCK / 2), (BLOCK, BLOCK)
        canvas.box(corner, size, colour, about=_describe_block(shown, position, sizes, axes))
        if any(untied):
            canvas.text((x, y + 4), f"W{weight_set + 1}", "small", "c")
    for k, i in enumerate(axes):
        shape = describe_side(dims, sizes, i)
        for label, leaves in ((f'sides["{dims[i].name}"]', False), (f'out["{dims[i].name}"]', True)):
            _label_side(canvas, layout, k, leaves != dims[i].reverse, label, shape)


def _draw_arrows(
    canvas: Canvas, layout: Layout, position: Sequence[int], k: int, dim: ShownDim
) -> None:
    """The arrows into a block along a dimension, and out of it where it is the last."""
    along = list(layout.places[k])
    if dim.reverse:
        along.reverse()
    dx, dy = layout.directions[k]
    length = (dx**2 + dy**2) ** 0.5 * (-1 if dim.reverse else 1)
    ux, uy = dx / length, dy / length
    # A square is left after half its side along an axis; an oblique arrow starts a little further in.
    radius = BLOCK / 2 / max(abs(ux), abs(uy)) + 2
    x, y = layout.centre(position)
    place = along.index(position[k])
    if place == 0:
        reach = radius + _STUB[len(position)]
        canvas.arrow(
            (x - reach * ux, y - reach * uy), (x - radius * ux, y - radius * uy), memory=dim.has_memory
        )
    if place == len(along) - 1:
        reach = radius + _STUB[len(position)]
        canvas.arrow(
            (x + radius * ux, y + radius * uy), (x + reach * ux, y + reach * uy), memory=dim.has_memory
        )
        return
    following = list(position)
    following[k] = along[place + 1]
    to_x, to_y = layout.centre(following)
    canvas.arrow(
        (x + radius * ux, y + radius * uy),
        (to_x - radius * ux, to_y - radius * uy),
        memory=dim.has_memory,
        far=abs(along[place + 1] - along[place]) > 1,
    )


def _label_side(canvas: Canvas, layout: Layout, k: int, end: bool, label: str, shape: str) -> None:
    """Writes the name and shape of a side outside of the blocks, where its arrows are."""
    middle = [max(place.values()) / 2 for place in layout.places]
    middle[k] = max(layout.places[k].values()) if end else 0
    x, y = layout.point(middle)
    dx, dy = layout.directions[k]
    left, top, right, bottom = layout.frame()
    if dx == 0:
        y = top - 26 if end else bottom + 18
        canvas.text((x, y), label, anchor="c")
        canvas.text((x, y + 16), shape, "note", "c")
        return
    if dy:  # An oblique dimension: at the height of its arrows' ends.
        y += -BLOCK if end else BLOCK
    anchor: Literal["s", "e"] = "s" if end else "e"
    x = right + 10 if end else left - 10
    canvas.text((x, y - 3), label, anchor=anchor)
    canvas.text((x, y + 13), shape, "note", anchor)


def _describe_block(
    shown: Sequence[ShownDim], position: Sequence[int], sizes: Sequence[int | None], axes: Sequence[int]
) -> str:
    """Where a block is, counted from 0; in a dimension of unknown size the last is called so."""
    places = (
        f"{dim.name} {'last' if sizes[axis] is None and i > 2 else i}"
        for dim, i, axis in zip(shown, position, axes, strict=True)
    )
    return ", ".join(places)


def key(
    canvas: Canvas, dims: Sequence[ShownDim], sizes: Sequence[int | None], *, directions: bool = True
) -> None:
    """Writes below a drawing what its lines mean, and a line about each dimension."""
    x, y = canvas.left, canvas.bottom + 34
    canvas.arrow((x, y - 4), (x + 40, y - 4), memory=False)
    canvas.text((x + 48, y), "hidden vector only", "note")
    canvas.arrow((x + 190, y - 4), (x + 230, y - 4), memory=True)
    canvas.text((x + 238, y), "hidden (blue) and memory (orange)", "note")
    for dim, size in zip(dims, sizes, strict=True):
        y += 20
        line = describe(dim, size)
        canvas.text((x, y), line if directions else line.replace(", travelled backwards", ""), "note")
    if any(not dim.tied for dim in dims):
        y += 20
        canvas.text((x, y), "one colour, and one number W, per weight set", "note")
