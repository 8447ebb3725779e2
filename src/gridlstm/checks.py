"""Checks of arguments. Each error names the argument, what was expected and what was given."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from inspect import signature

import torch
from torch import Tensor, nn

from gridlstm.ranges import check_number

__all__ = [
    "autocast_dtype",
    "check_choice",
    "check_dropout",
    "check_forget_bias",
    "check_in_graph",
    "check_kind",
    "check_lengths",
    "check_options",
    "check_positive",
    "check_tensor",
    "lengths_tensor",
]

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def check_positive(name: str, value: int) -> None:
    """Checks that an argument is an integer of at least 1.

    Raises:
        TypeError: if it is not an integer.
        ValueError: if it is below 1.

    >>> check_positive("hidden_size", 0)
    Traceback (most recent call last):
    ValueError: hidden_size: expected at least 1, got 0
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: expected an integer, got {value!r}")
    check_number(name, value, least=1)


def check_dropout(value: float, name: str = "dropout") -> None:
    """Checks a dropout probability.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is not at least 0 and below 1.
    """
    check_number(name, value, least=0, below=1)


def check_forget_bias(forget_bias: float | None, bias: bool) -> None:
    """Checks the initial bias of the forget gates; ``None`` stands for the default.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is not finite, or is given without biases.
    """
    if forget_bias is not None:
        check_number("forget_bias", forget_bias)
        if not bias:
            raise ValueError(f"forget_bias: expected None because bias is False, got {forget_bias}")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Checks that an argument is one of several strings.

    Raises:
        ValueError: if it is not.
    """
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")


def check_options(network: nn.Module, options: Iterable[str], known: Iterable[str] = ()) -> None:
    """Rejects unknown keyword arguments, with the name of the class that was called.

    Args:
        network: the module under construction.
        options: the names of the keyword arguments that its signature does not list.
        known: the names that it passes on to another class.

    Raises:
        TypeError: if one is unknown. For an argument of ``torch.nn.LSTM`` it names the alternative.
    """
    known = list(known)
    for name in options:
        if name in known:
            continue
        kind, parameters = type(network).__name__, signature(type(network)).parameters
        if name == "bidirectional":
            instead = (
                "not supported; run a second network over the flipped sequences and concatenate the "
                "outputs"
            )
        elif name == "proj_size":
            instead = "not supported; put a torch.nn.Linear after the network"
        else:
            named = [key for key, value in parameters.items() if value.kind != value.VAR_KEYWORD]
            close = get_close_matches(name, [*named, *known], 1)
            hint = f"did you mean {close[0]}?" if close else f"expected {', '.join([*named, *known])}"
            instead = f"unknown; {hint}"
        raise TypeError(f"{kind}: argument {name} is {instead}")


def check_tensor(name: str, tensor: Tensor, shape: Sequence[int | str], like: Tensor) -> None:
    """Checks the shape of a tensor, and that its device and dtype are those of ``like``.

    Args:
        name: the name of the argument.
        tensor: its value.
        shape: for each axis its length, or a name if any length is allowed. A leading ``"..."`` stands
            for any number of axes.
        like: a parameter of the module.

    Raises:
        TypeError: if it is not a tensor, or as in :func:`check_kind`.
        ValueError: if it has another shape, or as in :func:`check_kind`.

    >>> check_tensor("x", torch.zeros(7, 3, 4), ["time", "batch", 5], torch.zeros(1))
    Traceback (most recent call last):
    ValueError: x: expected [time, batch, 5], got [7, 3, 4]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    actual = list(tensor.shape)
    free = max(0, len(actual) - len(shape) + 1) if shape[0] == "..." else 0
    expected = [*["..."] * free, *shape[1:]] if shape[0] == "..." else shape
    if len(actual) != len(expected) or any(
        isinstance(size, int) and size != got for size, got in zip(expected, actual, strict=True)
    ):
        raise ValueError(f"{name}: expected [{', '.join(map(str, shape))}], got {actual}")
    check_kind(name, tensor, like)


def check_kind(name: str, tensor: Tensor, like: Tensor) -> None:
    """Checks that the device and dtype of a tensor are those of ``like``.

    Raises:
        TypeError: if it has another dtype. Under autocast any floating dtype is allowed.
        ValueError: if it is on another device.
    """
    if tensor.device != like.device:
        raise ValueError(f"{name}: expected a tensor on {like.device}, got {tensor.device}")
    if autocast_dtype(like) is not None:
        if not tensor.is_floating_point():
            raise TypeError(f"{name}: expected a floating dtype, got {tensor.dtype}")
    elif tensor.dtype != like.dtype:
        raise TypeError(f"{name}: expected dtype {like.dtype}, got {tensor.dtype}")


def autocast_dtype(like: Tensor) -> torch.dtype | None:
    """The dtype to which autocast lowers products of such tensors; ``None`` without autocast."""
    device = like.device.type
    if not torch.amp.is_autocast_available(device) or like.dtype == torch.float64:
        return None
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def check_lengths(name: str, lengths: Tensor, batch: int, least: int, size: int) -> None:
    """Checks the lengths of samples, ``[batch]``, each from ``least`` to ``size``.

    Raises:
        TypeError: if the lengths are not a tensor of integers.
        ValueError: if the shape is wrong or a length is out of range.
    """
    if not isinstance(lengths, Tensor) or lengths.dtype not in _INTEGERS:
        kind = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise TypeError(f"{name}: expected a tensor of integers, got {kind}")
    if lengths.shape != (batch,):
        raise ValueError(f"{name}: expected [{batch}] (batch), got {list(lengths.shape)}")
    if torch.compiler.is_compiling():
        check_in_graph(lengths, least, size, f"{name}: expected {least} to the size")
    elif not lengths.is_meta:
        for value in lengths.tolist():
            if not least <= value <= size:
                raise ValueError(f"{name}: expected {least} to {size} (the size), got {value}")


def check_in_graph(values: Tensor, least: int, most: int, message: str) -> None:
    """Adds a check of values to a graph: they are not known before it runs.

    The graph raises a ``RuntimeError`` with ``message`` if a value is not from ``least`` to ``most``.
    """
    torch._assert_async(((values >= least) & (values <= most)).all(), message)


def lengths_tensor(name: str, lengths: Tensor | Sequence[int]) -> Tensor:
    """Lengths as a tensor. Tensors are returned as they are; :func:`check_lengths` checks them.

    Raises:
        TypeError: if an element of a list or tuple is not an integer.

    >>> lengths_tensor("lengths", [7, 2, 4])
    tensor([7, 2, 4])
    """
    if not isinstance(lengths, list | tuple):
        return lengths  # type: ignore[return-value] # Of the wrong type: check_lengths says so.
    for value in lengths:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name}: expected integers, got {value!r}")
    return torch.tensor(lengths, dtype=torch.int64, device="cpu")
