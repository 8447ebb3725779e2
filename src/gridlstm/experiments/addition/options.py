"""The options of addition, and its presets. No PyTorch here."""

from dataclasses import dataclass, field

from gridlstm.experiments.algorithmic.options import BRIEF, LAPTOP, SymbolNetwork, check_task
from gridlstm.experiments.record import Options
from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.training.settings import Training

__all__ = ["PRESETS", "AdditionOptions"]


@dataclass(frozen=True)
class AdditionOptions(Options):
    """Add two numbers, digit by digit (section 4.1, Figure 4)."""

    digits: int = 15
    """The number of digits of each number."""
    pace: int | None = None
    """Start with numbers of up to three digits, and add one digit after every this many samples.
    Default: all numbers have all digits from the start, as in the paper."""
    fill: int | None = None
    """Start with second numbers that are mostly zeros, and with fewer zeros until this many samples.
    Default: random digits from the start, as in the paper."""
    zeros: float | None = None
    """Replace digits of second numbers by zeros throughout training: this share of them on average,
    and a different one in each sample. Default: random digits only, as in the paper."""
    network: SymbolNetwork = "tied-grid"
    """The network to train: 2-LSTM or Stacked LSTM, with weights tied along depth or not."""
    layers: Layers = 18
    """The number of layers."""
    hidden: int = 400
    """The length of hidden and memory vectors."""
    forget_bias: float = 2.0
    """The initial bias of the forget gates."""
    training: Training = field(default_factory=Training)
    """How to train."""

    def __post_init__(self) -> None:
        check_types(self)
        check_task(self, "digits", "layers", "hidden")
        check_fields(self, "pace", "fill", least=1, optional=True)
        check_fields(self, "zeros", above=0, below=1, optional=True)
        easier = [name for name in ("pace", "fill", "zeros") if getattr(self, name) is not None]
        for other in easier[1:]:
            raise ValueError(
                f"{other}: expected None with {easier[0]} {getattr(self, easier[0])}, "
                f"got {getattr(self, other)}"
            )

    @property
    def size(self) -> int:
        """The number of digits of each number."""
        return self.digits

    @property
    def positions(self) -> int:
        """The length of a sequence of symbols."""
        return 3 * self.digits + 4


PRESETS = {
    "smoke": AdditionOptions(digits=1, layers=2, hidden=16, training=BRIEF),
    "laptop": AdditionOptions(digits=6, layers=10, hidden=128, forget_bias=4.0, training=LAPTOP),
    "paper": AdditionOptions(),
}
