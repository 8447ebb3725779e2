"""The command ``gridlstm export``."""

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import nn

from gridlstm.commands.options import ExportOptions
from gridlstm.errors import one_line
from gridlstm.experiments.trained import find_run, load_network
from gridlstm.export import Exported, Port, can_verify, largest_difference, to_onnx
from gridlstm.export.scan import ExportError
from gridlstm.hub import from_pretrained, is_pretrained
from gridlstm.pipes import print_json

__all__ = ["run"]

AGREES = 1e-3
"""Rounding in float32 stays below this, also in large networks."""


def run(options: ExportOptions) -> None:
    """Writes the file, verifies it if onnxruntime is installed, and prints what is in it.

    Raises:
        ExportError: if the network cannot be exported, a package is missing, or onnxruntime does not
            agree with PyTorch.
    """
    network = _load(options)
    name = Path(options.run).resolve().name if options.run else str(options.module).rpartition(":")[2]
    try:
        exported = to_onnx(
            network,
            options.out or Path(f"{name}.onnx"),
            step=options.step,
            state=options.state,
            lengths=options.lengths,
        )
    except ImportError as error:
        raise ExportError(str(error)) from error
    difference = largest_difference(exported, network) if can_verify() else None
    if difference is not None and not difference < AGREES:
        raise ExportError(
            f"{exported.path}: onnxruntime differs from PyTorch by {difference:.1e}", code=1
        )
    _print(exported, difference)


def _load(options: ExportOptions) -> nn.Module:
    if options.module is not None:
        return _import(options.module).cpu().eval()
    assert options.run is not None, "checked by the options"
    if is_pretrained(options.run):
        module: nn.Module = from_pretrained(options.run)
        return module
    return load_network(find_run(str(options.run)))


def _import(place: str) -> nn.Module:
    """The module that ``package.module:name`` names or that a function of this name returns.

    Raises:
        ValueError: if there is none.
    """
    where, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # As ``python -m`` does: it may be a file in this directory.
    try:
        found = getattr(import_module(where), name) if where and name else None
    except (ImportError, AttributeError) as error:
        raise ValueError(f"module: {error}") from error
    finally:
        sys.path.pop(0)
    module = found if isinstance(found, nn.Module) or not callable(found) else found()
    if not isinstance(module, nn.Module):
        got = repr(place) if found is None else f"{place} of type {type(module).__name__}"
        raise ValueError(f"module: expected package.module:name of a torch.nn.Module, got {got}")
    return module


def _print(exported: Exported, difference: float | None) -> None:
    console = Console()
    ports = {"inputs": exported.inputs, "outputs": exported.outputs}
    if not console.is_terminal:
        listed = {
            kind: {port.name: [port.dtype, list(port.shape)] for port in some}
            for kind, some in ports.items()
        }
        row = {"file": str(exported.path), "bytes": exported.bytes, **listed}
        print_json({**row, "largest_difference": difference})
        return
    table = Table(show_header=False)
    table.add_row("file", Text(one_line(exported.path)))
    table.add_row("size", f"{exported.bytes / 1e6:.2f} MB")
    for kind, some in ports.items():
        table.add_row(kind, Text("\n".join(map(_shown, some))))
    table.add_row("metadata", ", ".join(exported.interface.metadata) or "none")
    verified = "not verified: pip install onnxruntime"
    if difference is not None:
        verified = f"largest difference from PyTorch {difference:.1e}"
    table.add_row("onnxruntime", verified)
    console.print(table)


def _shown(port: Port) -> str:
    return f"{port.name}: {port.dtype} [{', '.join(map(str, port.shape))}]"
