"""Removes from an ONNX model what says where and how it was made, and names its dynamic axes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gridlstm import __version__
from gridlstm.export.interface import Interface, split

__all__ = ["clean"]


def clean(model: Any, interface: Interface) -> Any:
    """Strips a ``ModelProto``: no notes of the exporter, which have paths and stack traces.

    Its producer is this package. Its dynamic axes get the names that they have in the interface, and
    its metadata is that of the interface.
    """
    names: dict[str, str] = {}
    for value, described in zip(model.graph.input, interface.inputs, strict=True):
        for dim, axis in zip(value.type.tensor_type.shape.dim, described.axes, strict=True):
            if isinstance(axis, str) and dim.dim_param:
                names[re.sub(r"^\d+\*", "", dim.dim_param)] = split(axis)[1]
    graphs = list(_graphs(model.graph))
    used = {name for graph in graphs for node in graph.node for name in node.input}
    for graph in graphs:
        kept = [tensor for tensor in graph.initializer if tensor.name in used]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        for part in (graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
            _strip(part)
        del graph.value_info[:]  # Shapes of all that is in between; every reader infers them.
        for value in (*graph.input, *graph.output):
            _rename(value, names)
    for function in model.functions:
        for part in (function, *function.node):
            _strip(part)
    _strip(model)
    model.producer_name, model.producer_version = "gridlstm", __version__
    for key, text in interface.metadata.items():
        model.metadata_props.add(key=key, value=text)
    return model


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and those inside it: the bodies of its loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _strip(part: Any) -> None:
    part.ClearField("doc_string")
    part.ClearField("metadata_props")


def _rename(value: Any, names: Mapping[str, str]) -> None:
    """Replaces symbols such as ``s77`` by the names of axes, also in ``2*s77``."""
    for dim in value.type.tensor_type.shape.dim:
        if dim.dim_param:
            dim.dim_param = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), dim.dim_param)
