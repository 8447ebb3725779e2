"""The structures of ``kernel.c`` and ``step.h`` mirrored with ctypes, and how a call fills them."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gridlstm.cells import CONNECTIONS, GRU, LSTM, Cell
from gridlstm.engines.backend import Boundary
from gridlstm.engines.buffers import Buffers, Call, Gradients, Rows
from gridlstm.engines.workspace import pitch
from gridlstm.state import State

__all__ = [
    "PANEL",
    "SIZES",
    "GridStruct",
    "StepStruct",
    "StepperStruct",
    "fill_grid",
    "fill_steps",
    "kind_of",
]

_LSTM, _GRU = 0, 4
_CONNECTIONS = {"identity": 1, "tanh": 2, "relu": 3}

_int, _pointer = ctypes.c_int64, ctypes.c_void_p


class TransformStruct(ctypes.Structure):
    """``Transform`` in ``kernel.c``: one dimension."""

    _fields_ = [
        *((name, _int) for name in ("kind", "phase", "d", "standard", "hidden", "memory", "gates")),
        *((name, _pointer) for name in ("successor", "face", "enters")),
        *((f"{where}_{vector}", _pointer) for where in ("in", "out", "blocks") for vector in "hm"),
    ]


class GridStruct(ctypes.Structure):
    """``Grid`` in ``kernel.c``: one call."""

    _fields_ = [
        *((name, _int) for name in ("transforms", "phases", "blocks", "batch", "H")),
        ("G", _int * 2),
        ("pitch_h", _int),
        ("pitch_m", _int),
        ("pitch_g", _int * 2),
        ("threads", _int),
        ("transform", ctypes.POINTER(TransformStruct)),
        *((name, _pointer) for name in ("weight_set", "mask", "kept", "scale")),
        ("bias", _pointer * 2),
    ]


class StepStruct(ctypes.Structure):
    """``Step`` in ``kernel.c``: the rows of one step."""

    _fields_ = [
        ("start", _int),
        ("n", _int),
        ("discard", _int),
        *((name, _pointer) for name in ("h", "m", "next_h", "next_m")),
        *((name, _pointer) for name in ("grad_h", "grad_m", "next_grad_h", "next_grad_m")),
        *((name, _pointer * 2) for name in ("x", "gates", "grad_x")),
    ]


class StepperStruct(ctypes.Structure):
    """``Stepper`` in ``step.h``: a network that runs one symbol at a time."""

    _fields_ = [
        *((name, _int) for name in ("layers", "d", "symbols", "set", "standard", "reads_memory")),
        *((name, _pointer) for name in ("weight", "scale", "bias", "entering")),
        *((name, _pointer) for name in ("score_weight", "score_scale", "score_bias")),
        *((name, _pointer) for name in ("hidden", "memory", "x", "rounded", "gates", "scores")),
    ]


PANEL = 64
"""The number of rows of a panel in ``step.h``."""
STRUCTS = (TransformStruct, GridStruct, StepStruct, StepperStruct)
SIZES = [*(ctypes.sizeof(struct) for struct in STRUCTS), PANEL]
"""The kernel must report the same sizes when it is loaded."""


def kind_of(cell: Cell) -> int | None:
    """The kernel's number for a cell; ``None`` if the kernel does not implement it."""
    if type(cell) is LSTM and not cell.normalises_memory:
        return _LSTM
    if type(cell) is GRU:
        return _GRU
    return _CONNECTIONS.get(cell.name) if CONNECTIONS.get(cell.name) == cell else None


def fill_grid(call: Call, boundary: Boundary, like: Tensor) -> tuple[GridStruct, list[object]]:
    """The structure of a call, and the objects that it points to, which must be kept alive."""
    block, plan = call.block, call.plan
    alive: list[object] = []

    def pointer(tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        alive.append(tensor := tensor.contiguous())
        return tensor.data_ptr()

    blocks = boundary.blocks or [State(None, None)] * len(block.transforms)  # type: ignore[arg-type]
    transforms = (TransformStruct * len(block.transforms))(
        *(
            TransformStruct(
                kind_of(transform.cell),
                transform.phase,
                block.width(i),
                isinstance(transform.cell, LSTM) and transform.cell.output == "standard",
                transform.hidden.start,
                0 if transform.memory is None else transform.memory.start,
                transform.gates.start,
                *(array.ctypes.data for array in (plan.successor[i], plan.face[i], plan.enters[i])),
                *(pointer(t) for s in (boundary.incoming, boundary.outgoing, blocks) for t in s[i]),
            )
            for i, transform in enumerate(block.transforms)
        )
    )
    alive.append(transforms)
    biases = [
        like.new_zeros(plan.sets, size) if bias is None else bias
        for bias, size in zip(call.biases, block.gate_sizes, strict=True)
    ]
    grid = GridStruct(
        transforms=len(transforms),
        phases=len(block.phases),
        blocks=plan.blocks,
        batch=call.batch,
        H=block.hidden_size,
        G=(_int * 2)(*block.gate_sizes),
        pitch_h=pitch(block.hidden_size),
        pitch_m=pitch(block.memory_size),
        pitch_g=(_int * 2)(*map(pitch, block.gate_sizes)),
        threads=torch.get_num_threads(),
        transform=transforms,
        weight_set=plan.weight_set.ctypes.data,
        mask=pointer(call.mask),
        kept=None if call.dropout is None else pointer(call.dropout.kept),
        scale=None if call.dropout is None else pointer(call.dropout.scale),
        bias=(_pointer * 2)(*(pointer(bias) for bias in biases)),
    )
    return grid, alive


def fill_steps(call: Call, buffers: Buffers, gradients: Gradients | None) -> list[StepStruct]:
    """The structures of all steps, in order."""
    count = len(call.plan.steps)

    def places(rows: Rows | None) -> list[int | None]:
        """The address of each step's first row; ``None`` beyond the last step."""
        if rows is None:
            return [None] * (count + 1)
        first, row_bytes = rows.data.data_ptr(), rows.data.stride(0) * rows.data.element_size()
        return [*(first + rows.first(s) * row_bytes for s in range(count)), None]

    def pairs(phases: Sequence[Rows] | None) -> list[Any]:
        """For each step, the addresses of both phases."""
        columns = [places(rows) for rows in phases or []]
        if not columns:
            return [(_pointer * 2)()] * count
        return [(_pointer * 2)(*addresses) for addresses in zip(*columns, strict=True)]

    h, m = places(buffers.hidden), places(buffers.memory)
    grad_h, grad_m = (
        places(rows) for rows in ((gradients.hidden, gradients.memory) if gradients else (None, None))
    )
    x, gates, grad_x = (
        pairs(buffers.inputs),
        pairs(buffers.gates),
        pairs(gradients.inputs if gradients else None),
    )
    return [
        StepStruct(
            step.start,
            step.stop - step.start,
            0,
            h[s],
            m[s],
            h[s + 1],
            m[s + 1],
            grad_h[s],
            grad_m[s],
            grad_h[s + 1],
            grad_m[s + 1],
            x[s],
            gates[s],
            grad_x[s],
        )
        for s, step in enumerate(call.plan.steps)
    ]
