"""The protocol between a dimension's transform and the engines."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from gridlstm.state import State

__all__ = ["Cell", "CellGradients"]


class CellGradients(NamedTuple):
    """Gradients of the inputs of a cell other than its preactivations; ``None`` for those it ignores.

    ``hidden`` and ``memory`` are the gradients of the dimension's old vectors, ``[..., d]``;
    ``peephole`` is that of its diagonal weights, in the shape in which they were given.
    """

    hidden: Tensor | None = None
    memory: Tensor | None = None
    peephole: Tensor | None = None


class Cell(ABC):
    """A dimension's transform, starting from its preactivations. A cell has no parameters.

    A block multiplies ``H`` (Eq. 5) by the weights of a dimension and adds the bias. The cell computes
    the dimension's new vectors from the result and from its old vectors. :meth:`forward`, in plain
    autograd, is its specification. The fast engine calls :meth:`forward_` and :meth:`backward_`, which
    by default use :meth:`forward`; a cell may override them for speed. All methods accept any leading
    axes.

    Attributes:
        name: the name in messages and for the compiled kernel.
        gates: the number of matrices ``[d, H]`` in a weight.
        rows: the number of vectors ``[d]`` in the preactivations, and in a bias. Default: ``gates``; a
            cell whose :meth:`expand` adds rows overrides it.
        has_memory: whether a memory vector travels with the hidden vector.
        reads_hidden: whether the new vectors depend on the dimension's old hidden vector directly, not
            only by way of ``H``.
        peepholes: the number of diagonal weights, vectors ``[d]`` that multiply a memory.

    >>> class Leaky(Cell):
    ...     name, reads_hidden = "leaky", True
    ...     def forward(self, preactivation, old, peephole):
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
    peepholes: int = 0

    @property
    def rows(self) -> int:
        """The number of vectors in the preactivations."""
        return self.gates

    @abstractmethod
    def forward(self, preactivation: Tensor, old: State, peephole: Tensor | None) -> State:
        """Computes the new vectors, ``[..., d]``.

        Args:
            preactivation: ``[..., rows · d]``.
            old: the dimension's old vectors, ``[..., d]``; with a memory if ``has_memory``.
            peephole: ``[..., peepholes · d]``, or ``None`` if the cell has none.
        """

    def forward_(self, gates: Tensor, old: State, peephole: Tensor | None) -> State:
        """Like :meth:`forward`; may overwrite ``gates`` with what :meth:`backward_` needs."""
        return self.forward(gates.clone(), old, peephole)  # A copy, because it may work in place.

    def backward_(
        self, gates: Tensor, old: State, grad: State, peephole: Tensor | None
    ) -> CellGradients:
        """The backward of :meth:`forward_`.

        Reads ``gates`` as :meth:`forward_` left them, and overwrites them with the gradients of the
        preactivations.

        Args:
            gates: ``[..., rows · d]``.
            old: as given to :meth:`forward_`.
            grad: the gradients of the new vectors.
            peephole: as given to :meth:`forward_`.
        """
        h, m = old
        inputs = [t.detach().requires_grad_() for t in (gates, h, m, peephole) if t is not None]
        with torch.enable_grad():
            leaves = iter(inputs)
            x, old = next(leaves), State(next(leaves), None if m is None else next(leaves))
            new = self.forward(x.clone(), old, next(leaves, None))
        pairs = [(y, g) for y, g in zip(new, grad, strict=True) if y is not None and y.requires_grad]
        if not pairs:  # It is constant.
            gates.zero_()
            return CellGradients(
                *(None if t is None else torch.zeros_like(t) for t in (h, m, peephole))
            )
        outputs, grads = zip(*pairs, strict=True)
        results = iter(torch.autograd.grad(outputs, inputs, grads, materialize_grads=True))
        gates.copy_(next(results))
        return CellGradients(
            next(results), *(None if t is None else next(results) for t in (m, peephole))
        )

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
