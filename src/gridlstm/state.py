"""The pair of vectors that travels along a dimension of a grid."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree

__all__ = ["State", "where_real"]


class State(NamedTuple):
    """The hidden and memory vectors of one dimension.

    On a side of a grid both have the shape ``[batch, *sizes of the other dimensions, hidden]``. A
    non-LSTM dimension (section 3.3) has no memory: ``memory`` is ``None``. PyTorch's pytree functions
    map over it, and programs that take or return it can be saved with ``torch.export.save``.

    >>> import torch
    >>> h, m = State(torch.zeros(3, 8), torch.ones(3, 8))
    >>> h.shape
    torch.Size([3, 8])
    """

    hidden: Tensor
    memory: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "State":
        """Applies a function to the hidden vectors and, if there is one, to the memory."""
        return State(function(self.hidden), None if self.memory is None else function(self.memory))


# Named tuples are pytrees anyway; with a name of its own, torch.export.save can write this one.
_pytree._register_namedtuple(State, serialized_type_name="gridlstm.State")
torch.serialization.add_safe_globals([State])  # For torch.load with weights_only=True.


def where_real(real: Tensor, new: State, old: State) -> State:
    """The new vectors where a block is real, the old ones where it is masked."""
    hidden = torch.where(real, new.hidden, old.hidden)
    if new.memory is None or old.memory is None:
        return State(hidden)
    return State(hidden, torch.where(real, new.memory, old.memory))
