"""Grids stacked on each other, each travelling in its own directions."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from torch import Tensor, nn

from gridlstm.drawing import Drawing, draw_stack
from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["GridStack"]


class GridStack(nn.Module):
    """A stack of grids along one dimension: what leaves a grid along it enters the next.

    In one grid all layers travel in the same directions. Where they differ, as in the translation model
    (section 4.4) and the image network (appendix), each layer is a grid of its own.

    Args:
        grids: the layers, from the first to the last; all have the same dimensions in the same order,
            each with its own directions and weights. A grid that is listed twice is tied.
        along: the dimension along which they are stacked.

    Raises:
        TypeError: if ``grids`` is not a list of :class:`GridLSTM`.
        ValueError: if there are no grids, or they do not fit each other.

    >>> import torch
    >>> from gridlstm import Dim
    >>> layers = [
    ...     GridLSTM([Dim("row", reverse=down), Dim("column", reverse=left), Dim("depth", size=1)], 8)
    ...     for down, left in [(False, False), (False, True), (True, True), (True, False)]
    ... ]
    >>> stack = GridStack(layers, along="depth")
    >>> out = stack([{"depth": State(torch.zeros(2, 5, 6, 8))}])
    >>> out[-1]["depth"].hidden.shape
    torch.Size([2, 5, 6, 8])
    """

    def __init__(self, grids: Sequence[GridLSTM], along: str) -> None:
        super().__init__()
        if isinstance(grids, nn.Module) or not isinstance(grids, Sequence):
            raise TypeError(f"grids: expected a list of GridLSTM, got {type(grids).__name__}")
        if not grids:
            raise ValueError("grids: expected at least one, got none")
        for k, grid in enumerate(grids):
            if not isinstance(grid, GridLSTM):
                raise TypeError(f"grids: expected a GridLSTM as layer {k}, got {type(grid).__name__}")
        names = [[dim.name for dim in grid.dims] for grid in grids]
        for k, listed in enumerate(names):
            if listed != names[0]:
                raise ValueError(
                    f"grids: expected dimensions {names[0]} in every layer, got {listed} in layer {k}"
                )
        if along not in names[0]:
            raise ValueError(f'along: expected one of {", ".join(names[0])}, got "{along}"')
        i = names[0].index(along)
        for k, (below, above) in enumerate(pairwise(grids)):
            leaving, entering = below.dims[i], above.dims[i]
            if (leaving.hidden_size, leaving.has_memory) != (entering.hidden_size, entering.has_memory):
                raise ValueError(
                    f'grids: "{along}" of layer {k} does not fit that of layer {k + 1}: '
                    f"expected {entering}, got {leaving}"
                )
        self.grids = nn.ModuleList(grids)
        self.along = along

    @property
    def layers(self) -> list[GridLSTM]:
        """The grids, from the first to the last."""
        return [grid for grid in self.grids if isinstance(grid, GridLSTM)]

    def draw(self) -> Drawing:
        """Draws the grids, as :meth:`GridLSTM.draw` does."""
        own = [next(grid.parameters()) for grid in self.layers]
        weights = [next(k for k, other in enumerate(own) if other is first) for first in own]
        return draw_stack([grid.dims for grid in self.layers], self.along, weights)

    def forward(
        self,
        sides: Sequence[Mapping[str, State]],
        *,
        lengths: Mapping[str, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> list[dict[str, State]]:
        """Runs the grids one after the other.

        Args:
            sides: for each layer, its incoming sides as in :meth:`GridLSTM.forward`; only the first
                may have one along the stack. The list may be shorter than the stack.
            lengths: how many positions of each sample are real, for all layers.
            mask: which blocks are real, for all layers.

        Returns:
            For each layer, its outgoing sides. The side of the last layer along the stack is the
            result; the other sides continue each layer in a later call.

        Raises:
            TypeError: if ``sides`` is not a list of mappings.
            ValueError: if there are more entries than layers, or a layer above the first has a side
                along the stack.
        """
        if isinstance(sides, Mapping) or not isinstance(sides, Sequence):
            raise TypeError(
                f"sides: expected a list with the sides of each layer, got {type(sides).__name__}"
            )
        if len(sides) > len(self.grids):
            raise ValueError(f"sides: expected at most {len(self.grids)} layers, got {len(sides)}")
        outgoing: list[dict[str, State]] = []
        for k, grid in enumerate(self.grids):
            entering = sides[k] if k < len(sides) else {}
            if not isinstance(entering, Mapping):
                raise TypeError(
                    f"sides: expected a mapping from names to State for layer {k}, "
                    f"got {type(entering).__name__}"
                )
            incoming = dict(entering)
            if k > 0:
                if self.along in incoming:
                    raise ValueError(
                        f'sides: layer {k} receives "{self.along}" from layer {k - 1}, got a second one'
                    )
                incoming[self.along] = outgoing[-1][self.along]
            outgoing.append(grid(incoming, lengths=lengths, mask=mask))
        return outgoing
