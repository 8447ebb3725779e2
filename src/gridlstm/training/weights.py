"""The weights of a network in a file of their own."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from gridlstm.files import replacing

__all__ = ["WeightsError", "load_weights", "save_weights"]


class WeightsError(RuntimeError):
    """Weights that cannot be written or read, and why."""


def save_weights(network: nn.Module, path: Path) -> None:
    """Writes the weights whole or not at all.

    Raises:
        WeightsError: if they cannot be written. A file that was there is as it was.
    """
    try:
        with replacing(path) as beside:
            save_model(network, str(beside))
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"cannot write {path}: {error}") from error


def load_weights(network: nn.Module, path: Path) -> None:
    """Gives a network the weights of a file.

    Raises:
        WeightsError: if they cannot be read, or are those of another network.
    """
    try:
        load_model(network, str(path))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"{path}: {error}") from error
