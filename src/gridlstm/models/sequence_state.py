"""The state of a network over sequences: its check, and the order of its layers and directions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gridlstm.checks import check_kind
from gridlstm.state import State

__all__ = ["Pair", "check_pair", "join_directions", "split_directions", "swap"]

Pair = tuple[Tensor, Tensor | None]
"""Hidden and memory vectors, as a :class:`State` or as a plain tuple."""


def check_pair(state: Pair, sizes: dict[str, int], like: Tensor) -> State:
    """Checks an initial state.

    Args:
        state: the hidden and memory vectors; memory may be ``None``.
        sizes: the name and the length of each axis.
        like: a parameter of the network.

    Raises:
        TypeError: if it is not a pair of tensors or has the wrong dtype.
        ValueError: if a shape is wrong, or it is on another device.
    """
    if not isinstance(state, tuple | list) or len(state) != 2:
        raise TypeError(f"state: expected a State or a pair (h, m), got {type(state).__name__}")
    expected = list(sizes.values())
    for name, tensor in zip(("hidden", "memory"), state, strict=True):
        if tensor is None and name == "memory":
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"state: expected {name} to be a tensor, got {type(tensor).__name__}")
        if list(tensor.shape) != expected:
            raise ValueError(
                f"state: expected {name} {expected} ({', '.join(sizes)}), got {list(tensor.shape)}"
            )
        check_kind(f"state {name}", tensor, like)
    return State(*state)


def split_directions(state: State, directions: int) -> list[State]:
    """One state ``[layers, ...]`` per direction, of one ``[layers · directions, ...]``.

    Directions alternate as in ``torch.nn.LSTM``: layer 0 forward, layer 0 backward, layer 1 forward.

    >>> forward, backward = split_directions(State(torch.arange(6)), 2)
    >>> forward.hidden, backward.hidden
    (tensor([0, 2, 4]), tensor([1, 3, 5]))
    """

    def part(direction: int) -> State:
        return state.map(lambda t: t[direction::directions])

    return [part(direction) for direction in range(directions)]


def join_directions(states: Sequence[State]) -> State:
    """The inverse of :func:`split_directions`.

    >>> join_directions([State(torch.tensor([0, 2, 4])), State(torch.tensor([1, 3, 5]))]).hidden
    tensor([0, 1, 2, 3, 4, 5])
    """
    if len(states) == 1:
        return states[0]
    hidden = torch.stack([state.hidden for state in states], 1).flatten(0, 1)
    memories = [state.memory for state in states if state.memory is not None]
    return State(hidden, torch.stack(memories, 1).flatten(0, 1) if memories else None)


def swap(state: State) -> State:
    """``[time or layers, batch, hidden]`` to and from ``[batch, time or layers, hidden]``."""
    return state.map(lambda t: t.transpose(0, 1))
