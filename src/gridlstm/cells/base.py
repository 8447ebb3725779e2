"""What every cell has in common: the protocol between a dimension's transform and the engines."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from gridlstm.state import State

__all__ = ["Cell", "CellGradients"]


class CellGradients(NamedTuple):
    """Gradients of what a cell reads beside its preactivations; ``None`` for what it does not read.

    ``hidden`` and ``memory`` are those of the dimension's old vectors, ``[..., d]``; ``peephole`` that
    of its diagonal weights, of the shape in which they were given.
    """

    hidden: Tensor | None = None
    memory: Tensor | None = None
    peephole: Tensor | None = None


class Cell(ABC):
    """A dimension's transform, from its preactivations on. It has no parameters of its own.

    A block multiplies ``H`` (Eq. 5) by the weights of a dimension and adds the bias. The cell turns the
    result and the dimension's old vectors into its new ones. A cell is written once in plain autograd,
    :meth:`forward`, which is its specification. The fast engine calls :meth:`forward_` and
    :meth:`backward_`, which by default go through :meth:`forward`; a cell may override them to be
    faster. All methods take any leading axes.

    Attributes:
        name: what it is called in messages, and by the compiled kernel.
        gates: the number of matrices ``[d, H]`` in a weight.
        rows: the number of vectors ``[d]`` in the preactivations, and in a bias; ``gates`` unless
            :meth:`expand` makes more of them.
        has_memory: whether a memory vector travels beside the hidden vector.
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
        """The new vectors ``[..., d]``.

        Args:
            preactivation: ``[..., rows · d]``.
            old: the dimension's old vectors, ``[..., d]``; no memory unless ``has_memory``.
            peephole: ``[..., peepholes · d]``, or ``None`` if the cell has none.
        """

    def forward_(self, gates: Tensor, old: State, peephole: Tensor | None) -> State:
        """The same as :meth:`forward`; may replace ``gates`` by what :meth:`backward_` needs."""
        return self.forward(gates.clone(), old, peephole)  # It may work in place.

    def backward_(
        self, gates: Tensor, old: State, grad: State, peephole: Tensor | None
    ) -> CellGradients:
        """The backward of :meth:`forward_`.

        Takes ``gates`` as :meth:`forward_` left them and leaves the gradients of the preactivations in
        their place.

        Args:
            gates: ``[..., rows · d]``.
            old: as given to :meth:`forward_`.
            grad: the gradients of the new vectors.
            peephole: as given to :meth:`forward_`.
        """
        h, m = old
        inputs = [t.detach().requires_grad_() for t in (gates, h, m, peephole) if t is not None]
        with torch.enable_grad():
            given = iter(inputs)
            x, own = next(given), State(next(given), None if m is None else next(given))
            new = self.forward(x.clone(), own, next(given, None))
        pairs = [(y, g) for y, g in zip(new, grad, strict=True) if y is not None and y.requires_grad]
        if not pairs:  # It depends on nothing that it was given.
            gates.zero_()
            return CellGradients(
                *(None if t is None else torch.zeros_like(t) for t in (h, m, peephole))
            )
        outputs, grads = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(outputs, inputs, grads, materialize_grads=True))
        gates.copy_(next(found))
        return CellGradients(next(found), *(None if t is None else next(found) for t in (m, peephole)))

    def expand(self, weight: Tensor, own: slice) -> Tensor:
        """The matrix that ``H`` is multiplied by, ``[..., rows · d, H]``.

        Args:
            weight: ``[..., gates · d, H]``.
            own: the columns of the dimension's own hidden vector in ``H``.
        """
        return weight

    def reset_bias_(self, bias: Tensor, forget_bias: float) -> None:
        """Sets a bias ``[..., rows · d]`` to what it starts from."""
        bias.zero_()

    def encode_gates(self, gates: Tensor, dtype: torch.dtype) -> Tensor:
        """What :meth:`forward_` left, in a form that loses little in ``dtype``, of low precision."""
        return gates

    def decode_gates(self, kept: Tensor, dtype: torch.dtype) -> Tensor:
        """What :meth:`encode_gates` was given, from what ``dtype`` kept of it."""
        return kept

    def __eq__(self, other: object) -> bool:
        """Equal cells compute the same: a copy is as good as what it was made from."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
