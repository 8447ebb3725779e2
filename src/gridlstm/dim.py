"""The description of one dimension of a grid."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from gridlstm.cells import CELLS, Cell, Transfer, make_cell
from gridlstm.checks import check_positive

__all__ = ["Dim", "check_dims", "impure_error"]


@dataclass(frozen=True)
class Dim:
    """One dimension of a grid: what happens along it, and how its weights are shared.

    Args:
        name: how sides, sizes and parameters are addressed; a Python identifier, unique in the grid.
        transform: ``"lstm"`` puts LSTM cells along the dimension (Eq. 1), ``"peephole"`` LSTM cells
            with peepholes, ``"gru"`` gated recurrent units. ``"identity"``, ``"tanh"``, ``"relu"`` or a
            callable make it a non-LSTM dimension, ``h' = α(V H)`` (Eq. 8). It may also be a
            :class:`Cell` of your own.
        size: the number of blocks along the dimension; ``None`` takes it from the sides of each call.
        tied: share one set of weights *along* the dimension. An untied dimension has one set per
            position and therefore needs a ``size``.
        priority: compute this dimension's transform after the others, from their new hidden vectors
            (Eq. 7).
        reverse: travel from the last position to the first.
        shares_weights_with: the name of the dimension whose weights this one uses as well. This shares
            weights *among* dimensions, unlike ``tied``.
        hidden_size: the length of this dimension's vectors. Default: the grid's.

    Attributes:
        has_memory: whether a memory vector travels along this dimension with the hidden vector.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a name is not an identifier or is reserved, a transform is unknown, a size is
            not positive, an untied dimension has no size, or a callable has parameters or buffers.

    Notes:
        A callable transform must be a pure function of its argument that treats the leading axes
        independently: the engines call it on any number of blocks at once, and again in the backward
        pass. A ``torch.nn.Module`` is allowed if it has neither parameters nor buffers and computes
        the same in training and evaluation mode. :class:`GridLSTM` tests a callable and rejects it if
        it draws random numbers (``nn.Dropout``, ``nn.RReLU``), depends on earlier calls, mixes
        vectors (batch normalization) or uses parameters, which the grid would not train.

    >>> Dim("depth", size=18, priority=True)
    Dim('depth', size=18, priority=True)
    """

    name: str
    transform: str | Cell | Transfer = "lstm"
    size: int | None = None
    tied: bool = True
    priority: bool = False
    reverse: bool = False
    shares_weights_with: str | None = None
    hidden_size: int | None = None
    has_memory: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name: expected a string, got {self.name!r}")
        if not self.name.isidentifier():
            raise ValueError(f"name: expected a Python identifier, got {self.name!r}")
        if self.name in ("batch", "hidden"):
            raise ValueError(f"name: {self.name!r} is reserved for an axis of the sides")
        if isinstance(self.transform, str):
            if self.transform not in CELLS:
                raise ValueError(
                    f'dimension "{self.name}": transform: expected one of {", ".join(CELLS)}, '
                    f"a callable or a Cell, got {self.transform!r}"
                )
        elif isinstance(self.transform, type) or not (
            isinstance(self.transform, Cell) or callable(self.transform)
        ):
            raise TypeError(
                f'dimension "{self.name}": transform: expected a string, a callable or a Cell, '
                f"got {self.transform!r}"
            )
        elif isinstance(self.transform, nn.Module):
            for kind in ("parameters", "buffers"):
                if any(True for _ in getattr(self.transform, kind)()):
                    raise impure_error(self.name, self.transform, f"has {kind} of its own")
        for argument in ("tied", "priority", "reverse"):
            value = getattr(self, argument)
            if not isinstance(value, bool):
                raise TypeError(
                    f'dimension "{self.name}": {argument}: expected True or False, got {value!r}'
                )
        for argument in ("size", "hidden_size"):
            value = getattr(self, argument)
            if value is not None:
                check_positive(f'dimension "{self.name}": {argument}', value)
        if not self.tied and self.size is None:
            raise ValueError(
                f'dimension "{self.name}": size: expected a number because the dimension is untied '
                f"(one set of weights per position), got None"
            )
        object.__setattr__(self, "has_memory", make_cell(self.transform).has_memory)

    @property
    def cell_name(self) -> str:
        """The name of the cell or transfer function, as drawings show it."""
        cell = make_cell(self.transform)
        return (
            cell.name
            if cell is self.transform or isinstance(self.transform, str)
            else _shown(self.transform)
        )

    def __repr__(self) -> str:
        arguments = [repr(self.name)]
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                arguments.append(f"{name}={_shown(value)}")
        return f"Dim({', '.join(arguments)})"


def _shown(value: object) -> str:
    """The name of a function, the ``repr`` of anything else."""
    return value.__name__ if hasattr(value, "__name__") else repr(value)


def impure_error(name: str, transform: object, reason: str) -> ValueError:
    """The error for a transfer function that the engines cannot use."""
    shown = type(transform).__name__ if isinstance(transform, nn.Module) else _shown(transform)
    return ValueError(
        f'dimension "{name}": transform: expected a pure function of each vector, '
        f"got {shown}, which {reason}"
    )


_DEFAULTS = {
    name: argument.default
    for name, argument in Dim.__dataclass_fields__.items()
    if argument.init and name != "name"
}


def check_dims(dims: Sequence[Dim | str], hidden_size: int | None) -> tuple[Dim, ...]:
    """The dimensions of a grid, with names converted to :class:`Dim` and hidden sizes filled in.

    Raises:
        TypeError: if a dimension is neither a name nor a :class:`Dim`.
        ValueError: if there are none, a name is repeated, a hidden size is missing, or weights are
            shared with a dimension that has a different transform or hidden size.
    """
    if isinstance(dims, str) or not isinstance(dims, Sequence):
        raise TypeError(f"dims: expected a list of dimensions, got {dims!r}")
    if not dims:
        raise ValueError("dims: expected at least one dimension, got none")
    if hidden_size is not None:
        check_positive("hidden_size", hidden_size)
    checked: dict[str, Dim] = {}
    for item in dims:
        dim = Dim(item) if isinstance(item, str) else item
        if not isinstance(dim, Dim):
            raise TypeError(f"dims: expected names or Dim, got {item!r}")
        if dim.name in checked:
            raise ValueError(f'dims: dimension "{dim.name}" is listed twice')
        if dim.hidden_size is None:
            if hidden_size is None:
                raise ValueError(
                    f'dimension "{dim.name}": hidden_size: expected a number for the dimension or the '
                    f"grid, got None"
                )
            dim = replace(dim, hidden_size=hidden_size)
        checked[dim.name] = dim
    for dim in checked.values():
        if dim.shares_weights_with is not None:
            _check_sharing(dim, checked)
    return tuple(checked.values())


def _check_sharing(dim: Dim, dims: dict[str, Dim]) -> None:
    where = f'dimension "{dim.name}": shares_weights_with: '
    owner = dims.get(dim.shares_weights_with or "")
    if owner is None or owner is dim:
        others = [name for name in dims if name != dim.name]
        expected = f"one of {', '.join(others)}" if others else "None in a grid of one dimension"
        raise ValueError(f"{where}expected {expected}, got {dim.shares_weights_with!r}")
    if owner.shares_weights_with is not None:
        raise ValueError(
            f'{where}expected a dimension with its own weights, got "{owner.name}", which shares '
            f'those of "{owner.shares_weights_with}"'
        )
    if (dim.transform, dim.hidden_size) != (owner.transform, owner.hidden_size):
        raise ValueError(
            f'{where}expected the transform and hidden size of "{owner.name}", '
            f"{_shown(owner.transform)} and {owner.hidden_size}, got {_shown(dim.transform)} and "
            f"{dim.hidden_size}"
        )
