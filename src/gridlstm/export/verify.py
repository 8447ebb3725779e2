"""Compares an ONNX file with the module that it was made from."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from gridlstm.export.onnx_file import Exported
from gridlstm.export.scan import ExportError

__all__ = ["can_verify", "largest_difference"]


def can_verify() -> bool:
    """Whether onnxruntime is installed."""
    return find_spec("onnxruntime") is not None


@torch.no_grad()
def largest_difference(exported: Exported, module: nn.Module, *sizes: Mapping[str, int]) -> float:
    """Runs a file in onnxruntime, on random inputs, and the module with its own engine.

    Args:
        exported: the file.
        module: the module that it was made from, on the CPU and in evaluation mode.
        sizes: lengths of the dynamic axes, for one comparison each. Default: all axes of length 1, and
            longer ones of different lengths.

    Returns:
        The largest absolute difference between any two outputs; NaN if an output has a NaN.

    Raises:
        ImportError: if onnxruntime is not installed.
        ExportError: if the outputs have different shapes.
    """
    session = import_module("onnxruntime").InferenceSession(exported.path)
    names = exported.interface.axes
    sizes = sizes or (dict.fromkeys(names, 1), {name: 7 + k for k, name in enumerate(names)})
    differences = [torch.zeros(1)]
    for lengths in sizes:
        inputs = exported.interface.draw(module, lengths)
        named = zip(exported.inputs, inputs, strict=True)
        results = session.run(None, {port.name: tensor.numpy() for port, tensor in named})
        for expected, result in zip(exported.interface.run(module, inputs), results, strict=True):
            differences.append(_difference(expected, torch.from_numpy(result)))
    return float(torch.cat(differences).max())


def _difference(expected: Tensor, result: Tensor) -> Tensor:
    if expected.shape != result.shape:
        shapes = f"{list(expected.shape)}, got {list(result.shape)}"
        raise ExportError(f"an output of the exported file has another shape: expected {shapes}")
    return (expected - result).abs().flatten()
