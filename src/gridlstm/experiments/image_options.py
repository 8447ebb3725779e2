"""What can be asked of the experiment on images, and its presets. No PyTorch here."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from gridlstm.fields import Layers, check_fields, check_types
from gridlstm.training.settings import Training

__all__ = ["IMAGES", "Images"]

SIDE = 28
"""Pixels of an image of MNIST, along each axis."""
SHRINKING = ("renet", "convolutional")
"""Networks of which every layer makes one position of a patch, not only the first."""


@dataclass(frozen=True)
class Images:
    """Recognise handwritten digits (appendix, Figures 11 and 12)."""

    dataset: Literal["sample", "mnist"] = "sample"
    """The images: a sample that comes with the package, or all of MNIST."""
    network: Literal[
        "untied-grid",
        "tied-grid",
        "untied-relu-grid",
        "tied-relu-grid",
        "multidimensional",
        "renet",
        "convolutional",
    ] = "untied-grid"
    """Which network learns: 3-LSTM with cells or ReLUs along depth, its weights tied along depth or
    not; Multidimensional LSTM, ReNet or a convolutional network."""
    layers: Layers = 4
    """Layers, each of which sweeps from the next corner; of a ReNet or a convolutional network, layers
    that each make one position of a patch."""
    hidden: int = 100
    """The length of hidden and memory vectors; channels of the first convolutions."""
    patch: int = 2
    """Pixels of a patch, along each axis. The image is cropped to a multiple."""
    relu: int = 4096
    """Units of the layer of ReLUs on top."""
    forget_bias: float | None = None
    """The initial bias of the forget gates. Default: 1, and -1 in a Multidimensional
    LSTM. Not for a ReNet or a convolutional network, which have none."""
    shift: int = 4
    """Shift images in training by up to this many pixels along each axis."""
    retrain: bool = False
    """Train on the validation images, too, and keep the last network, not the best. The error told in
    training is then that of images that the network learns from."""
    training: Training = field(
        default_factory=lambda: Training(batch=128, samples=2_500_000, evaluate_every=50_000)
    )
    """How to train. An epoch of MNIST has 50,000 samples."""

    name: ClassVar[str] = "images"
    measure: ClassVar[str] = "error"
    further: ClassVar[str] = "plot {run} --kind mistakes  # the test images it gets wrong"

    def __post_init__(self) -> None:
        check_types(self)
        check_fields(self, "layers", "hidden", "relu", least=1)
        check_fields(self, "patch", least=1, most=SIDE)
        check_fields(self, "shift", least=0, below=SIDE)
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
    def positions(self) -> int:
        """Patches of an image, at the first layer."""
        return (self.side // self.patch) ** 2

    @property
    def side(self) -> int:
        """Pixels that are looked at, along each axis."""
        return SIDE - SIDE % self.patch


IMAGES = {
    "smoke": Images(
        layers=2,
        hidden=16,
        patch=7,
        relu=32,
        training=Training(batch=50, samples=3000, rate=1e-2, evaluate_every=1500),
    ),
    "small": Images(
        hidden=32,
        patch=4,
        relu=256,
        training=Training(batch=32, samples=45_000, rate=3e-3, schedule="cosine", evaluate_every=4500),
    ),
    "laptop": Images(
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
    "paper": replace(Images(), dataset="mnist"),
}
"""By preset; ``paper`` is the 3-LSTM with cells along depth."""
