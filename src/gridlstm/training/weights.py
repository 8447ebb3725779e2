"""The weights of a network by name, and files of weights."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_file
from torch import Tensor, nn

from gridlstm.errors import ExpectedError
from gridlstm.files import atomic_write, checksum

__all__ = [
    "WeightsError",
    "check_header",
    "check_weights_file",
    "load_weights",
    "make_on_meta",
    "save_weights",
    "set_weights",
    "weights_of",
]


Network = TypeVar("Network", bound=nn.Module)

_FILE_DTYPES = {
    torch.float32: ("F32", "F16"),
    torch.float64: ("F64",),
    torch.float16: ("F16",),
    torch.bfloat16: ("BF16",),
    torch.uint8: ("U8",),
    torch.int64: ("I64",),
}
"""Names in files of the dtypes of networks: the same dtype first, then those cast when loaded."""


class WeightsError(ExpectedError):
    """Weights cannot be written or read."""


def make_on_meta(make: Callable[[], Network]) -> Network:
    """A network on the ``meta`` device: names, shapes and dtypes, but no memory for weights.

    Raises:
        ValueError: if it is too large for any machine.
    """
    try:
        with torch.device("meta"):
            return make()
    except (RuntimeError, OverflowError) as error:
        raise ValueError(f"the network is too large for any machine ({error})") from error


def weights_of(network: nn.Module, prefix: str = "") -> dict[str, Tensor]:
    """Parameters and buffers by name; those shared by several modules appear once."""
    weights = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return {f"{prefix}{name}": tensor for name, tensor in weights.items()}


def set_weights(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
    """Sets the weights of a network, which may be on ``meta``, to what :func:`weights_of` returned.

    Raises:
        WeightsError: if they belong to another network or are not finite; nothing is changed then.
    """
    weights = weights_of(network, prefix)
    for name, tensor in weights.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise WeightsError(f"expected {name} of shape {list(tensor.shape)}, got another network")
        if not bool(tensors[name].isfinite().all()):
            raise WeightsError(f"the weights are not finite: {name}")
    with torch.no_grad():
        for name, tensor in weights.items():
            tensor.copy_(tensors[name])


def save_weights(network: nn.Module, path: Path) -> str:
    """Writes the weights atomically, and returns the checksum of the file.

    Raises:
        WeightsError: if they cannot be written. An existing file is then unchanged.
    """
    # Not safetensors' save_model, which stores shared names in arbitrary order: the same weights must
    # give the same file. Its load_model reads this file, too.
    names = {id(tensor): name for name, tensor in reversed(network.state_dict(keep_vars=True).items())}
    weights = network.state_dict()
    try:
        with atomic_write(path) as temporary:
            unique = {name: weights[name].contiguous() for name in names.values()}
            save_file(unique, temporary, metadata={"format": "pt"})
            return checksum(temporary)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"cannot write {path}: {error}", code=1) from error


def check_weights_file(path: Path, expected: str | None = None) -> None:
    """Checks that a file of weights is intact.

    Args:
        path: the file.
        expected: the checksum that :func:`save_weights` returned, if known.

    Raises:
        WeightsError: if it is not a file of weights, or its checksum differs.
    """
    try:
        with safe_open(str(path), "pt"):
            pass
        if expected is not None and checksum(path) != expected:
            raise WeightsError(f"{path}: damaged or replaced (its checksum is not that of the run)")
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error


def load_weights(network: nn.Module, path: Path) -> None:
    """Loads the weights of a file into a network.

    Raises:
        WeightsError: if they cannot be read, belong to another network, or are not finite.
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
    """Compares the header of a file with a network, which may be on ``meta``.

    Only the header is read, so no memory is allocated for the weights of another network.

    Raises:
        WeightsError: if the header cannot be read, or a name, shape or dtype is not the network's.
    """
    expected = network.state_dict(keep_vars=True)
    try:
        with safe_open(str(path), "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            header = {name: (part.get_shape(), part.get_dtype()) for name, part in slices.items()}
    except (OSError, ValueError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error
    for name, (shape, dtype) in header.items():
        if name not in expected:
            raise WeightsError(f"{path}: expected weights of this network, got {name}")
        wanted, dtypes = list(expected[name].shape), _FILE_DTYPES[expected[name].dtype]
        if shape != wanted or dtype not in dtypes:
            raise WeightsError(f"{path}: {name}: expected {dtypes[0]} {wanted}, got {dtype} {shape}")
    # A shared tensor is stored under one of its names.
    stored = {id(expected[name]) for name in header}
    missing = [name for name, tensor in expected.items() if id(tensor) not in stored]
    if missing:
        raise WeightsError(f"{path}: expected {missing[0]}, got a file without it")
