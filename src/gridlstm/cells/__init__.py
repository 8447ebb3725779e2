"""Cells: how a dimension's transform turns preactivations into new vectors. One file per cell."""

from collections.abc import Callable

from gridlstm.cells.base import Cell, CellGradients, Vectors
from gridlstm.cells.connection import CONNECTIONS, Connection, Transfer
from gridlstm.cells.gru import GRU
from gridlstm.cells.layer_norm import LayerNorm
from gridlstm.cells.lstm import LSTM, Output, PeepholeLSTM

__all__ = [
    "CELLS",
    "CONNECTIONS",
    "GRU",
    "LSTM",
    "Cell",
    "CellGradients",
    "Connection",
    "LayerNorm",
    "Output",
    "PeepholeLSTM",
    "Transfer",
    "Vectors",
    "make_cell",
]

CELLS: dict[str, Callable[[Output], Cell]] = {
    "lstm": LSTM,
    "peephole": PeepholeLSTM,
    "gru": lambda _: GRU(),
    "identity": lambda _: CONNECTIONS["identity"],
    "tanh": lambda _: CONNECTIONS["tanh"],
    "relu": lambda _: CONNECTIONS["relu"],
}
"""Cells by name, as functions of how the memory is read."""


def make_cell(
    transform: str | Cell | Transfer, output: Output = "paper", *, layer_norm: bool = False
) -> Cell:
    """The cell for the ``transform`` argument of a dimension."""
    cell = transform
    if not isinstance(cell, Cell):
        cell = CELLS[cell](output) if isinstance(cell, str) else Connection(cell)
    return LayerNorm(cell) if layer_norm else cell
