"""Writes a network as an ONNX file."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gridlstm.errors import one_line
from gridlstm.export.clean import clean
from gridlstm.export.interface import Axis, Interface, interface_of, split
from gridlstm.export.scan import ExportError, use_scan
from gridlstm.files import write_bytes

__all__ = ["Exported", "Port", "to_onnx"]

DTYPES = (torch.float32, torch.float64)
"""Those for which onnxruntime computes all that a grid needs on a CPU."""
FIRST = 3
"""The length of the first dynamic axis while the graph is recorded. Lengths 0 and 1 would be fixed."""


class Port(NamedTuple):
    """An input or output of an exported network: its name, dtype and shape."""

    name: str
    dtype: str
    shape: tuple[Axis, ...]


class Exported(NamedTuple):
    """What has been exported.

    Attributes:
        path: the file.
        inputs: its inputs.
        outputs: its outputs.
        bytes: its size.
        interface: how the inputs and outputs correspond to those of the module.
    """

    path: Path
    inputs: list[Port]
    outputs: list[Port]
    bytes: int
    interface: Interface


def to_onnx(
    module: nn.Module,
    path: str | PathLike[str],
    *,
    step: bool = False,
    state: bool = False,
    lengths: bool = False,
    interface: Interface | None = None,
) -> Exported:
    """Writes a network as an ONNX file, in evaluation mode, with dynamic batch sizes and lengths.

    Every grid becomes nested ``Scan`` operators around one block. The file contains the weights, and
    nothing about the machine or the program that wrote it, except for the version of this package.

    Args:
        module: a network of this package, or one that contains grids; then pass ``interface``.
        path: the file. An existing one is replaced.
        step: for a network over sequences, read one element, without an axis of time, with the state
            going in and out.
        state: for a network over sequences, start from a state that is given. Default: from zero.
        lengths: for a network over sequences or a grid, read samples of different lengths.
        interface: the inputs and outputs. Default: those of a network of this package.

    Raises:
        ImportError: if the packages of ``gridlstm[onnx]`` are not installed.
        ExportError: if the module cannot be exported.
        OSError: if the file cannot be written.
    """
    if any(find_spec(name) is None for name in ("onnx", "onnxscript")):
        raise ImportError(
            "gridlstm.export needs packages that are not installed: pip install 'gridlstm[onnx]'"
        )
    if not isinstance(module, nn.Module):
        raise TypeError(f"module: expected a torch.nn.Module, got {type(module).__name__}")
    dtypes = {p.dtype for p in module.parameters()} - {*DTYPES}
    if dtypes or not any(True for _ in module.parameters()):
        got = ", ".join(sorted(map(str, dtypes))) or "none"
        raise ExportError(f"module: expected parameters of dtype float32 or float64, got {got}")
    if interface is None:
        interface = interface_of(module, step=step, state=state, lengths=lengths)
    with _quiet(type(module).__name__):
        program = torch.onnx.export(
            _record(module, interface),
            dynamo=True,
            verbose=False,
            input_names=[value.name for value in interface.inputs],
            output_names=list(interface.outputs),
        )
        assert program is not None, "with dynamo=True it returns one"
        model = clean(program.model_proto, interface)
        if len(model.graph.output) != len(interface.outputs):
            found, named = len(model.graph.output), len(interface.outputs)
            raise ExportError(f"interface: expected the names of {found} outputs, got {named}")
        content = model.SerializeToString()
    write_bytes(Path(path), content)
    inputs, outputs = ([_port(value) for value in v] for v in (model.graph.input, model.graph.output))
    return Exported(Path(path), inputs, outputs, len(content), interface)


class _Adapter(nn.Module):
    """A module with tensors as arguments and a tuple of tensors as result."""

    def __init__(self, module: nn.Module, interface: Interface) -> None:
        super().__init__()
        self.module = module
        self.interface = interface

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.interface.run(self.module, inputs))


def _record(module: nn.Module, interface: Interface) -> torch.export.ExportedProgram:
    """Records the graph of a module."""
    sizes = {name: FIRST + k for k, name in enumerate(interface.axes)}
    dims: dict[str, Any] = {name: torch.export.Dim(name) for name in sizes}
    shapes = []
    for value in interface.inputs:
        parts = {i: split(axis) for i, axis in enumerate(value.axes) if isinstance(axis, str)}
        shapes.append({i: f * dims[name] if f > 1 else dims[name] for i, (f, name) in parts.items()})
    adapter = _Adapter(use_scan(module), interface)
    inputs = tuple(interface.draw(module, sizes))
    with torch.no_grad():
        return torch.export.export(adapter, inputs, dynamic_shapes=(tuple(shapes),), strict=False)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Turns whatever PyTorch raises into one sentence, without its warnings and logs."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    except (ExportError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        cause = error
        while isinstance(cause.__cause__, Exception):
            cause = cause.__cause__
        # Its stack, of hundreds of lines inside of PyTorch, would hide the sentence.
        raise ExportError(f"{name} cannot be exported: {_reason(cause)}") from None
    finally:
        logging.disable(disabled)


def _reason(error: Exception) -> str:
    """Why PyTorch cannot record a graph, in one line."""
    line = one_line(next(iter(str(error).strip().splitlines()), type(error).__name__))
    fixed = re.match(r"Constraints violated \((.*?)\)", line)
    if fixed:
        return f"its graph would fit only one length of {fixed[1]}"
    return f"PyTorch cannot record it ({line})"


def _port(value: Any) -> Port:
    kind = value.type.tensor_type
    shape = tuple(axis.dim_param or axis.dim_value for axis in kind.shape.dim)
    dtype = import_module("onnx").helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return Port(value.name, str(dtype), shape)
