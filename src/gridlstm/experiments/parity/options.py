"""The options of parity, its presets and its figures. No PyTorch here."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from gridlstm.experiments.algorithmic.options import BRIEF, check_task
from gridlstm.experiments.record import Options
from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.figures.options import RunFigure, RunsFigure
from gridlstm.training.settings import Training

__all__ = ["PRESETS", "MemoriesOptions", "ParityOptions", "SolutionsOptions"]


@dataclass(frozen=True)
class ParityOptions(Options):
    """Decide whether a string of bits, seen as a whole, has odd parity (Figures 9 and 10)."""

    bits: int = 50
    """The number of bits in a string."""
    network: Literal[
        "tied-grid", "untied-grid", "tied-tanh", "untied-tanh", "tied-relu", "untied-relu"
    ] = "tied-grid"
    """The network to train: 1-LSTM or a feed-forward network, with weights tied or not."""
    layers: Layers = 25
    """The number of layers."""
    hidden: int = 500
    """The number of units per layer."""
    forget_bias: float = 1.0
    """The initial bias of the forget gates."""
    signs: bool = True
    """Present the bits as -1 and 1 instead of 0 and 1."""
    start: Literal["random", "signs"] = "random"
    """The initial projection of the bits. random: as in other networks. signs: the weights with which
    bits enter the memory have one size and random signs, and each unit has a random threshold."""
    training: Training = field(
        default_factory=lambda: Training(
            batch=20, samples=10_000_000, optimizer="adagrad", rate=0.06, evaluate_every=20_000
        )
    )
    """How to train."""

    def __post_init__(self) -> None:
        check_types(self)
        check_task(self, "bits", "layers", "hidden", contents=2 ** min(self.bits, 7))

    @property
    def size(self) -> int:
        """The number of bits in a string."""
        return self.bits


_PAPER = ParityOptions().training

PRESETS = {
    "smoke": ParityOptions(
        bits=8,
        layers=3,
        hidden=16,
        signs=False,
        start="signs",
        training=replace(BRIEF, optimizer="adagrad", rate=0.06),
    ),
    "laptop": ParityOptions(
        bits=100,
        layers=12,
        hidden=200,
        forget_bias=5.0,
        signs=False,
        start="signs",
        training=replace(_PAPER, rate=0.03, minutes=60, evaluate_every=5000),
    ),
    "paper": ParityOptions(forget_bias=5.0, signs=False, start="signs", training=_PAPER),
}


@dataclass(frozen=True, kw_only=True)
class SolutionsOptions(RunsFigure):
    """Draw which networks solved parity: layers against bits (Figure 9)."""

    kind: ClassVar[str] = "solutions"


@dataclass(frozen=True, kw_only=True)
class MemoriesOptions(RunFigure):
    """Draw the memory of a 1-LSTM's counting neurons through its layers (Figure 10)."""

    kind: ClassVar[str] = "memories"

    input: str | None = None
    """The input bits. Default: a fifth zeros, then ones, as in the paper."""
    neurons: int = 20
    """The number of counting neurons to show."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "neurons", least=1)
