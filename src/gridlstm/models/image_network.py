"""The base class of image networks: patches, checks of images, and a classifier on top."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.checks import check_positive, check_tensor
from gridlstm.models.projection import read
from gridlstm.state import State

__all__ = ["CORNERS", "ImageNetwork", "ImageNetworkOptions", "cut_patches", "decode_names"]

CORNERS = ((False, False), (False, True), (True, True), (True, False))
"""For each corner, whether a sweep from it reverses the rows and the columns."""


def cut_patches(images: Tensor, size: int) -> Tensor:
    """Cuts images into non-overlapping patches, ``[batch, rows, columns, channels · size · size]``.

    Args:
        images: ``[batch, channels, height, width]``, height and width multiples of ``size``.
        size: the side of a patch in pixels.

    >>> image = torch.arange(16).view(1, 1, 4, 4)
    >>> cut_patches(image, 2)[0, 0, 1]
    tensor([2, 3, 6, 7])
    """
    cut = images.unfold(2, size, size).unfold(3, size, size)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3)


class ImageNetworkOptions(TypedDict, total=False):
    """The arguments of :class:`ImageNetwork` that networks pass on to it."""

    channels: int
    num_classes: int | None
    class_names: Sequence[str] | None
    relu_size: int
    device: torch.device | str | None
    dtype: torch.dtype | None


class ImageNetwork(nn.Module, ABC):
    """Layers of maps over an image, with a layer of ReLUs and scores on top of the last (appendix).

    A map has a vector at each of ``rows × columns`` positions. The vectors of the last map are
    concatenated and classified. Without classes the network is a backbone: it has no classifier, and
    its output is the last map.

    Args:
        image_size: height and width of an image, or one number for both.
        hidden_size: the width of a layer.
        num_layers: the number of layers.
        patch_size: the side of a patch in pixels.
        shrinks: whether every layer reduces patches to positions, or only the first.
        parts: the length of a vector of the last map, in multiples of ``hidden_size``.
        channels: the number of values per pixel.
        num_classes: the number of classes; ``None`` for a backbone without a classifier.
        class_names: the names of the classes, saved with the weights. Default: they have none.
        relu_size: the number of ReLUs; a backbone has none. The paper's networks have 2048 or 4096,
            which hold most of their parameters.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Variables:
        relu.weight: ``[relu, rows · columns · features]``; absent without classes.
        scores.weight: ``[classes, relu]``; absent without classes.
        names: a buffer of bytes with the names of the classes as JSON; absent without names.

    Attributes:
        feature_size: the length of a vector of :meth:`features`.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive, ``patch_size`` does not divide the image, or there is
            not one name for each class.
    """

    names: Tensor | None

    def __init__(
        self,
        image_size: int | tuple[int, int],
        hidden_size: int,
        num_layers: int,
        patch_size: int,
        *,
        shrinks: bool,
        parts: int,
        channels: int = 1,
        num_classes: int | None = 10,
        class_names: Sequence[str] | None = None,
        relu_size: int = 128,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        height, width = _check_image_size(image_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_positive("patch_size", patch_size)
        check_positive("channels", channels)
        if num_classes is not None:
            check_positive("num_classes", num_classes)
        check_positive("relu_size", relu_size)
        self.image_size = (height, width)
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.patch_size = patch_size
        self.shrinks = shrinks
        self.feature_size = parts * hidden_size
        self.channels = channels
        self.num_classes = num_classes
        self.relu_size = relu_size
        self._check_divided("image_size", height, width)
        self.register_buffer("names", _encode_names(class_names, num_classes))
        self.relu: nn.Linear | None = None
        self.scores: nn.Linear | None = None
        if num_classes is not None:
            inputs = (height // self.scale) * (width // self.scale) * self.feature_size
            self.relu = nn.Linear(inputs, relu_size, device=device, dtype=dtype)
            self.scores = nn.Linear(relu_size, num_classes, device=device, dtype=dtype)
            self._reset_classifier(self.relu, self.scores)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, if they have names."""
        return None if self.names is None else decode_names(bytes(self.names.tolist()))

    @property
    def scale(self) -> int:
        """The side of a position of the last map, in pixels."""
        return int(self.patch_size ** (self.num_layers if self.shrinks else 1))

    @torch.no_grad()
    def _reset_classifier(self, relu: nn.Linear, scores: nn.Linear) -> None:
        """He-uniform weights before the ReLUs, Glorot-uniform weights after them, biases 0."""
        nn.init.kaiming_uniform_(relu.weight, nonlinearity="relu")
        nn.init.xavier_uniform_(scores.weight)
        for layer in (relu, scores):
            layer.bias.zero_()

    @abstractmethod
    def sweep(self, images: Tensor) -> list[State]:
        """The maps of all layers. The images have been checked."""

    def layers(self, images: Tensor) -> list[State]:
        """The map of each layer, from the first to the last.

        Args:
            images: ``[batch, channels, height, width]``; ``patch_size`` must divide height and width.

        Returns:
            For each layer its hidden vectors and, if there are cells along depth, its memory vectors,
            each ``[batch, rows, columns, ...]``.

        Raises:
            TypeError: if the images are not a tensor or have another dtype than the parameters.
            ValueError: if their shape is wrong.
        """
        like = next(self.parameters())
        check_tensor("images", images, ["batch", self.channels, "height", "width"], like)
        self._check_divided("images", *images.shape[2:])
        return self.sweep(images)

    def features(self, images: Tensor) -> Tensor:
        """The last layer's vectors, hidden and memory side by side.

        Args:
            images: as in :meth:`layers`; they may differ in size from ``image_size``.

        Returns:
            ``[batch, rows, columns, feature_size]``.

        Raises:
            TypeError, ValueError: as in :meth:`layers`.
        """
        return read(self.layers(images)[-1], "both")

    def forward(self, images: Tensor) -> Tensor:
        """The scores (logits) of the classes or, for a backbone, the features.

        Args:
            images: ``[batch, channels, *image_size]``; for a backbone, any size as in :meth:`layers`.

        Returns:
            ``[batch, num_classes]``; for a backbone, the result of :meth:`features`.

        Raises:
            TypeError: if the images are not a tensor or have another dtype than the parameters.
            ValueError: if their shape is wrong.
        """
        if self.relu is None or self.scores is None:
            return self.features(images)
        check_tensor("images", images, ["batch", self.channels, *self.image_size], self.relu.weight)
        scores: Tensor = self.scores(F.relu(self.relu(self.features(images).flatten(1))))
        return scores

    def extra_repr(self) -> str:
        """The arguments that the submodules do not show."""
        height, width = self.image_size
        return f"{height} × {width}, patch_size={self.patch_size}"

    def _check_divided(self, name: str, *sizes: int) -> None:
        if any(size < 1 or size % self.scale for size in sizes):
            power = f" to the power of num_layers {self.num_layers}" if self.shrinks else ""
            raise ValueError(
                f"{name}: expected height and width to be multiples of patch_size "
                f"{self.patch_size}{power}, got {' × '.join(map(str, sizes))}"
            )


def _check_image_size(image_size: int | tuple[int, int]) -> tuple[int, int]:
    sizes = image_size if isinstance(image_size, tuple | list) else (image_size, image_size)
    if len(sizes) != 2:
        raise ValueError(f"image_size: expected height and width, got {image_size!r}")
    for size in sizes:
        check_positive("image_size", size)
    return sizes[0], sizes[1]


def _encode_names(names: Sequence[str] | None, num_classes: int | None) -> Tensor | None:
    """The names of classes as a tensor of bytes."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"class_names: expected a list of strings, got {names!r}")
    if len(set(names)) != len(names) or len(names) != num_classes:
        raise ValueError(
            f"class_names: expected a different name for each of the {num_classes} classes, "
            f"got {list(names)}"
        )
    return torch.tensor(list(json.dumps(list(names)).encode()), dtype=torch.uint8)


def decode_names(encoded: bytes) -> tuple[str, ...]:
    """The names of classes in the buffer of a network.

    Raises:
        ValueError: if it holds anything else.
    """
    names = json.loads(encoded)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("expected a list of strings, got something else")
    return tuple(names)
