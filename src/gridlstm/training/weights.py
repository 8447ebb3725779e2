"""The weights of a network in a file of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from gridlstm.errors import ExpectedError
from gridlstm.training.checkpoint import Checkpoint

__all__ = [
    "NETWORK",
    "WeightsError",
    "check_weights",
    "load_weights",
    "outline",
    "put_weights",
    "save_weights",
    "weights_of",
]


Network = TypeVar("Network", bound=nn.Module)

NETWORK = "network."
"""What the names of the network's tensors begin with in a checkpoint."""

_KINDS = {torch.float32: "F32", torch.float64: "F64", torch.uint8: "U8", torch.int64: "I64"}
"""How files call the types that networks have."""


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


def save_weights(network: nn.Module, path: Path) -> None:
    """Writes the weights whole or not at all.

    Raises:
        WeightsError: if they cannot be written. A file that was there is as it was.
    """
    beside = path.with_name(f".{path.name}")
    try:
        beside.touch()
        usual = beside.stat().st_mode  # safetensors' own is for the owner alone
        save_model(network, str(beside))
        beside.chmod(usual)
        beside.replace(path)
    except (OSError, SafetensorError) as error:
        beside.unlink(missing_ok=True)
        raise WeightsError(f"cannot write {path}: {error}", code=1) from error


def load_weights(network: nn.Module, path: Path) -> None:
    """Gives a network the weights of a file.

    Raises:
        WeightsError: if they cannot be read, are those of another network, or not finite.
    """
    check_weights(network, path)
    try:
        load_model(network, str(path))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error
    for name, tensor in network.named_parameters():
        if not bool(tensor.isfinite().all()):
            raise WeightsError(f"{path}: the weights are not finite: {name}")


def check_weights(network: nn.Module, path: Path) -> None:
    """Compares the header of a file with a network, which may be without memory, on ``meta``.

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
        own = (list(expected[name].shape), _KINDS.get(expected[name].dtype))
        if (shape, kind) != own:
            raise WeightsError(f"{path}: {name}: expected {own[1]} {own[0]}, got {kind} {shape}")
    # A tensor that is shared is stored under one of its names.
    stored = {id(expected[name]) for name in kinds}
    missing = [name for name, tensor in expected.items() if id(tensor) not in stored]
    if missing:
        raise WeightsError(f"{path}: expected {missing[0]}, got a file without it")


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, each once, however often it is shared."""
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


def put_weights(network: nn.Module, found: Checkpoint) -> None:
    """Gives a network the weights of a checkpoint."""
    with torch.no_grad():
        for name, tensor in weights_of(network).items():
            tensor.copy_(found.tensors[f"{NETWORK}{name}"])
