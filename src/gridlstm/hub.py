"""Saves modules to a folder or to the Hugging Face Hub, and loads them again.

A folder has ``config.json``, with the class and its arguments, and ``model.safetensors``. It needs
``safetensors``; only the Hub needs ``huggingface_hub``. Both are installed by ``gridlstm[hub]``.
"""

import inspect
import json
from dataclasses import fields
from importlib import import_module
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from gridlstm.dim import Dim
from gridlstm.errors import ExpectedError
from gridlstm.files import make_folder, read_json, write_json
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.models.sequence import SequenceGridLSTM

try:
    from gridlstm.training.weights import check_header, load_weights, make_on_meta, save_weights
except ImportError as error:  # No safetensors.
    raise ImportError(
        "gridlstm.hub needs packages that are not installed: pip install 'gridlstm[hub]'"
    ) from error

__all__ = [
    "HubError",
    "arguments_of",
    "from_pretrained",
    "is_pretrained",
    "push_to_hub",
    "save_pretrained",
]

FORMAT = "gridlstm module 1"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
CLASSES: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (GridLSTM, SequenceGridLSTM, DeepGridLSTM, ImageGridLSTM)
}
NOT_SAVED = ("device", "dtype", "init", "options")
"""Arguments that are not saved as such: the dtype is that of the parameters, and a function that
initialises them has done so."""


class HubError(ExpectedError):
    """A folder does not hold a module of this package."""


def save_pretrained(module: nn.Module, folder: str | PathLike[str]) -> None:
    """Writes a module to a folder, which is created if it is missing.

    Args:
        module: a :class:`GridLSTM`, :class:`SequenceGridLSTM`, :class:`DeepGridLSTM` or
            :class:`ImageGridLSTM`.
        folder: the folder. An existing module in it is replaced.

    Raises:
        TypeError: if the module is of another class, was made with a function or a custom cell, or has
            parameters of different dtypes.
        WeightsError: if the weights cannot be written.
        OSError: if the folder cannot be written.
    """
    config = {
        "format": FORMAT,
        "class": type(module).__name__,
        "arguments": {name: _encode(name, value) for name, value in arguments_of(module).items()},
        "dtype": _dtype_name(module),
    }
    path = Path(folder)
    make_folder(path)
    save_weights(module, path / WEIGHTS)
    write_json(path / CONFIG, config)


def from_pretrained(name: str | PathLike[str], *, revision: str | None = None) -> Any:
    """Loads a module, in evaluation mode, on the CPU and with the dtype that it was saved with.

    Args:
        name: a folder, or else the name of a repository on the Hugging Face Hub, ``"user/name"``.
        revision: the branch, tag or commit of the repository. Default: its main branch.

    Raises:
        ImportError: if it is not a folder and ``huggingface_hub`` is not installed.
        HubError: if the folder does not hold a module of this package.
        WeightsError: if the weights cannot be read, or are those of another module.
    """
    folder = Path(name)
    if not folder.is_dir():
        download = _hub(f"{name}: not a folder; downloading it").snapshot_download
        patterns = [CONFIG, WEIGHTS]
        folder = Path(download(str(name), revision=revision, allow_patterns=patterns))
    path = folder / CONFIG
    try:
        kind, arguments, dtype = _read(path)

        def make() -> nn.Module:
            return kind(**arguments, dtype=dtype)

        # The shapes are compared before memory is allocated: the folder may come from anywhere.
        check_header(make_on_meta(make), folder / WEIGHTS)
        module = make()
    except (OSError, ValueError, TypeError) as error:
        raise HubError(f"{path}: {error}") from error
    load_weights(module, folder / WEIGHTS)
    return module.eval()


def is_pretrained(folder: Path) -> bool:
    """Whether a folder holds a module that :func:`save_pretrained` has written."""
    try:
        config = read_json((folder / CONFIG).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


def push_to_hub(
    module: nn.Module,
    repository: str,
    *,
    private: bool | None = None,
    message: str = "Upload a module of gridlstm",
) -> None:
    """Uploads a module to the Hugging Face Hub, with the account that ``hf auth login`` has set up.

    Args:
        module: as for :func:`save_pretrained`.
        repository: ``"user/name"``. It is created if it is missing.
        private: whether a new repository is private. Default: the setting of the account.
        message: the message of the commit.

    Raises:
        ImportError: if ``huggingface_hub`` is not installed.
        TypeError: as :func:`save_pretrained`.
    """
    hub = _hub("gridlstm.hub.push_to_hub")
    with TemporaryDirectory() as folder:
        save_pretrained(module, folder)
        hub.create_repo(repository, private=private, exist_ok=True)
        hub.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)


def arguments_of(module: nn.Module) -> dict[str, Any]:
    """The arguments that make a module like this one, without device, dtype and ``init``.

    Raises:
        TypeError: if it is of another class than those that can be saved.

    >>> arguments_of(DeepGridLSTM(20, 64, num_layers=12))["num_layers"]
    12
    """
    kind = type(module)
    if kind not in CLASSES.values():
        raise TypeError(f"module: expected one of {', '.join(CLASSES)}, got {kind.__name__}")
    grid, derived = _derived(module)
    parameters = inspect.signature(kind).parameters
    names = [*parameters, *(GridOptions.__annotations__ if "options" in parameters else ())]
    arguments = {}
    for name in names:
        if name in derived:
            arguments[name] = derived[name]
        elif name not in NOT_SAVED:
            arguments[name] = getattr(module, name) if hasattr(module, name) else getattr(grid, name)
    return arguments


def _derived(module: nn.Module) -> tuple[GridLSTM, dict[str, Any]]:
    """The grid of a module, or its first one, and arguments that have become part of its dimensions."""
    if isinstance(module, SequenceGridLSTM):
        time, depth = module.grid.dims
        return module.grid, {
            "tied": depth.tied,
            "depth": depth.transform,
            "priority": depth.priority,
            "shared": depth.shares_weights_with is not None,
            "depth_size": depth.hidden_size,
            "reverse": time.reverse,
        }
    if isinstance(module, DeepGridLSTM):
        (depth,) = module.grid.dims
        return module.grid, {"num_layers": depth.size, "tied": depth.tied}
    if isinstance(module, ImageGridLSTM):
        grid = module.stack.grids[0]
        assert isinstance(grid, GridLSTM), "a stack of grids"
        return grid, {"depth": grid.dims[-1].transform}
    assert isinstance(module, GridLSTM), "the last of the classes"
    return module, {}


def _encode(name: str, value: Any) -> Any:
    """An argument as JSON."""
    if isinstance(value, Dim):
        members = {
            field.name: (getattr(value, field.name), field.default)
            for field in fields(value)
            if field.init
        }
        return {
            key: _encode(f'{name}: dimension "{value.name}": {key}', member)
            for key, (member, default) in members.items()
            if member != default
        }
    if isinstance(value, tuple | list):
        return [_encode(name, member) for member in value]
    if isinstance(value, dict):
        return {key: _encode(f'{name} "{key}"', member) for key, member in value.items()}
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"{name}: expected a name or a number, which can be saved, got {value!r}")
    return value


def _decode(name: str, value: Any) -> Any:
    """What :func:`_encode` has encoded."""
    if isinstance(value, list):
        return tuple(_decode(name, member) for member in value)
    if isinstance(value, dict):
        if name == "dims":
            return Dim(**value)
        return {key: _decode(name, member) for key, member in value.items()}
    return value


def _dtype_name(module: nn.Module) -> str:
    dtypes = {parameter.dtype for parameter in module.parameters()}
    if len(dtypes) != 1:
        names = ", ".join(sorted(map(str, dtypes)))
        raise TypeError(f"module: expected parameters of one dtype, got {names}")
    return str(dtypes.pop()).removeprefix("torch.")


def _read(path: Path) -> tuple[type[nn.Module], dict[str, Any], torch.dtype]:
    """The class, arguments and dtype in ``config.json``."""
    config = read_json(path.read_text())
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f"expected a {FORMAT!r}, got something else")
    kind, arguments = CLASSES.get(str(config.get("class"))), config.get("arguments")
    if kind is None:
        raise ValueError(f"class: expected one of {', '.join(CLASSES)}, got {config.get('class')!r}")
    if not isinstance(arguments, dict):
        raise ValueError(f"arguments: expected an object, got {json.dumps(arguments)[:40]}")
    dtype = getattr(torch, str(config.get("dtype")), None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype: expected the name of a dtype, got {config.get('dtype')!r}")
    return kind, {name: _decode(name, value) for name, value in arguments.items()}, dtype


def _hub(what: str) -> Any:
    try:
        return import_module("huggingface_hub")
    except ImportError as error:
        raise ImportError(
            f"{what} needs a package that is not installed: pip install 'gridlstm[hub]'"
        ) from error
