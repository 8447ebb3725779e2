"""What a drawing needs to know about a dimension, and what it says about it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gridlstm.ranges import check_number

__all__ = ["ShownDim", "call_sizes", "describe", "describe_side", "name_cell"]

_CELLS = {
    "lstm": "LSTM",
    "peephole": "LSTM with peepholes",
    "gru": "GRU",
}


class ShownDim(Protocol):
    """A dimension as drawings see it; a :class:`~gridlstm.Dim` is one."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def size(self) -> int | None:
        """The number of blocks along it, or ``None`` if that is known only when the grid is called."""

    @property
    def tied(self) -> bool:
        """Whether weights are shared along it."""

    @property
    def priority(self) -> bool:
        """Whether its transform is computed after the others."""

    @property
    def reverse(self) -> bool:
        """Whether it is travelled from the last position to the first."""

    @property
    def shares_weights_with(self) -> str | None:
        """The dimension whose weights it uses as well."""

    @property
    def hidden_size(self) -> int | None:
        """The length of its vectors."""

    @property
    def has_memory(self) -> bool:
        """Whether a memory vector travels along it."""

    @property
    def cell_name(self) -> str:
        """The name of its cell or of its transfer function."""


def name_cell(dim: ShownDim) -> str:
    """The name of a dimension's transform, as in ``"LSTM"`` or ``"tanh(V H)"``."""
    known = _CELLS.get(dim.cell_name)
    if known is not None or dim.has_memory:
        return known or dim.cell_name
    return "V H" if dim.cell_name == "identity" else f"{dim.cell_name}(V H)"


def describe(dim: ShownDim, size: int | None) -> str:
    """A line about a dimension: its size, cells, weights, direction and priority."""
    facts = ["any length" if size is None else f"{size} block{'s' * (size != 1)}"]
    if dim.has_memory or dim.cell_name in _CELLS:
        facts.append(f"{name_cell(dim)} cells")
    else:
        facts.append(f"no cells, h' = {name_cell(dim)}")
    facts.append("tied" if dim.tied else "untied: weights for each position")
    if dim.shares_weights_with is not None:
        facts.append(f'uses the weights of "{dim.shares_weights_with}"')
    if dim.reverse:
        facts.append("travelled backwards")
    if dim.priority:
        facts.append("priority: computed last, from the new vectors")
    return f"{dim.name}: {', '.join(facts)}"


def describe_side(dims: Sequence[ShownDim], sizes: Sequence[int | None], dimension: int) -> str:
    """The shape of a side, as in ``[batch, depth=18, 64]``."""
    others = [
        dim.name if size is None else f"{dim.name}={size}"
        for i, (dim, size) in enumerate(zip(dims, sizes, strict=True))
        if i != dimension
    ]
    return f"[{', '.join(['batch', *others, str(dims[dimension].hidden_size or 'hidden')])}]"


def call_sizes(dims: Sequence[ShownDim], given: Mapping[str, int] | None) -> list[int | None]:
    """The sizes of a call: those of the dimensions, and those given for the others.

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if a name is unknown, or a size is below 1 or differs from the dimension's.
    """
    sizes = {dim.name: dim.size for dim in dims}
    for name, size in (given or {}).items():
        if name not in sizes:
            raise ValueError(f'sizes: unknown dimension "{name}", expected some of {", ".join(sizes)}')
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f'sizes: "{name}": expected an integer, got {size!r}')
        check_number(f'sizes: "{name}"', size, least=1)
        if sizes[name] not in (None, size):
            raise ValueError(f'sizes: "{name}": expected {sizes[name]}, its size, got {size}')
        sizes[name] = size
    return list(sizes.values())
