"""The methods with which a grid draws itself."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gridlstm.drawing.block_picture import draw_block
from gridlstm.drawing.canvas import Drawing
from gridlstm.drawing.grid_picture import draw_grid
from gridlstm.drawing.shown import ShownDim

__all__ = ["Drawable"]


class Drawable:
    """A grid that can be drawn: it has ``dims``."""

    if TYPE_CHECKING:  # At run time it is an attribute of the grid.

        @property
        def dims(self) -> Sequence[ShownDim]:
            """The dimensions."""

    def draw(self, sizes: Mapping[str, int] | None = None) -> Drawing:
        """Draws the grid: blocks, sides, directions, cells, priorities and weight sets.

        The first dimension goes to the right. In two dimensions the second goes up; in three the second
        goes back and the third up. More are drawn as pairs of dimensions. Blocks with the same colour
        have the same weights. Of many blocks along a dimension the first and the last are drawn.

        Args:
            sizes: the number of blocks along dimensions whose size is known only in a call. Default:
                they are drawn with any length.

        Returns:
            A picture that notebooks show, with a method ``save(path)``.

        Raises:
            TypeError: if a size is not an integer.
            ValueError: if a name is unknown, or a size is below 1 or differs from the dimension's.
        """
        return draw_grid(self.dims, sizes)

    def draw_block(self) -> Drawing:
        """Draws one block (Figure 1): what it reads, its transforms in their order, what it returns."""
        return draw_block(self.dims)
