"""A Grid LSTM for images: the 3-LSTM over two spatial dimensions and depth."""

from collections.abc import Sequence

from torch import Tensor
from typing_extensions import Unpack

from gridlstm.cells import Cell, Transfer
from gridlstm.checks import check_options
from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.grid_stack import GridStack
from gridlstm.models.image_network import CORNERS, ImageNetwork, cut_patches
from gridlstm.models.projection import Projection
from gridlstm.sharing import Shareable
from gridlstm.state import State

__all__ = ["ImageGridLSTM"]


class ImageGridLSTM(Shareable, ImageNetwork):
    """Three-dimensional Grid LSTM over an image (appendix, Figure 11).

    Each non-overlapping patch is projected into the hidden and memory vectors that enter the depth
    dimension at its position. A layer is a sweep over rows and columns, from one corner of the image to
    the opposite one; the next layer starts from the next corner. The hidden and memory vectors that
    leave the last layer along depth, at all positions, are concatenated and go through a layer of
    ReLUs to the scores.

    Args:
        image_size: height and width of an image, or one number for both.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of sweeps.
        channels: the number of values per pixel.
        num_classes: the number of classes; ``None`` for a backbone, which has no classifier and
            returns :meth:`features`.
        class_names: the names of the classes, saved with the weights. Default: they have none.
        patch_size: the side of a patch in pixels; must divide height and width.
        depth: the transform along depth, as in :class:`Dim`: ``"lstm"``, or a non-LSTM transform such
            as the paper's ``"relu"``. Without a memory along depth, patches enter as hidden vectors
            only, and only these are read.
        tied: share one set of weights among the layers. Along rows and columns, weights are always
            tied.
        relu_size: the number of ReLUs; a backbone has none. The paper uses 4096, which hold nearly
            all of its parameters.
        options: any further argument of :class:`GridLSTM`.

    Variables:
        projection.linear.weight: ``[2 · hidden, channels · patch_size²]``, hidden vectors first; half
            of it without a memory along depth.
        stack.grids.K: the :class:`GridLSTM` of layer K, with the dimensions row, column and depth.
        relu.weight: ``[relu, rows · columns · feature_size]``; absent without classes.
        scores.weight: ``[classes, relu]``; absent without classes.
        names: a buffer with the names of the classes; absent without names.

    Attributes:
        feature_size: the length of a vector of :meth:`features`.

    Raises:
        TypeError: if an argument is unknown or of the wrong type.
        ValueError: if a number is not positive, ``patch_size`` does not divide the image, the
            transform is unknown, or there is not one name for each class.

    Notes:
        - Corners are taken clockwise, starting at the first row and column; a fifth layer starts where
          the first does.
        - Tied layers share their weights for rows, columns and depth, whatever their directions.

    >>> import torch
    >>> net = ImageGridLSTM((28, 20), 8, num_layers=4, patch_size=4, relu_size=16)
    >>> images = torch.rand(5, 1, 28, 20)
    >>> net(images).shape, net.features(images).shape
    (torch.Size([5, 10]), torch.Size([5, 7, 5, 16]))
    >>> backbone = ImageGridLSTM((28, 20), 8, patch_size=4, num_classes=None)
    >>> backbone(images).shape
    torch.Size([5, 7, 5, 16])
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        hidden_size: int = 100,
        num_layers: int = 4,
        *,
        channels: int = 1,
        num_classes: int | None = 10,
        class_names: Sequence[str] | None = None,
        patch_size: int = 2,
        depth: str | Cell | Transfer = "lstm",
        tied: bool = False,
        relu_size: int = 128,
        **options: Unpack[GridOptions],
    ) -> None:
        check_options(self, options, GridOptions.__annotations__)
        if not isinstance(tied, bool):
            raise TypeError(f"tied: expected True or False, got {tied!r}")
        along_depth = Dim("depth", depth, size=1)
        device, dtype = options.get("device"), options.get("dtype")
        super().__init__(
            image_size,
            hidden_size,
            num_layers,
            patch_size,
            shrinks=False,
            parts=2 if along_depth.has_memory else 1,
            channels=channels,
            num_classes=num_classes,
            class_names=class_names,
            relu_size=relu_size,
            device=device,
            dtype=dtype,
        )
        self.tied = tied
        grids = []
        for number in range(num_layers):
            up, left = CORNERS[number % len(CORNERS)]
            dims = [Dim("row", reverse=up), Dim("column", reverse=left), along_depth]
            grids.append(GridLSTM(dims, hidden_size, **options))
        if tied:
            for grid in grids[1:]:
                for name, parameter in grids[0].named_parameters():
                    setattr(grid, name, parameter)
        self.stack = GridStack(grids, "depth")
        self.projection = Projection(
            channels * patch_size**2,
            hidden_size,
            memory=along_depth.has_memory,
            bias=options.get("bias", True),
            device=device,
            dtype=dtype,
        )

    def sweep(self, images: Tensor) -> list[State]:
        """The outgoing depth side of each layer, ``[batch, rows, columns, hidden]``."""
        entering = self.projection(cut_patches(images, self.patch_size))
        return [out["depth"] for out in self.stack([{"depth": entering}])]

    def extra_repr(self) -> str:
        """The arguments that the submodules do not show."""
        return f"{super().extra_repr()}, tied={self.tied}"
