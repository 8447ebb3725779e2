"""The weights of a network: by name, and in a file of their own."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_file
from torch import Tensor, nn

from gridlstm.files import checksum, replacing

__all__ = [
    "WeightsError",
    "check_weights",
    "load_weights",
    "put_weights",
    "save_weights",
    "weights_of",
]


class WeightsError(RuntimeError):
    """Weights that cannot be written or read, and why."""


def weights_of(network: nn.Module, prefix: str = "") -> dict[str, Tensor]:
    """Parameters and buffers, each once, however often it is shared."""
    named = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return {f"{prefix}{name}": tensor for name, tensor in named.items()}


def put_weights(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
    """Gives a network the weights that :func:`weights_of` gave.

    Raises:
        WeightsError: if they are those of another network, which is then as it was.
    """
    own = weights_of(network, prefix)
    for name, tensor in own.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise WeightsError(f"expected {name} of shape {list(tensor.shape)}, got another network")
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
        raise WeightsError(f"cannot write {path}: {error}") from error
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
        WeightsError: if they cannot be read, or are those of another network.
    """
    try:
        load_model(network, str(path))
    except (OSError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())  # PyTorch's own has a line for each tensor.
        raise WeightsError(f"{path}: {reason}") from error
