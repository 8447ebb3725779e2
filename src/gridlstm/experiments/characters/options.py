"""The options of character-level language modelling, its presets and its commands. No PyTorch here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from gridlstm.command import OptionalRun, RunPath
from gridlstm.experiments.record import EvalOptions, Options
from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.training.settings import Training

__all__ = [
    "PRESETS",
    "CharacterEval",
    "CharacterOptions",
    "GenerateOptions",
    "ScoreOptions",
    "TextNetwork",
]

TextNetwork = Literal[
    "tied-grid",
    "untied-grid",
    "shared-grid",
    "tied-stacked",
    "untied-stacked",
    "multiplicative",
    "gated-feedback",
]


@dataclass(frozen=True)
class CharacterOptions(Options):
    """Predict a text character by character (section 4.3, Figure 6)."""

    corpus: Literal["shakespeare", "enwik8"] = "shakespeare"
    """The text: Tiny Shakespeare, which comes with the package, or the first 100 MB of Wikipedia."""
    text: str | None = None
    """A file to use instead of a corpus: 90 % for training, 5 % for validation, 5 % for test."""
    network: TextNetwork = "tied-grid"
    """The network to train: 2-LSTM, Stacked LSTM, multiplicative RNN or gated-feedback LSTM.
    shared-grid: a tied 2-LSTM with one set of weights for both dimensions."""
    layers: Layers = 6
    """The number of layers; a multiplicative RNN has 1."""
    hidden: int = 1000
    """The length of hidden and memory vectors."""
    forget_bias: float = 1.0
    """The initial bias of the forget gates."""
    chunk: int = 50
    """The number of characters of a sample, through which gradients are propagated."""
    sequence: int = 10_000
    """The number of characters after which the carried state is reset to zero."""
    validated: int = 100_000
    """The number of characters of the validation text used in an evaluation."""
    training: Training = field(
        default_factory=lambda: Training(batch=100, samples=36_000_000, evaluate_every=20_000)
    )
    """How to train. A sample is a chunk; the batch is the number of streams read in parallel."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "layers", "hidden", "chunk", "sequence", "validated", least=1)
        if self.sequence % self.chunk:
            raise ValueError(
                f"sequence: expected a multiple of the chunk {self.chunk}, got {self.sequence}"
            )
        if self.network == "multiplicative" and self.layers != 1:
            raise ValueError(f"layers: expected 1 for a multiplicative RNN, got {self.layers}")

    @property
    def positions(self) -> int:
        """The number of characters of a sample."""
        return self.chunk

    @property
    def size(self) -> str:
        """The name of the text."""
        return self.corpus if self.text is None else Path(self.text).stem


PRESETS = {
    "smoke": CharacterOptions(
        layers=2,
        hidden=16,
        sequence=1000,
        validated=5000,
        training=Training(batch=16, samples=800, rate=1e-2, evaluate_every=400),
    ),
    "small": CharacterOptions(
        layers=4,
        hidden=128,
        sequence=1000,
        validated=50_000,
        training=Training(
            batch=32,
            samples=60_000,
            optimizer="muon",
            rate=3e-3,
            schedule="cosine",
            evaluate_every=4000,
        ),
    ),
    "laptop": CharacterOptions(
        corpus="enwik8",
        hidden=256,
        training=Training(
            batch=20,
            samples=180_000,
            minutes=150,
            optimizer="muon",
            rate=3e-3,
            schedule="cosine",
            evaluate_every=6000,
        ),
    ),
    "paper": CharacterOptions(corpus="enwik8"),
}


@dataclass(frozen=True)
class CharacterEval(EvalOptions):
    """How to test a network on a text."""

    streams: int = 1
    """Split the text into this many parts, read in parallel, which is faster. The paper uses 1."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "streams", least=1)


@dataclass(frozen=True)
class GenerateOptions:
    """Generate text, character by character, with a network trained on characters."""

    run: OptionalRun = None
    """The run's directory, or wikipedia, a network that comes with the package. Default: another one,
    trained on Shakespeare."""
    prompt: str = ""
    """The beginning of the text, which is printed, too."""
    length: int = 1000
    """The number of characters to generate after the prompt; 0: until interrupted."""
    temperature: float = 1.0
    """The temperature of sampling: below 1 favours likely characters; 0 takes the likeliest."""
    top_k: int | None = None
    """Sample from only this many of the likeliest characters. Default: all."""
    seed: int = 0
    """The seed of sampling: the same seed makes the same text."""
    int8: bool = False
    """Round the weights to 8 bits, which is faster. For 2-LSTMs only."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "length", "temperature", least=0)
        check_fields(self, "top_k", least=1, optional=True)
        check_fields(self, "seed", least=0, most=2**31 - 1)


@dataclass(frozen=True)
class ScoreOptions:
    """Print the bits per character of a file, given a network trained on characters."""

    run: RunPath
    """The run's directory, or a network that comes with the package: characters or wikipedia."""
    file: Annotated[Path, Positional, arg(metavar="FILE")]
    """Any file. Bytes that the network does not know are skipped and counted."""
    streams: int = 1
    """Split the file into this many parts, read in parallel, which is faster."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.streams < 1:
            raise ValueError(f"streams: expected at least 1, got {self.streams}")
