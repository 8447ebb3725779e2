"""Weights as products need them: for one call, or kept for later calls without gradients."""

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gridlstm.engines.backend import Backend
from gridlstm.engines.buffers import Call
from gridlstm.engines.products import Matrices

__all__ = ["pack_kept", "pack_once"]

_Key = tuple[type[Backend], int, int, bool, bool]
# By weight, then by what else it depends on. The weights of a grid are the same tensors in every call
# without gradients until a parameter changes (parameters.py), and then these are forgotten with them.
_kept: dict[Tensor, dict[_Key, Matrices]] = WeakTensorKeyDictionary()  # type: ignore[assignment]


def pack_once(backend: type[Backend], weight: Tensor, call: Call, p: int) -> Matrices:
    """``W^T`` for the products of a phase in one call.

    Args:
        backend: what multiplies.
        weight: the weights of the phase, ``[sets, gates, H]``.
        call: the call.
        p: the phase.
    """
    return backend.pack(weight[..., call.columns[p]].mT, call)


def pack_kept(backend: type[Backend], weight: Tensor, call: Call, p: int) -> Matrices:
    """The same, kept as long as ``weight``."""
    columns = call.columns[p]
    kept = _kept.setdefault(weight, {})
    key = (backend, columns.start, columns.stop, call.has_few_rows, call.has_many_rows)
    if key not in kept:
        kept[key] = pack_once(backend, weight, call, p)
    return kept[key]
