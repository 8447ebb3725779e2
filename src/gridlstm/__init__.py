"""Grid Long Short-Term Memory (Kalchbrenner, Danihelka, Graves) in PyTorch."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridlstm.dim import Dim
    from gridlstm.grid import GridLSTM
    from gridlstm.models.attention import AttentionTranslator
    from gridlstm.models.convert import from_torch, to_torch
    from gridlstm.models.convolutional import ConvolutionalNetwork
    from gridlstm.models.deep import DeepGridLSTM
    from gridlstm.models.feedforward import FeedForward
    from gridlstm.models.gated_feedback import GatedFeedbackLSTM
    from gridlstm.models.highway import Highway
    from gridlstm.models.image_grid import ImageGridLSTM
    from gridlstm.models.image_multidimensional import ImageMultidimensionalLSTM
    from gridlstm.models.multidimensional import MultidimensionalLSTM
    from gridlstm.models.multiplicative import MultiplicativeRNN
    from gridlstm.models.reencoder import Reencoder
    from gridlstm.models.renet import ReNet
    from gridlstm.models.sequence import SequenceGridLSTM
    from gridlstm.models.stack import GridStack
    from gridlstm.models.stacked import StackedLSTM
    from gridlstm.state import State

__all__ = [
    "AttentionTranslator",
    "ConvolutionalNetwork",
    "DeepGridLSTM",
    "Dim",
    "FeedForward",
    "GatedFeedbackLSTM",
    "GridLSTM",
    "GridStack",
    "Highway",
    "ImageGridLSTM",
    "ImageMultidimensionalLSTM",
    "MultidimensionalLSTM",
    "MultiplicativeRNN",
    "ReNet",
    "Reencoder",
    "SequenceGridLSTM",
    "StackedLSTM",
    "State",
    "from_torch",
    "to_torch",
]

__version__ = "0.1.0"

_HOMES = {
    "AttentionTranslator": "models.attention",
    "ConvolutionalNetwork": "models.convolutional",
    "DeepGridLSTM": "models.deep",
    "Dim": "dim",
    "FeedForward": "models.feedforward",
    "GatedFeedbackLSTM": "models.gated_feedback",
    "GridLSTM": "grid",
    "GridStack": "models.stack",
    "Highway": "models.highway",
    "ImageGridLSTM": "models.image_grid",
    "ImageMultidimensionalLSTM": "models.image_multidimensional",
    "MultidimensionalLSTM": "models.multidimensional",
    "MultiplicativeRNN": "models.multiplicative",
    "Reencoder": "models.reencoder",
    "ReNet": "models.renet",
    "SequenceGridLSTM": "models.sequence",
    "StackedLSTM": "models.stacked",
    "State": "state",
    "from_torch": "models.convert",
    "to_torch": "models.convert",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first asked for: PyTorch takes seconds, the help should not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"gridlstm.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
