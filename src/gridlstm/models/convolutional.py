"""A small convolutional network, the usual kind of network for MNIST."""

from functools import partial

from torch import Tensor, nn
from typing_extensions import Unpack

from gridlstm.checks import check_options, check_positive
from gridlstm.models.image_network import ImageNetwork, ImageNetworkOptions
from gridlstm.state import State

__all__ = ["ConvolutionalNetwork"]


class ConvolutionalNetwork(ImageNetwork):
    """Layers of two 3 × 3 convolutions with ReLUs, followed by max pooling.

    Args:
        image_size: height and width of an image, or one number for both.
        hidden_size: the channels of the first layer. Each further layer has twice as many.
        num_layers: the number of layers.
        patch_size: the size of the pooling window; ``patch_size ** num_layers`` must divide height and
            width.
        options: any further argument of :class:`ImageNetwork`, as for :class:`ImageGridLSTM`.

    Variables:
        convolutions.K: layer K: two convolutions with ReLUs, and the pooling.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive, or the patches do not divide the image.

    >>> import torch
    >>> net = ConvolutionalNetwork(28, 8, relu_size=16)
    >>> images = torch.rand(5, 1, 28, 28)
    >>> net(images).shape, net.features(images).shape
    (torch.Size([5, 10]), torch.Size([5, 7, 7, 16]))
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        hidden_size: int = 32,
        num_layers: int = 2,
        *,
        patch_size: int = 2,
        **options: Unpack[ImageNetworkOptions],
    ) -> None:
        check_options(self, options, ImageNetworkOptions.__annotations__)
        check_positive("num_layers", num_layers)
        super().__init__(
            image_size,
            hidden_size,
            num_layers,
            patch_size,
            shrinks=True,
            parts=2 ** (num_layers - 1),
            **options,
        )
        device, dtype = options.get("device"), options.get("dtype")
        widths = [hidden_size * 2**number for number in range(num_layers)]
        convolve = partial(nn.Conv2d, kernel_size=3, padding=1, device=device, dtype=dtype)
        self.convolutions = nn.ModuleList(
            nn.Sequential(
                convolve(before, after),
                nn.ReLU(),
                convolve(after, after),
                nn.ReLU(),
                nn.MaxPool2d(patch_size),
            )
            for before, after in zip([self.channels, *widths], widths, strict=False)
        )

    def sweep(self, images: Tensor) -> list[State]:
        """The output of each layer, ``[batch, rows, columns, channels]``."""
        maps = []
        for layer in self.convolutions:
            images = layer(images)
            maps.append(State(images.permute(0, 2, 3, 1)))
        return maps
