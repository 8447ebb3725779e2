"""Drawings of blocks and grids as SVG, from the description of their dimensions. No PyTorch here."""

from gridlstm.drawing.block_picture import draw_block
from gridlstm.drawing.canvas import Drawing
from gridlstm.drawing.drawable import Drawable
from gridlstm.drawing.grid_picture import draw_grid, draw_stack
from gridlstm.drawing.shown import ShownDim
from gridlstm.drawing.wave_picture import draw_wave

__all__ = ["Drawable", "Drawing", "ShownDim", "draw_block", "draw_grid", "draw_stack", "draw_wave"]
