"""The structures of ``kernel.c`` and ``step.h`` mirrored with ctypes, and how a call fills them."""

import ctypes
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.cells import CONNECTIONS, GRU, LSTM, Cell
from gridlstm.engines.backend import Boundary
from gridlstm.engines.buffers import Buffers, Call, Gradients, Rows
from gridlstm.engines.workspace import pitch
from gridlstm.geometry import Plan
from gridlstm.state import State

__all__ = [
    "PANEL",
    "SIZES",
    "GridStruct",
    "ProductStruct",
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
        *((name, _pointer) for name in ("successor", "face", "exit", "enters")),
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
        ("groups", _int),
        ("group", _pointer),
        *((name, _pointer) for name in ("h", "m", "next_h", "next_m")),
        *((name, _pointer) for name in ("grad_h", "grad_m", "next_grad_h", "next_grad_m")),
        *((name, _pointer * 2) for name in ("x", "gates", "grad_x")),
    ]


class ProductStruct(ctypes.Structure):
    """``Product`` in ``kernel.c``: the matrices of a phase."""

    _fields_ = [*((name, _int) for name in ("K", "N", "column")), ("panels", _pointer)]


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
STRUCTS = (TransformStruct, GridStruct, StepStruct, ProductStruct, StepperStruct)
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
                *(
                    array.ctypes.data
                    for array in (plan.successor[i], plan.face[i], plan.exit[i], plan.enters[i])
                ),
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


@lru_cache(maxsize=256)
def _step_table(plan: Plan) -> NDArray[np.int64]:
    """The first fields of :class:`StepStruct`: start, number of blocks, and the groups."""
    arrays = [step.group_array for step in plan.steps]
    addresses = [(len(groups), groups.ctypes.data) for groups in arrays]
    rows = [(step.start, step.stop - step.start) for step in plan.steps]
    return np.concatenate([np.array(rows), np.array(addresses)], 1)


def fill_steps(call: Call, buffers: Buffers, gradients: Gradients | None) -> NDArray[np.int64]:
    """All steps in order, each a row with the fields of :class:`StepStruct`."""
    steps = call.plan.steps
    # One row more than there are steps: beyond the last one there is nothing, so pointers are null.
    table = np.zeros((len(steps) + 1, ctypes.sizeof(StepStruct) // ctypes.sizeof(_int)), np.int64)

    def fill(name: str, rows: Rows, following: str | None = None) -> None:
        place, _, phase = name.partition(" ")
        column = getattr(StepStruct, place).offset // ctypes.sizeof(_int) + int(phase or 0)
        row_bytes = rows.data.stride(0) * rows.data.element_size()
        table[:-1, column] = [rows.first(s) for s in range(len(steps))]
        table[:-1, column] *= row_bytes
        table[:-1, column] += rows.data.data_ptr()
        if following is not None:
            table[:-1, getattr(StepStruct, following).offset // ctypes.sizeof(_int)] = table[1:, column]

    table[:-1, :4] = _step_table(call.plan)
    fill("h", buffers.hidden, "next_h")
    fill("m", buffers.memory, "next_m")
    phases = {"x": buffers.inputs, "gates": buffers.gates}
    if gradients is not None:
        fill("grad_h", gradients.hidden, "next_grad_h")
        fill("grad_m", gradients.memory, "next_grad_m")
        phases["grad_x"] = gradients.inputs
    for name, every in phases.items():
        for p, rows in enumerate(every):
            fill(f"{name} {p}", rows)
    return table
