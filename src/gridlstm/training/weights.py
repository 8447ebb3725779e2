"""The weights of a network: by name, and in a file of their own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_file
from torch import Tensor, nn

from gridlstm.errors import ExpectedError
from gridlstm.files import checksum, replacing

__all__ = [
    "WeightsError",
    "check_header",
    "check_weights",
    "load_weights",
    "outline",
    "put_weights",
    "save_weights",
    "weights_of",
]


Network = TypeVar("Network", bound=nn.Module)

_KINDS = {
    torch.float32: ("F32", "F16"),
    torch.float64: ("F64",),
    torch.uint8: ("U8",),
    torch.int64: ("I64",),
}
"""How files call the types that networks have: their own, and smaller ones that are cast when read."""


class WeightsError(ExpectedError):
    """Weights that cannot be written or read, and why."""


def outline(make: Callable[[], Network]) -> Network:
    """A network without memory for its weights, on ``meta``: names, shapes and types only.

    Raises:
        ValueError: if it is too large for any machine.
    """
    try:
        with torch.device("meta"):
            return make()
    except (RuntimeError, OverflowError) as error:
        raise ValueError(f"hidden, layers: expected smaller sizes ({error})") from error


def weights_of(network: nn.Module, prefix: str = "") -> dict[str, Tensor]:
    """Parameters and buffers, each once, however often it is shared."""
    named = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return {f"{prefix}{name}": tensor for name, tensor in named.items()}


def put_weights(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
    """Gives a network, which may be an :func:`outline`, the weights that :func:`weights_of` gave.

    Raises:
        WeightsError: if they are those of another network or not finite; the network is then as it was.
    """
    own = weights_of(network, prefix)
    for name, tensor in own.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise WeightsError(f"expected {name} of shape {list(tensor.shape)}, got another network")
        if not bool(tensors[name].isfinite().all()):
            raise WeightsError(f"the weights are not finite: {name}")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def save_weights(network: nn.Module, path: Path) -> str:
    """Writes the weights whole or not at all, and gives the checksum of the file.

    Raises:
        WeightsError: if they cannot be written. A file that was there is as it was.
    """
    # Not safetensors' save_model, which notes shared names in any order: the same weights are to give
    # the same file. Its load_model reads this as well.
    each = {id(tensor): name for name, tensor in reversed(network.state_dict(keep_vars=True).items())}
    own = network.state_dict()
    try:
        with replacing(path) as beside:
            kept = {name: own[name].contiguous() for name in each.values()}
            save_file(kept, beside, metadata={"format": "pt"})
            written = checksum(beside)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"cannot write {path}: {error}", code=1) from error
    return written


def check_weights(path: Path, expected: str | None = None) -> None:
    """Checks that a file is whole.

    Args:
        path: the file.
        expected: the checksum that :func:`save_weights` gave, if it is known.

    Raises:
        WeightsError: if it is not a file of weights, or another one.
    """
    try:
        with safe_open(str(path), "pt"):
            pass
        if expected is not None and checksum(path) != expected:
            raise WeightsError(f"{path}: damaged or replaced (its checksum is not that of the run)")
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error


def load_weights(network: nn.Module, path: Path) -> None:
    """Gives a network the weights of a file.

    Raises:
        WeightsError: if they cannot be read, are those of another network, or not finite.
    """
    check_header(network, path)
    try:
        load_model(network, str(path))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error
    for name, tensor in network.named_parameters():
        if not bool(tensor.isfinite().all()):
            raise WeightsError(f"{path}: the weights are not finite: {name}")


def check_header(network: nn.Module, path: Path) -> None:
    """Compares the header of a file with a network, which may be an :func:`outline`.

    Nothing but the header is read, so that nothing large is allocated for a file of another network.

    Raises:
        WeightsError: if it cannot be read, or a name, shape or type is not the network's.
    """
    expected = network.state_dict(keep_vars=True)
    try:
        with safe_open(str(path), "pt") as file:
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {name: (part.get_shape(), part.get_dtype()) for name, part in found.items()}
    except (OSError, ValueError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error
    for name, (shape, kind) in kinds.items():
        if name not in expected:
            raise WeightsError(f"{path}: expected the weights of another network, got {name}")
        own, allowed = list(expected[name].shape), _KINDS[expected[name].dtype]
        if shape != own or kind not in allowed:
            raise WeightsError(f"{path}: {name}: expected {allowed[0]} {own}, got {kind} {shape}")
    # A tensor that is shared is stored under one of its names.
    stored = {id(expected[name]) for name in kinds}
    missing = [name for name, tensor in expected.items() if id(tensor) not in stored]
    if missing:
        raise WeightsError(f"{path}: expected {missing[0]}, got a file without it")
