"""What can be asked of translation, and its presets. No PyTorch here, so that help comes fast."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.training.settings import Training

__all__ = ["TRANSLATION", "Translation"]

Files = tuple[str, ...]
LANGUAGES = {"tatoeba": (("zh", "en"),), "multi30k": (("de", "en"), ("en", "de"))}


@dataclass(frozen=True)
class Translation:
    """Translate sentences (section 4.4, Figures 7 and 8)."""

    corpus: Literal["tatoeba", "multi30k"] = "tatoeba"
    """The text: everyday sentences in Chinese and English, which come with the package, or captions of
    images in English and German."""
    train: Files = ()
    """Files to take instead of a corpus: a table of sentences and their translations, with tabs between
    them; or two plain files, line by line."""
    valid: Files = ()
    """The same to validate on. A sentence may have several translations: more columns, or files."""
    test: Files = ()
    """The same to test on."""
    source: str = "zh"
    """The language to translate from."""
    target: str = "en"
    """The language to translate to."""
    chinese: Literal["characters", "jieba"] = "characters"
    """How Chinese is cut: every character by itself, or words as jieba finds them."""
    pairs: int | None = None
    """Train on only the first this many pairs of sentences. Default: all."""
    longest: int = 50
    """Train on sentences of at most this many words."""
    least: int = 2
    """The vocabularies have the words that occur at least this many times in training."""
    validated: int = 1000
    """Sentences of the validation text that an evaluation reads."""
    network: Literal["reencoder", "attention", "depth-gated"] = "reencoder"
    """Which network learns: the Reencoder, or an encoder-decoder with attention, of ordinary or of
    depth-gated LSTM."""
    layers: Layers = 2
    """Grids of the Reencoder; layers of the others."""
    hidden: int = 450
    """The length of hidden and memory vectors."""
    dropout: float = 0.5
    """The probability with which hidden values are dropped: in the blocks of a Reencoder; of the
    vectors of words, between layers and before predictions in the others."""
    side_dropout: float = 0.0
    """The same for the vectors with which words enter a Reencoder and from which they are predicted."""
    forget_bias: float = 1.0
    """What the bias of the forget gates starts from."""
    beam: int = 20
    """Candidates of a sentence that are followed at once in a test."""
    training: Training = field(
        default_factory=lambda: Training(batch=64, samples=1_000_000, evaluate_every=10_000)
    )
    """How to train. A sample is a pair of sentences."""

    name: ClassVar[str] = "translation"
    measure: ClassVar[str] = "perplexity"
    further: ClassVar[str] = "translate {run}  # type sentences, one per line"

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "longest", "least", "validated", "layers", "hidden", "beam", least=1)
        check_fields(self, "pairs", least=1, optional=True)
        check_fields(self, "dropout", "side_dropout", least=0, below=1)
        if self.side_dropout and self.network != "reencoder":
            raise ValueError(f"side_dropout: expected 0 for {self.network}, got {self.side_dropout}")
        if self.network == "depth-gated" and self.layers == 1:
            raise ValueError("layers: expected at least 2 for depth gates between them, got 1")
        given = [name for name in ("train", "valid", "test") if getattr(self, name)]
        if given and len(given) < 3:
            raise ValueError(
                f"train, valid, test: expected files for all of them, got {' and '.join(given)}"
            )
        allowed = LANGUAGES[self.corpus]
        if not given and (self.source, self.target) not in allowed:
            expected = " or ".join(f"{a} to {b}" for a, b in allowed)
            raise ValueError(
                f"source, target: expected {expected} for {self.corpus}, "
                f"got {self.source} to {self.target}"
            )

    positions: ClassVar[int] = 1
    """Words at least; how many there are is up to the text."""


_laptop = Translation(
    hidden=256,
    dropout=0.3,
    training=Training(batch=64, samples=530_000, rate=2e-3, schedule="cosine", evaluate_every=16_000),
)

TRANSLATION = {
    "smoke": Translation(
        pairs=400,
        longest=8,
        validated=100,
        hidden=16,
        dropout=0.0,
        beam=3,
        training=Training(batch=16, samples=640, rate=1e-2, evaluate_every=320),
    ),
    "small": replace(
        _laptop,
        pairs=20_000,
        longest=10,
        validated=200,
        hidden=96,
        beam=5,
        training=Training(batch=32, samples=90_000, rate=3e-3, schedule="cosine", evaluate_every=6000),
    ),
    "laptop": _laptop,
    "paper": Translation(chinese="jieba"),
}
"""Presets; ``paper`` is one of the seven models of the paper, which differ in ``--seed``."""
