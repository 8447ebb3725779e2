"""The options of translation, its presets, its figure and its command. No PyTorch here."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tyro.conf import arg

from gridlstm.command import RunPaths
from gridlstm.experiments.record import EvalOptions, Options
from gridlstm.fields import Layers, Threads, check_fields, check_types
from gridlstm.figures.options import RunFigure
from gridlstm.training.settings import Training

__all__ = [
    "PRESETS",
    "AlignmentOptions",
    "TranslateOptions",
    "TranslationEval",
    "TranslationOptions",
]

Files = tuple[str, ...]
LANGUAGES = {"tatoeba": (("zh", "en"),), "multi30k": (("de", "en"), ("en", "de"))}


@dataclass(frozen=True)
class TranslationOptions(Options):
    """Translate sentences (section 4.4, Figures 7 and 8)."""

    corpus: Literal["tatoeba", "multi30k"] = "tatoeba"
    """The text: tatoeba, everyday sentences in Chinese and English, which come with the package;
    or multi30k, captions of images in English and German."""
    train: Files = ()
    """Files to use instead of a corpus: a table of sentences and translations, separated by tabs;
    or two plain files with one sentence per line."""
    valid: Files = ()
    """The same for validation. There may be several translations: more columns, or more files."""
    test: Files = ()
    """The same for the test."""
    source: str = "zh"
    """The language to translate from."""
    target: str = "en"
    """The language to translate to."""
    chinese: Literal["characters", "jieba"] = "characters"
    """How Chinese is split: into characters, or into words by jieba."""
    pairs: int | None = None
    """Train on this many pairs of sentences, the first ones. Default: all."""
    longest: int = 50
    """Train on sentences of at most this many words."""
    least: int = 2
    """Words that occur fewer times than this in training are unknown."""
    validated: int = 1000
    """The number of validation sentences used in an evaluation."""
    network: Literal["reencoder", "attention", "depth-gated"] = "reencoder"
    """The network to train: the Reencoder, or an encoder-decoder with attention.
    depth-gated: the latter with depth-gated LSTM."""
    layers: Layers = 2
    """The number of grids of the Reencoder, or of layers of the others."""
    hidden: int = 450
    """The length of hidden and memory vectors."""
    word_size: int | None = None
    """The length of word vectors. Default: as many values as enter a side of the Reencoder, without a
    projection; in the others as hidden vectors."""
    encoder: bool = False
    """Read the source sentence with an LSTM in each direction before it enters the Reencoder.
    Not in the paper; the others always have an encoder."""
    entry: Literal["first", "every", "blocks"] = "first"
    """Where words enter a Reencoder: the first grid, every grid, or also each block of the first one.
    The last is not in the paper."""
    dropout: float = 0.5
    """The probability of dropout: in the blocks of a Reencoder.
    In the others: of word vectors, between layers and before predictions."""
    side_dropout: float = 0.0
    """The same for the vectors that enter the sides of a Reencoder, and those it predicts from."""
    forget_bias: float = 1.0
    """The initial bias of the forget gates."""
    beam: int = 20
    """The beam size of a test."""
    training: Training = field(
        default_factory=lambda: Training(batch=64, samples=1_000_000, evaluate_every=10_000)
    )
    """How to train. A sample is a pair of sentences."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "longest", "least", "validated", "layers", "hidden", "beam", least=1)
        check_fields(self, "pairs", "word_size", least=1, optional=True)
        check_fields(self, "dropout", "side_dropout", least=0, below=1)
        if self.side_dropout and self.network != "reencoder":
            raise ValueError(f"side_dropout: expected 0 for {self.network}, got {self.side_dropout}")
        if self.entry != "first" and self.network != "reencoder":
            raise ValueError(f"entry: expected first for {self.network}, got {self.entry}")
        if self.encoder and self.network != "reencoder":
            raise ValueError(f"encoder: expected False for {self.network}, which has one, got True")
        if self.network == "depth-gated" and self.layers == 1:
            raise ValueError("layers: expected at least 2 for depth gates between them, got 1")
        named = [name for name in ("train", "valid", "test") if getattr(self, name)]
        if named and len(named) < 3:
            raise ValueError(
                f"train, valid, test: expected files for all of them, got {' and '.join(named)}"
            )
        allowed = LANGUAGES[self.corpus]
        if not named and (self.source, self.target) not in allowed:
            expected = " or ".join(f"{a} to {b}" for a, b in allowed)
            raise ValueError(
                f"source, target: expected {expected} for {self.corpus}, "
                f"got {self.source} to {self.target}"
            )

    @property
    def size(self) -> str:
        """The name of the text."""
        return Path(self.train[0]).stem if self.train else self.corpus


_laptop = TranslationOptions(
    hidden=256,
    dropout=0.3,
    training=Training(batch=64, samples=530_000, rate=2e-3, schedule="cosine", evaluate_every=16_000),
)

PRESETS = {
    "smoke": TranslationOptions(
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
    "paper": TranslationOptions(chinese="jieba"),
}
"""Presets; ``paper`` is one of the seven models of the paper, which differ in ``--seed``."""


@dataclass(frozen=True)
class TranslationEval(EvalOptions):
    """How to test a translator."""

    ensemble: Annotated[tuple[Path, ...], arg(metavar="RUN")] = ()
    """Further runs, to average their probabilities with those of the first."""
    beam: int | None = None
    """The beam size. Default: that of the run."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "beam", least=1, optional=True)

    @property
    def result(self) -> str:
        """The result of an ensemble is kept beside that of its first network."""
        return "ensemble" if self.ensemble else "evaluation"


@dataclass(frozen=True)
class TranslateOptions:
    """Translate lines from standard input to standard output; an empty line stays empty.

    The probabilities of several runs are averaged.
    """

    runs: RunPaths = ()
    """The directories of runs with the same languages and vocabularies.
    Default: the network that comes with the package, from Chinese to English."""
    beam: int = 20
    """The beam size; 1 takes the likeliest word each time."""
    longest: int = 400
    """Refuse lines with more words than this."""
    threads: Threads | None = None
    """The number of threads. Default: PyTorch's choice."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("beam", "longest", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions(RunFigure):
    """Draw how a network relates the words of two sentences.

    For a Reencoder: how much each block changes the memory of the source dimension.
    """

    kind: ClassVar[str] = "alignment"

    source: str | None = None
    """The source sentence."""
    target: str | None = None
    """Its translation. Default: the translation by the network."""
