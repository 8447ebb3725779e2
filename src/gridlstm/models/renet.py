"""ReNet (Visin et al., 2015): recurrent networks that sweep an image in four directions."""

from functools import partial
from typing import Any, Literal, get_args

from torch import Tensor, nn
from typing_extensions import Unpack

from gridlstm.checks import check_choice, check_options
from gridlstm.models.image_network import ImageNetwork, ImageNetworkOptions, cut_patches
from gridlstm.state import State

__all__ = ["ReNet"]

Unit = Literal["gru", "lstm"]
"""The cells of a ReNet's recurrent networks."""


class ReNet(ImageNetwork):
    """A stack of recurrent networks that each run in one direction (Visin et al., 2015).

    A layer cuts its input into patches. Two recurrent networks run down and up every column of
    patches; two more run along every row, and read the concatenated outputs of the first two.

    Args:
        image_size: height and width of an image, or one number for both.
        hidden_size: the length of the hidden vectors of each of a layer's four networks.
        num_layers: the number of layers.
        patch_size: the side of a patch in positions, in every layer; ``patch_size ** num_layers`` must
            divide height and width.
        unit: ``"gru"`` or ``"lstm"``.
        options: any further argument of :class:`ImageNetwork`, as for :class:`ImageGridLSTM`.

    Variables:
        down.K: the bidirectional network along the columns of layer K.
        across.K: the bidirectional network along its rows.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a number is not positive, the patches do not divide the image, or the unit is
            unknown.

    >>> import torch
    >>> net = ReNet(28, 8, num_layers=2, relu_size=16)
    >>> images = torch.rand(5, 1, 28, 28)
    >>> net(images).shape, net.features(images).shape
    (torch.Size([5, 10]), torch.Size([5, 7, 7, 16]))
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        hidden_size: int = 256,
        num_layers: int = 2,
        *,
        patch_size: int = 2,
        unit: Unit = "gru",
        **options: Unpack[ImageNetworkOptions],
    ) -> None:
        check_options(self, options, ImageNetworkOptions.__annotations__)
        check_choice("unit", unit, get_args(Unit))
        super().__init__(
            image_size,
            hidden_size,
            num_layers,
            patch_size,
            shrinks=True,
            parts=2,
            **options,
        )
        shared: dict[str, Any] = {
            "batch_first": True,
            "bidirectional": True,
            "device": options.get("device"),
            "dtype": options.get("dtype"),
        }
        make = partial(nn.GRU if unit == "gru" else nn.LSTM, hidden_size=hidden_size, **shared)
        widths = [self.channels, *[2 * hidden_size] * (num_layers - 1)]
        self.down = nn.ModuleList(make(width * patch_size**2) for width in widths)
        self.across = nn.ModuleList(make(2 * hidden_size) for _ in widths)

    def sweep(self, images: Tensor) -> list[State]:
        """The output of each layer, ``[batch, rows, columns, 2 · hidden]``."""
        maps = []
        for down, across in zip(self.down, self.across, strict=True):
            patches = cut_patches(images, self.patch_size)
            columns = _along_rows(down, patches.transpose(1, 2)).transpose(1, 2)
            vectors = _along_rows(across, columns)
            maps.append(State(vectors))
            images = vectors.permute(0, 3, 1, 2)
        return maps


def _along_rows(network: nn.Module, vectors: Tensor) -> Tensor:
    """Runs a network along each row of ``[batch, rows, columns, ...]``."""
    output: Tensor = network(vectors.flatten(0, 1))[0]
    return output.view(*vectors.shape[:-1], output.shape[-1])
