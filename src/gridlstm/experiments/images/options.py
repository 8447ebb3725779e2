"""The options of the experiment on images, its presets, figures and command. No PyTorch here."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tyro.conf import Positional, arg

from gridlstm.command import DataFolder
from gridlstm.experiments.record import Options
from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.figures.options import RunFigure
from gridlstm.training.settings import Training

__all__ = [
    "PRESETS",
    "ActivationsOptions",
    "ClassifyOptions",
    "ConfusionOptions",
    "ImageOptions",
    "MistakesOptions",
]

SIDE = 28
"""The number of pixels of an image of MNIST along each axis."""
LARGEST = 1024
"""The largest side of own pictures. A grid has a block for every patch, one after the other."""
SHRINKING = ("renet", "convolutional")
"""Networks in which every layer, not only the first, turns patches into single positions."""


NETWORKS = {
    "untied-grid": "3-LSTM",
    "tied-grid": "3-LSTM, tied",
    "untied-relu-grid": "3-LSTM with ReLU depth",
    "tied-relu-grid": "3-LSTM with ReLU depth, tied",
    "multidimensional": "Multidimensional LSTM",
    "renet": "ReNet",
    "convolutional": "convolutional network",
}
"""What tables and figures call the networks."""


@dataclass(frozen=True)
class ImageOptions(Options):
    """Recognise handwritten digits, or your own classes of pictures (appendix, Figures 11 and 12)."""

    dataset: Literal["sample", "mnist"] = "sample"
    """The images: a sample that comes with the package, or all of MNIST."""
    folder: str | None = None
    """A folder to use instead of a dataset, with a folder of pictures for each class.
    Or with such folders in its folders train, valid and test."""
    pixels: int = SIDE
    """With --folder: pictures are resized to this many pixels along each axis."""
    colour: bool = False
    """With --folder: keep the colours of the pictures. Default: shades of grey."""
    network: Literal[
        "untied-grid",
        "tied-grid",
        "untied-relu-grid",
        "tied-relu-grid",
        "multidimensional",
        "renet",
        "convolutional",
    ] = "untied-grid"
    """The network to train: 3-LSTM with cells or ReLUs along depth, tied or untied along depth,
    Multidimensional LSTM, ReNet or a convolutional network."""
    layers: Layers = 4
    """The number of layers. Each starts from the next corner of the image.
    In a ReNet or a convolutional network, each turns patches into single positions."""
    hidden: int = 100
    """The length of hidden and memory vectors, or the channels of the first convolution."""
    patch: int = 2
    """The number of pixels of a patch along each axis. Images are cropped to a multiple."""
    relu: int = 4096
    """The number of units of the ReLU layer before the scores."""
    forget_bias: float | None = None
    """The initial bias of the forget gates. Default: 1, and -1 in a Multidimensional LSTM.
    A ReNet or a convolutional network has no forget gates."""
    shift: int = 4
    """In training, shift images by up to this many pixels along each axis."""
    retrain: bool = False
    """Also train on the validation images, and keep the last network, not the best.
    The reported validation error is then that of training images."""
    training: Training = field(
        default_factory=lambda: Training(batch=128, samples=2_500_000, evaluate_every=50_000)
    )
    """How to train. An epoch of MNIST has 50,000 samples."""

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "layers", "hidden", "relu", least=1)
        check_fields(self, "pixels", least=1, most=LARGEST)
        check_fields(self, "patch", least=1, most=self.pixels)
        check_fields(self, "shift", least=0, below=self.pixels)
        if self.folder is None and (self.pixels != SIDE or self.colour):
            raise ValueError("pixels, colour: only for own pictures; expected a folder, got none")
        if self.network in SHRINKING and self.forget_bias is not None:
            raise ValueError(
                f"forget_bias: expected None for {self.network}, which has no forget gates, "
                f"got {self.forget_bias}"
            )
        if self.network in SHRINKING and self.side % self.patch**self.layers:
            raise ValueError(
                f"layers: expected patch {self.patch} to the power of layers to divide {self.side} "
                f"pixels for {self.network}, got {self.layers}"
            )

    @property
    def size(self) -> str:
        """The name of the data set."""
        return self.dataset if self.folder is None else Path(self.folder).absolute().name

    @property
    def channels(self) -> int:
        """The number of values per pixel."""
        return 3 if self.colour else 1

    @property
    def stored_layers(self) -> int:
        """All of them, or only the largest if layers shrink."""
        return 1 if self.network in SHRINKING else self.layers

    @property
    def positions(self) -> int:
        """The number of patches of an image at the first layer."""
        return (self.side // self.patch) ** 2

    @property
    def side(self) -> int:
        """The number of pixels of the cropped image along each axis."""
        return self.pixels - self.pixels % self.patch


PRESETS = {
    "smoke": ImageOptions(
        layers=2,
        hidden=16,
        patch=7,
        relu=32,
        training=Training(batch=50, samples=3000, rate=1e-2, evaluate_every=1500),
    ),
    "small": ImageOptions(
        hidden=32,
        patch=4,
        relu=256,
        training=Training(batch=32, samples=45_000, rate=3e-3, schedule="cosine", evaluate_every=4500),
    ),
    "laptop": ImageOptions(
        dataset="mnist",
        hidden=64,
        relu=512,
        training=Training(
            batch=128,
            samples=400_000,
            minutes=120,
            rate=2e-3,
            schedule="cosine",
            evaluate_every=50_000,
        ),
    ),
    "paper": replace(ImageOptions(), dataset="mnist"),
}
"""Options by preset; ``paper`` is the 3-LSTM with cells along depth."""


PicturePaths = Annotated[tuple[Path, ...], Positional, arg(name="image", metavar="[RUN] IMAGE...")]


@dataclass(frozen=True)
class ClassifyOptions:
    """Recognise the digit or the class of each picture, with a network trained on images."""

    paths: PicturePaths
    """Pictures in any usual format; for digits one each, dark on light or light on dark.
    RUN is the directory of a run. Default: the network that comes with the package."""

    def __post_init__(self) -> None:
        if not self.images:
            raise ValueError("IMAGE: expected at least one picture, got none")

    @property
    def run(self) -> Path | None:
        """The first path, if it is a directory."""
        return next((path for path in self.paths[:1] if path.is_dir()), None)

    @property
    def images(self) -> tuple[Path, ...]:
        """The pictures."""
        return self.paths if self.run is None else self.paths[1:]


@dataclass(frozen=True, kw_only=True)
class DigitsFigure(RunFigure):
    """A figure of a run and its test images."""

    data: DataFolder = None
    """The directory of data sets, as for train."""


@dataclass(frozen=True, kw_only=True)
class ConfusionOptions(DigitsFigure):
    """Draw the confusion matrix of the test images."""

    kind: ClassVar[str] = "confusion"


@dataclass(frozen=True, kw_only=True)
class MistakesOptions(DigitsFigure):
    """Draw the misclassified test images."""

    kind: ClassVar[str] = "mistakes"


@dataclass(frozen=True, kw_only=True)
class ActivationsOptions(DigitsFigure):
    """Draw the hidden and memory vectors over one image, layer by layer."""

    kind: ClassVar[str] = "activations"

    input: str = "0"
    """The number of a test image, or the path of a picture."""
