"""The command ``gridlstm gallery``: drawings of blocks, grids and networks, one of them moving."""

import sys
from collections.abc import Mapping

from torch import nn

from gridlstm.commands.options import GalleryOptions
from gridlstm.dim import Dim
from gridlstm.drawing import Drawing, draw_wave
from gridlstm.errors import one_line
from gridlstm.grid import GridLSTM
from gridlstm.models.convert import from_torch
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.models.reencoder import Reencoder

__all__ = ["make_gallery", "run"]


def make_gallery() -> Mapping[str, Drawing]:
    """All drawings by the name of their file, each made from a module."""
    depth = Dim("depth", size=4)
    one = GridLSTM([depth], hidden_size=16)
    two = GridLSTM([Dim("time"), depth], hidden_size=16)
    three = GridLSTM([Dim("source"), Dim("target"), Dim("depth", size=2)], hidden_size=16)
    untied = Dim("depth", size=3, tied=False, priority=True)
    stacked = from_torch(nn.LSTM(16, 16, num_layers=3)).grid
    grids = {
        "1d": one,
        "2d": two,
        "3d": three,
        "untied": GridLSTM([Dim("time", reverse=True), untied], hidden_size=16),
        "stacked-lstm": stacked,
    }
    return {
        **{f"block-{grid}": grids[grid].draw_block() for grid in ("1d", "2d", "3d", "untied")},
        **{f"grid-{name}": grid.draw() for name, grid in grids.items()},
        "reencoder": Reencoder(source_words=9, target_words=9, hidden_size=16).stack.draw(),
        "image-network": ImageGridLSTM(28, hidden_size=16, patch_size=4).stack.draw(),
        "wavefront": draw_wave(two.dims, {"time": 7}),
    }


def run(options: GalleryOptions) -> None:
    """Writes the drawings and prints the names of their files."""
    for name, drawing in make_gallery().items():
        path = options.out / f"{name}.svg"
        drawing.save(path)
        sys.stdout.write(f"{one_line(path)}\n")
