"""Grid Long Short-Term Memory (Kalchbrenner, Danihelka, Graves) in PyTorch."""

from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.models.convert import from_torch, to_torch
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.models.feedforward import FeedForward
from gridlstm.models.highway import Highway
from gridlstm.models.multidimensional import MultidimensionalLSTM
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stack import GridStack
from gridlstm.models.stacked import StackedLSTM
from gridlstm.state import State

__all__ = [
    "DeepGridLSTM",
    "Dim",
    "FeedForward",
    "GridLSTM",
    "GridStack",
    "Highway",
    "MultidimensionalLSTM",
    "SequenceGridLSTM",
    "StackedLSTM",
    "State",
    "from_torch",
    "to_torch",
]

__version__ = "0.1.0"
