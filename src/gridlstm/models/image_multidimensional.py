"""Layers of Multidimensional LSTM over an image, to compare with the 3-LSTM."""

from torch import Tensor, nn
from typing_extensions import Unpack

from gridlstm.checks import check_options
from gridlstm.models.image_network import CORNERS, ImageNetwork, ImageNetworkOptions, cut_patches
from gridlstm.models.multidimensional import MultidimensionalLSTM
from gridlstm.state import State

__all__ = ["ImageMultidimensionalLSTM"]


class ImageMultidimensionalLSTM(ImageNetwork):
    """Multidimensional LSTM over the patches of an image, one or more layers of it (section 2.3).

    Layers sweep like those of :class:`ImageGridLSTM`, each from the next corner, and pass on hidden
    vectors only: there are no cells along depth.

    Args:
        image_size: height and width of an image, or one number for both.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of sweeps.
        patch_size: the side of a patch in pixels; must divide height and width.
        forget_bias: the initial bias of the forget gates.
        options: any further argument of :class:`ImageNetwork`, as for :class:`ImageGridLSTM`.

    Variables:
        sweeps.K: the one-layer :class:`MultidimensionalLSTM` of layer K.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive, or the patches do not divide the image.

    Notes:
        A block adds up two memories (Eq. 4), so the sum of their forget gates has to stay below 1: they
        start at 0.27 each, with a bias of -1. With the usual bias of 1, or even with 0, memories grow
        from step to step across the image.

    >>> import torch
    >>> net = ImageMultidimensionalLSTM(28, 8, num_layers=2, patch_size=4, relu_size=16)
    >>> net(torch.rand(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        hidden_size: int = 100,
        num_layers: int = 4,
        *,
        patch_size: int = 2,
        forget_bias: float = -1.0,
        **options: Unpack[ImageNetworkOptions],
    ) -> None:
        check_options(self, options, ImageNetworkOptions.__annotations__)
        super().__init__(
            image_size,
            hidden_size,
            num_layers,
            patch_size,
            shrinks=False,
            parts=1,
            **options,
        )
        self.sweeps = nn.ModuleList(
            MultidimensionalLSTM(
                hidden_size if number else self.channels * patch_size**2,
                hidden_size,
                num_dims=2,
                directions=[CORNERS[number % len(CORNERS)]],
                forget_bias=forget_bias,
                device=options.get("device"),
                dtype=options.get("dtype"),
            )
            for number in range(num_layers)
        )

    def sweep(self, images: Tensor) -> list[State]:
        """The hidden vectors of each layer, ``[batch, rows, columns, hidden]``."""
        vectors, maps = cut_patches(images, self.patch_size), []
        for layer in self.sweeps:
            vectors = layer(vectors).hidden
            maps.append(State(vectors))
        return maps
