"""The protocol between a dimension's transform and the engines."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from gridlstm.state import State

__all__ = ["Cell", "CellGradients", "Vectors"]

Vectors = Mapping[str, Tensor]
"""The learned vectors of a cell by name, each ``[..., count · d]``."""


class CellGradients(NamedTuple):
    """Gradients of the inputs of a cell other than its preactivations; ``None`` for those it ignores.

    ``hidden`` and ``memory`` are the gradients of the dimension's old vectors, ``[..., d]``;
    ``vectors`` are those of its learned vectors, by name, in the shape in which they were given.
    """

    hidden: Tensor | None = None
    memory: Tensor | None = None
    vectors: Vectors = MappingProxyType({})


class Cell(ABC):
    """A dimension's transform, starting from its preactivations. A cell has no parameters.

    A block multiplies ``H`` (Eq. 5) by the weights of a dimension and adds the bias. The cell computes
    the dimension's new vectors from the result, from its old vectors and from learned vectors.
    :meth:`forward`, in plain autograd, is its specification. The fast engine calls :meth:`forward_` and
    :meth:`backward_`, which by default use :meth:`forward`; a cell may override them for speed. All
    methods accept any leading axes.

    Attributes:
        name: the name in messages and for the compiled kernel.
        gates: the number of matrices ``[d, H]`` in a weight.
        rows: the number of vectors ``[d]`` in the preactivations, and in a bias. Default: ``gates``; a
            cell whose :meth:`expand` adds rows overrides it.
        has_memory: whether a memory vector travels with the hidden vector.
        reads_hidden: whether the new vectors depend on the dimension's old hidden vector directly, not
            only by way of ``H``.
        vectors: the learned vectors that the cell reads besides, such as peepholes: for each name, the
            number of vectors ``[d]``. Dimension ``x`` of a grid has a parameter ``NAME_x`` for each. A
            name that ends with ``bias`` stands for zero in a grid without biases. A cell that lists
            ``bias`` itself adds the bias of its preactivations; the block does not.

    >>> class Leaky(Cell):
    ...     name, reads_hidden = "leaky", True
    ...     def forward(self, preactivation, old, vectors):
    ...         return State(0.9 * old.hidden + 0.1 * preactivation.tanh())
    >>> from gridlstm import Dim, GridLSTM
    >>> grid = GridLSTM([Dim("time", Leaky()), Dim("depth", size=2)], hidden_size=4)
    >>> grid({"depth": State(torch.zeros(3, 5, 4))})["time"].hidden.shape
    torch.Size([3, 2, 4])
    """

    name: str
    gates: int = 1
    has_memory: bool = False
    reads_hidden: bool = False

    @property
    def rows(self) -> int:
        """The number of vectors in the preactivations."""
        return self.gates

    @property
    def vectors(self) -> Mapping[str, int]:
        """The number of learned vectors, by name."""
        return {}

    def split_vectors(self, joined: Tensor | None) -> dict[str, Tensor]:
        """The learned vectors by name, from all of them side by side, ``[..., sum of counts · d]``."""
        if joined is None or not self.vectors:
            return {}
        d = joined.shape[-1] // sum(self.vectors.values())
        parts = joined.split([count * d for count in self.vectors.values()], -1)
        return dict(zip(self.vectors, parts, strict=True))

    @abstractmethod
    def forward(self, preactivation: Tensor, old: State, vectors: Vectors) -> State:
        """Computes the new vectors, ``[..., d]``.

        Args:
            preactivation: ``[..., rows · d]``.
            old: the dimension's old vectors, ``[..., d]``; with a memory if ``has_memory``.
            vectors: the learned vectors.
        """

    def forward_(self, gates: Tensor, old: State, vectors: Vectors) -> State:
        """Like :meth:`forward`; may overwrite ``gates`` with what :meth:`backward_` needs."""
        return self.forward(gates.clone(), old, vectors)  # A copy, because it may work in place.

    def backward_(self, gates: Tensor, old: State, grad: State, vectors: Vectors) -> CellGradients:
        """The backward of :meth:`forward_`.

        Reads ``gates`` as :meth:`forward_` left them, and overwrites them with the gradients of the
        preactivations.

        Args:
            gates: ``[..., rows · d]``.
            old: as given to :meth:`forward_`.
            grad: the gradients of the new vectors.
            vectors: as given to :meth:`forward_`.
        """

        def leaf(tensor: Tensor) -> Tensor:
            return tensor.detach().requires_grad_()

        rows, own = leaf(gates), old.map(leaf)
        learned = {name: leaf(tensor) for name, tensor in vectors.items()}
        with torch.enable_grad():
            new = self.forward(rows.clone(), own, learned)
        inputs = [rows, *(t for t in own if t is not None), *learned.values()]
        pairs = [(y, g) for y, g in zip(new, grad, strict=True) if y is not None and y.requires_grad]
        results = [torch.zeros_like(t) for t in inputs]  # Unless it is not constant.
        if pairs:
            outputs, grads = zip(*pairs, strict=True)
            results = list(torch.autograd.grad(outputs, inputs, grads, materialize_grads=True))
        gates.copy_(results[0])
        left = iter(results[1:])
        return CellGradients(*own.map(lambda _: next(left)), {name: next(left) for name in learned})

    def expand(self, weight: Tensor, own_columns: slice) -> Tensor:
        """The matrix that ``H`` is multiplied by, ``[..., rows · d, H]``.

        Args:
            weight: ``[..., gates · d, H]``.
            own_columns: the columns of the dimension's own hidden vector in ``H``.
        """
        return weight

    def reset_bias_(self, bias: Tensor, forget_bias: float) -> None:
        """Sets a bias ``[..., rows · d]`` to its initial value."""
        bias.zero_()

    def reset_vector_(self, name: str, values: Tensor) -> None:
        """Sets a learned vector, ``[..., count · d]``, to its initial value. Default: zero."""
        values.zero_()

    def normalised(self) -> "Cell":
        """The cell that follows layer-normalised preactivations. Default: the same cell."""
        return self

    def encode_gates(self, gates: Tensor, dtype: torch.dtype) -> Tensor:
        """Encodes what :meth:`forward_` left so that a low-precision ``dtype`` loses little of it."""
        return gates

    def decode_gates(self, encoded: Tensor, dtype: torch.dtype) -> Tensor:
        """The inverse of :meth:`encode_gates`, up to the precision of ``dtype``."""
        return encoded

    def __eq__(self, other: object) -> bool:
        """Equal cells compute the same, so a copy of a cell equals it."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
