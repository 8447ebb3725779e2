"""Linear layers between hidden vectors."""

from torch import nn

__all__ = ["HiddenLinear"]


class HiddenLinear(nn.Linear):
    """A linear layer from hidden vectors to hidden vectors, or gates.

    It computes what ``nn.Linear`` does. The name tells it from the layers that read or write symbols:
    those have a column or row for each symbol, which only the updates that meet it should change, and
    :class:`~gridlstm.training.muon.Muon` leaves them to Adam.
    """
