"""Grid Long Short-Term Memory (Kalchbrenner, Danihelka, Graves) in PyTorch."""

from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["Dim", "GridLSTM", "State"]

__version__ = "0.1.0"
