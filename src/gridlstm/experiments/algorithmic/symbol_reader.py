"""A network that reads a sequence of symbols and predicts another sequence."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stacked import StackedLSTM

__all__ = ["SymbolReader", "make_reader"]


class SymbolReader(nn.Module):
    """Symbols ``[batch, time]`` to scores of symbols ``[batch, time, symbols]``."""

    def __init__(self, symbols: int, body: SequenceGridLSTM | StackedLSTM) -> None:
        super().__init__()
        self.symbols = symbols
        self.body = body
        self.scores = nn.Linear(body.output_size, symbols)

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores at every time step."""
        one_hot = F.one_hot(inputs, self.symbols).to(self.scores.weight.dtype)
        scores: Tensor = self.scores(self.body(one_hot)[0])
        return scores


def make_reader(
    network: str, symbols: int, hidden: int, layers: int, *, forget_bias: float
) -> SymbolReader:
    """A new network: ``tied-grid``, ``untied-grid``, ``tied-stacked`` or ``untied-stacked``."""
    tied, _, kind = network.partition("-")
    sizes = (symbols, hidden, layers)
    shared: dict[str, Any] = {
        "tied": tied == "tied",
        "forget_bias": forget_bias,
        "batch_first": True,
    }
    if kind == "grid":
        return SymbolReader(symbols, SequenceGridLSTM(*sizes, readout="both", **shared))
    return SymbolReader(symbols, StackedLSTM(*sizes, **shared))
