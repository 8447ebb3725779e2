"""The options of memorization, and its presets. No PyTorch here."""

from dataclasses import dataclass, field

from gridlstm.experiments.algorithmic.options import BRIEF, LAPTOP, SymbolNetwork, check_task
from gridlstm.experiments.record import Options
from gridlstm.fields import Layers, check_types
from gridlstm.training.settings import Training

__all__ = ["PRESETS", "MemorizationOptions"]


@dataclass(frozen=True)
class MemorizationOptions(Options):
    """Read a sequence of random symbols, then repeat it (section 4.2, Figure 5)."""

    length: int = 20
    """The number of symbols in a sequence."""
    vocabulary: int = 64
    """The number of different symbols."""
    network: SymbolNetwork = "tied-grid"
    """The network to train: 2-LSTM or Stacked LSTM, with weights tied along depth or not."""
    layers: Layers = 43
    """The number of layers."""
    hidden: int = 100
    """The length of hidden and memory vectors."""
    forget_bias: float = 2.0
    """The initial bias of the forget gates."""
    training: Training = field(default_factory=Training)
    """How to train."""

    def __post_init__(self) -> None:
        check_types(self)
        contents = self.vocabulary ** min(self.length, 7)
        check_task(self, "length", "vocabulary", "layers", "hidden", contents=contents)

    @property
    def size(self) -> int:
        """The number of symbols in a sequence."""
        return self.length

    @property
    def positions(self) -> int:
        """The length of a sequence of symbols, with blanks."""
        return 2 * self.length + 2


PRESETS = {
    "smoke": MemorizationOptions(length=2, vocabulary=10, layers=2, hidden=16, training=BRIEF),
    "laptop": MemorizationOptions(layers=16, forget_bias=4.0, training=LAPTOP),
    "paper": MemorizationOptions(),
}
