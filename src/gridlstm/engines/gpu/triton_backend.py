"""The backend in Triton, for CUDA and ROCm; ``torch_backend.py`` computes the same.

From the first to the last step of a pass it only launches kernels: it neither waits for the device nor
copies from the host, so that a CUDA graph can capture it.
"""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridlstm.block import Block, Transform
from gridlstm.cells import LSTM, Cell
from gridlstm.engines.backend import Backend, Boundary, kernel_reasons
from gridlstm.engines.buffers import Buffers, Call, Gradients, Rows
from gridlstm.engines.native.layout import kind_of
from gridlstm.engines.workspace import pitch
from gridlstm.geometry import Plan

__all__ = ["DTYPES", "TritonBackend", "implements", "launch"]

DTYPES = (
    (torch.float32, torch.float32),
    (torch.float64, torch.float64),
    (torch.float32, torch.bfloat16),
    (torch.float32, torch.float16),
)
"""The dtypes of states and products that the kernels support."""
_CELLS = ("lstm", "gru", "identity", "tanh", "relu")


class TritonBackend(Backend):
    """Launches one kernel per method and dimension; see :class:`Backend`."""

    name = "Triton"

    def __init__(
        self, call: Call, buffers: Buffers, gradients: Gradients | None, boundary: Boundary
    ) -> None:
        super().__init__(call, buffers, gradients, boundary)
        self._ahead = gradients or buffers  # Where kernels look for rows of the next step.
        self._enters = _make_enters(call.plan)
        self._masked = None if call.mask is None else ~call.mask.unsqueeze(-1)
        like = buffers.hidden.data
        # The pointers that kernels never use because a call does not have what they point to.
        self._no_vectors, self._no_inputs = like, buffers.gates[0].data
        self._no_flags = torch.empty(1, dtype=torch.uint8, device=like.device)
        self._kept = self._scale = None
        if call.dropout is not None:
            self._kept = _as_bytes(call.dropout.kept)
            self._scale = call.dropout.scale.contiguous()
        self._shared = {
            "mask": self._no_flags if call.mask is None else _as_bytes(call.mask),
            "has_mask": int(call.mask is not None),
            "has_kept": int(call.dropout is not None),
            "batch": call.batch,
            "H": call.block.hidden_size,
            "pitch_h": pitch(call.block.hidden_size),
            "pitch_m": pitch(call.block.memory_size),
        }
        self._own = [
            self._arguments(i, transform, boundary) for i, transform in enumerate(call.block.transforms)
        ]

    @staticmethod
    def not_supported_reasons(block: Block, like: Tensor, product: torch.dtype) -> list[str]:
        """The device, then recording, dtypes, cells, the GPU, and whether Triton is installed."""
        device, interpreted = like.device.type, os.environ.get("TRITON_INTERPRET") == "1"
        if device != "cuda" and not (device == "cpu" and interpreted):
            return [f"it runs on CUDA and ROCm, not on {device}"]
        reasons = kernel_reasons(block, like, product, DTYPES, implements)
        if device == "cuda" and torch.version.hip is None:
            major, minor = torch.cuda.get_device_capability(like.device)
            if major < 7:
                reasons.append(f"it needs a GPU of compute capability 7.0 or more, not {major}.{minor}")
        if find_spec("triton") is None:
            reasons.append("it is not installed: pip install 'gridlstm[triton]'")
        return reasons

    def enter(self, s: int) -> None:
        """Launches ``enter`` for the dimensions whose sides enter the step."""
        for i, transform in enumerate(self.call.block.transforms):
            if self._enters[s][i]:
                self._launch("enter", s, i, has_memory=int(transform.memory is not None))

    def read(self, s: int, p: int) -> None:
        """Launches ``read`` for the dimensions that no earlier phase has computed."""
        x = self.buffers.inputs[p]
        for i, transform in enumerate(self.call.block.transforms):
            if transform.phase >= p:
                self._launch(
                    "read",
                    s,
                    i,
                    **self._dropout(p, transform),
                    x=x.data[..., transform.hidden],
                    first_x=self._first(x, s),
                )

    def forward(self, s: int, p: int) -> None:
        """Launches ``forward`` for the dimensions of a phase."""
        for i in self.call.block.phases[p]:
            later = self._later(self.buffers.inputs, s, i)
            self._launch("forward", s, i, **later)

    def backward(self, s: int, p: int) -> None:
        """Launches ``backward`` for the dimensions of a phase."""
        assert self.gradients is not None, "a backward pass has gradients"
        if self._masked is not None:
            # A masked block may have read NaN, and 0 · NaN would spoil the gradient of the weights.
            step = self.call.plan.steps[s]
            self.buffers.inputs[p].at(s).masked_fill_(self._masked[step.start : step.stop], 0)
        for i in self.call.block.phases[p]:
            self._launch("backward", s, i, **self._later(self.gradients.inputs, s, i))

    def finish(self, s: int) -> None:
        """Launches ``finish`` for the dimensions with something left to add or to copy."""
        assert self.gradients is not None, "a backward pass has gradients"
        x = self.gradients.inputs
        in_place = x[0] is self.gradients.hidden  # The product has written the sum.
        for i, transform in enumerate(self.call.block.transforms):
            if in_place and self._masked is None and not self._enters[s][i]:
                continue
            self._launch(
                "finish",
                s,
                i,
                **self._dropout(0, transform, "_0"),
                **self._dropout(len(x) - 1, transform, "_1"),
                grad_x_0=x[0].data[..., transform.hidden],
                grad_x_1=x[-1].data[..., transform.hidden],
                first_x=self._first(x[0], s),
                has_part=int(in_place or transform.reads_hidden),
                phases=0 if in_place else transform.phase + 1,
            )

    def _arguments(self, i: int, transform: Transform, boundary: Boundary) -> dict[str, Any]:
        """The arguments of kernels for a dimension that are the same in every step."""
        block, p = self.call.block, transform.phase
        bias, gates = self.call.biases[p], self.buffers.gates[p].data
        if bias is None:
            bias = gates.new_zeros(
                self.call.plan.sets, block.gate_sizes[p], dtype=self._no_vectors.dtype
            )
        columns, memory = transform.hidden, transform.memory or slice(0, 0)
        arguments = {
            "table": _make_table(self.call.plan, gates.device)[i],
            "bias": bias.contiguous()[:, transform.gates],
            "h": self.buffers.hidden.data[..., columns],
            "m": self.buffers.memory.data[..., memory],
            "gates": gates[..., transform.gates],
            "grad_h": self._ahead.hidden.data[..., columns],
            "grad_m": self._ahead.memory.data[..., memory],
            "d": block.width(i),
            "G": block.gate_sizes[p],
            "pitch_g": pitch(block.gate_sizes[p]),
            "has_blocks": int(bool(boundary.blocks)),
            "CELL": transform.cell.name,
            "STANDARD": isinstance(transform.cell, LSTM) and transform.cell.output == "standard",
        }
        nothing = (None, None)
        blocks = boundary.blocks[i] if boundary.blocks else nothing
        sides = {"in": boundary.incoming[i], "out": boundary.outgoing[i], "blocks": blocks}
        for name, state in sides.items():
            for letter, vectors in zip("hm", state, strict=True):
                arguments[f"has_{name}_{letter}"] = int(vectors is not None)
                arguments[f"{name}_{letter}"] = (
                    self._no_vectors if vectors is None else vectors.contiguous()
                )
        return arguments

    def _later(self, inputs: Sequence[Rows], s: int, i: int) -> dict[str, Any]:
        """The arguments for what the phase after that of a dimension reads, or its gradients."""
        transform = self.call.block.transforms[i]
        p = transform.phase + 1
        if p == len(inputs):
            dropout = {"kept": self._no_flags, "scale": self._no_vectors}
            return {"later": self._no_inputs, **dropout, "first_later": 0, "has_later": 0}
        return {
            "later": inputs[p].data[..., transform.hidden],
            **self._dropout(p, transform),
            "first_later": self._first(inputs[p], s),
            "has_later": 1,
        }

    def _dropout(self, p: int, transform: Transform, suffix: str = "") -> dict[str, Tensor]:
        """The arguments for what a phase keeps of a dimension's vectors."""
        kept, scale = self._no_flags, self._no_vectors
        if self._kept is not None and self._scale is not None:
            kept, scale = (t[p, ..., transform.hidden] for t in (self._kept, self._scale))
        return {f"kept{suffix}": kept, f"scale{suffix}": scale}

    def _first(self, rows: Rows, s: int) -> int:
        """The number of the first row of a step in a buffer; 0 beyond the last step."""
        return rows.first(s) * self.call.batch if s < len(self.call.plan.steps) else 0

    def _launch(self, name: str, s: int, i: int, **arguments: Any) -> None:
        """Launches a kernel for the rows of a step and the columns of a dimension."""
        step, gates = self.call.plan.steps[s], self.buffers.gates[0]
        launch(
            name,
            {
                **self._shared,
                **self._own[i],
                "start": step.start * self.call.batch,
                "rows": (step.stop - step.start) * self.call.batch,
                "first": self._first(self.buffers.hidden, s),
                "first_gates": self._first(gates, s),
                "first_grad": self._first(self._ahead.hidden, s),
                "ahead": self._first(self._ahead.hidden, s + 1),
                **arguments,
            },
        )


def launch(name: str, arguments: Mapping[str, Any]) -> None:
    """Launches a kernel of ``triton_kernels`` with those of the arguments that it has."""
    from gridlstm.engines.gpu import triton_kernels  # Imports Triton.

    kernel: Any = getattr(triton_kernels, name)
    rows, columns = triton_kernels.ROWS, triton_kernels.COLUMNS
    grid = -(-arguments["rows"] // rows), -(-arguments["d"] // columns)
    if grid[0] == 0:  # The batch is empty.
        return
    given = {"ROWS": rows, "COLUMNS": columns, **arguments}
    with torch.cuda.device_of(arguments["table"]):
        kernel[grid](**{name: given[name] for name in kernel.arg_names})


@lru_cache(maxsize=256)
def _make_table(plan: Plan, device: torch.device) -> Tensor:
    """The numbers that kernels look up, ``[dimensions, blocks, 5]``.

    They are copied to the device once: a graph that is captured after a first call copies nothing.
    """
    dimensions = zip(plan.successor, plan.face, plan.exit, plan.enters, strict=True)
    numbers = [np.stack((*columns, plan.weight_set), -1) for columns in dimensions]
    with torch.inference_mode(False):
        return torch.from_numpy(np.stack(numbers).astype(np.int32)).to(device)


@lru_cache(maxsize=256)
def _make_enters(plan: Plan) -> list[list[bool]]:
    """For each step and dimension, whether vectors of its side enter."""
    return [
        [bool(enters[step.start : step.stop].any()) for enters in plan.enters] for step in plan.steps
    ]


def implements(cell: Cell) -> bool:
    """Whether the kernels implement a cell."""
    return cell.name in _CELLS and kind_of(cell) is not None  # Not another cell of the same name.


def _as_bytes(flags: Tensor) -> Tensor:
    return flags.contiguous().view(torch.uint8)
