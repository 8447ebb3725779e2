"""What can be asked of an experiment, and its presets. No PyTorch here, so that help comes fast.

``smoke`` shows in seconds that all parts work; ``laptop`` is for one or two cores and at most about an
hour; ``paper`` has the settings of the paper.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from reprlib import repr as shortened
from typing import Any, ClassVar, Literal

from gridlstm.experiments.image_options import IMAGES, Images
from gridlstm.experiments.translation_options import TRANSLATION, Translation
from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.training.settings import Training

__all__ = [
    "EXPERIMENTS",
    "Addition",
    "Algorithm",
    "Characters",
    "Experiment",
    "Images",
    "Memorization",
    "Parity",
    "Text",
    "Translation",
    "flat",
    "from_flat",
]

Recurrent = Literal["tied-grid", "untied-grid", "tied-stacked", "untied-stacked"]
Text = Literal[
    "tied-grid",
    "untied-grid",
    "shared-grid",
    "tied-stacked",
    "untied-stacked",
    "multiplicative",
    "gated-feedback",
]
Deep = Literal["tied-grid", "untied-grid", "tied-tanh", "untied-tanh", "tied-relu", "untied-relu"]

FURTHER = "generate --prompt ROMEO:  # write like Shakespeare"
"""What to try after a run whose network is of no use by itself."""


def _check(experiment: object, names: tuple[str, ...], contents: int) -> None:
    """Refuses impossible numbers, and tasks too small to hold anything out from."""
    check_fields(experiment, *names, least=1)
    if contents < 81:
        raise ValueError(
            f"{names[0]}: expected a task of at least 81 different samples, got one of {contents}"
        )


@dataclass(frozen=True)
class Memorization:
    """Read a sequence of random symbols, then give it back (section 4.2, Figure 5)."""

    length: int = 20
    """Symbols in a sequence."""
    vocabulary: int = 64
    """Symbols to draw from."""
    network: Recurrent = "tied-grid"
    """Which network learns: 2-LSTM or Stacked LSTM, its weights tied along depth or not."""
    layers: Layers = 43
    """Layers of depth."""
    hidden: int = 100
    """The length of hidden and memory vectors."""
    forget_bias: float = 2.0
    """What the bias of the forget gates starts from."""
    training: Training = field(default_factory=Training)
    """How to train."""

    name: ClassVar[str] = "memorization"
    measure: ClassVar[str] = "accuracy"
    further: ClassVar[str] = FURTHER

    def __post_init__(self) -> None:
        check_types(self)
        _check(
            self, ("length", "vocabulary", "layers", "hidden"), self.vocabulary ** min(self.length, 7)
        )

    @property
    def positions(self) -> int:
        """Symbols that are read one by one."""
        return 2 * self.length + 2


@dataclass(frozen=True)
class Addition:
    """Add two numbers, digit by digit (section 4.1, Figure 4)."""

    digits: int = 15
    """Digits of each number."""
    pace: int | None = None
    """Begin with numbers of up to three digits, and allow one more after every this many samples. By
    default all numbers have all digits from the start, as in the paper."""
    network: Recurrent = "tied-grid"
    """Which network learns: 2-LSTM or Stacked LSTM, its weights tied along depth or not."""
    layers: Layers = 18
    """Layers of depth."""
    hidden: int = 400
    """The length of hidden and memory vectors."""
    forget_bias: float = 2.0
    """What the bias of the forget gates starts from."""
    training: Training = field(default_factory=Training)
    """How to train."""

    name: ClassVar[str] = "addition"
    measure: ClassVar[str] = "accuracy"
    further: ClassVar[str] = FURTHER

    def __post_init__(self) -> None:
        check_types(self)
        _check(self, ("digits", "layers", "hidden"), 81)
        check_fields(self, "pace", least=1, optional=True)

    @property
    def positions(self) -> int:
        """Symbols that are read one by one."""
        return 3 * self.digits + 4


@dataclass(frozen=True)
class Parity:
    """Decide whether a string of bits, seen as a whole, has odd parity (Figures 9 and 10)."""

    bits: int = 50
    """Bits in a string."""
    network: Deep = "tied-grid"
    """Which network learns: 1-LSTM or a feed-forward network, its weights tied or not."""
    layers: Layers = 25
    """Layers of depth."""
    hidden: int = 500
    """Units of a layer."""
    forget_bias: float = 1.0
    """What the bias of the forget gates starts from."""
    signs: bool = True
    """Give the bits as -1 and 1 instead of 0 and 1."""
    start: Literal["random", "counting", "signs"] = "random"
    """What the projection of the bits starts from. signs: the weights with which bits enter the memory
    have one size and random signs, and each unit has a random threshold. counting: a unit has nearly
    the same weight for all bits and a threshold of its own, so that the network begins by seeing how
    many ones there are."""
    training: Training = field(
        default_factory=lambda: Training(
            batch=20, samples=10_000_000, optimizer="adagrad", rate=0.06, evaluate_every=20_000
        )
    )
    """How to train."""

    name: ClassVar[str] = "parity"
    measure: ClassVar[str] = "accuracy"
    further: ClassVar[str] = FURTHER

    def __post_init__(self) -> None:
        check_types(self)
        _check(self, ("bits", "layers", "hidden"), 2 ** min(self.bits, 7))

    positions: ClassVar[int] = 1
    """A string is seen as a whole."""


@dataclass(frozen=True)
class Characters:
    """Predict a text character by character (section 4.3, Figure 6)."""

    corpus: Literal["shakespeare", "enwik8"] = "shakespeare"
    """The text: Tiny Shakespeare, which comes with the package, or Wikipedia's first 100 MB."""
    text: str | None = None
    """A file to take instead of a corpus: 90 % of it for training, 5 % for validation, 5 % for test."""
    network: Text = "tied-grid"
    """Which network learns: 2-LSTM (shared: one set of weights for both dimensions, too), Stacked LSTM,
    multiplicative RNN or gated-feedback LSTM."""
    layers: Layers = 6
    """Layers of depth; a multiplicative RNN has 1."""
    hidden: int = 1000
    """The length of hidden and memory vectors."""
    forget_bias: float = 1.0
    """What the bias of the forget gates starts from."""
    chunk: int = 50
    """Characters of a sample, over which errors are back-propagated."""
    sequence: int = 10_000
    """Characters that state is carried over; after them, it starts from zero."""
    validated: int = 100_000
    """Characters of the validation text that an evaluation reads."""
    training: Training = field(
        default_factory=lambda: Training(batch=100, samples=36_000_000, evaluate_every=20_000)
    )
    """How to train. A sample is a chunk; the batch is the number of texts read side by side."""

    name: ClassVar[str] = "characters"
    measure: ClassVar[str] = "bits"
    further: ClassVar[str] = "generate {run} --length 500  # write like what it has read"

    def __post_init__(self) -> None:
        check_types(self)
        _check(self, ("layers", "hidden", "chunk", "sequence", "validated"), 81)
        if self.sequence % self.chunk:
            raise ValueError(
                f"sequence: expected a multiple of the chunk {self.chunk}, got {self.sequence}"
            )
        if self.network == "multiplicative" and self.layers != 1:
            raise ValueError(f"layers: expected 1 for a multiplicative RNN, got {self.layers}")

    @property
    def positions(self) -> int:
        """Characters that are read one by one."""
        return self.chunk


Algorithm = Memorization | Addition | Parity
Experiment = Memorization | Addition | Parity | Characters | Translation | Images

_fast = Training(rate=3e-3, minutes=60)
_brief = Training(samples=6000, evaluate_every=1500, rate=1e-2)

EXPERIMENTS: dict[str, dict[str, Experiment]] = {
    "memorization": {
        "smoke": Memorization(length=2, vocabulary=10, layers=2, hidden=16, training=_brief),
        "laptop": Memorization(layers=16, forget_bias=4.0, training=_fast),
        "paper": Memorization(),
    },
    "addition": {
        "smoke": Addition(digits=1, layers=2, hidden=16, training=_brief),
        "laptop": Addition(digits=6, layers=10, hidden=128, forget_bias=4.0, training=_fast),
        "paper": Addition(),
    },
    "parity": {
        "smoke": Parity(
            bits=8, layers=3, hidden=16, training=replace(_brief, optimizer="adagrad", rate=0.06)
        ),
        "laptop": Parity(
            bits=10, layers=12, hidden=200, training=replace(Parity().training, minutes=60)
        ),
        "paper": Parity(),
    },
    "characters": {
        "smoke": Characters(
            layers=2,
            hidden=16,
            sequence=1000,
            validated=5000,
            training=Training(batch=16, samples=800, rate=1e-2, evaluate_every=400),
        ),
        "small": Characters(
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
        "laptop": Characters(
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
        "paper": Characters(corpus="enwik8"),
    },
    "translation": {**TRANSLATION},
    "images": {**IMAGES},
}


def flat(experiment: Experiment) -> dict[str, Any]:
    """All options of an experiment by name, those of training among them."""
    found = asdict(experiment)
    training = found.pop("training")
    return {**found, **training}


def from_flat(name: str, options: Mapping[str, Any]) -> Experiment:
    """The experiment of which :func:`flat` gave the options.

    An option that is missing, because it is younger than the run, has its default: a new option's
    default is what was done before.

    Raises:
        ValueError: if there is no such experiment, or an option is unknown or impossible.
    """
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise ValueError(f"experiment: expected one of {', '.join(EXPERIMENTS)}, got {shortened(name)}")
    if not isinstance(options, Mapping):
        raise ValueError(f"options: expected options by name, got {shortened(options)}")
    kind = type(EXPERIMENTS[name]["paper"])
    own, shared = ({f.name for f in fields(k)} - {"training"} for k in (kind, Training))
    odd = ", ".join(sorted(options.keys() - own - shared))
    if odd:
        raise ValueError(f"options: expected those of {name}, got others: {odd}")
    # From a file, tuples come as lists.
    given: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    training = Training(**{key: given[key] for key in shared & given.keys()})
    return kind(**{key: given[key] for key in own & given.keys()}, training=training)
