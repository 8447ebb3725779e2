"""Runs a 2-LSTM one character at a time in the compiled kernel."""

import ctypes
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gridlstm.engines.native.build import Kernel
from gridlstm.engines.native.layout import PANEL, StepperStruct
from gridlstm.models.grid_arrays import Floats, GridArrays, round_rows

__all__ = ["NativeStepper"]


class NativeStepper:
    """Runs a tied or untied 2-LSTM in C: ``step`` in ``engines/native/step.h``.

    Args:
        kernel: the compiled kernel.
        arrays: the weights of the network, and the state to start from; they are copied.
        int8: round the weights to 8 bits (:func:`round_rows`), and the vectors that they are multiplied
            with to 16 bits, or fewer if the hidden size is above 258.
    """

    def __init__(self, kernel: Kernel, arrays: GridArrays, *, int8: bool = False) -> None:
        layers, d = arrays.hidden.shape
        symbols = len(arrays.scores)
        self._step = kernel.step
        parts: dict[str, NDArray[Any]] = {
            "bias": np.stack(arrays.biases),
            "entering": arrays.entering,
            "score_bias": arrays.score_bias,
            "hidden": arrays.hidden,
            "memory": arrays.memory,
            "x": np.zeros((3, d), np.float32),
            "gates": np.zeros(_padded(8 * d), np.float32),
            "scores": np.zeros(_padded(symbols), np.float32),
        }
        if int8:
            sets, scales = zip(*map(round_rows, arrays.weights), strict=True)
            parts |= {"weight": np.stack(sets), "scale": np.stack(scales)}
            parts["score_weight"], parts["score_scale"] = round_rows(arrays.scores)
            parts["rounded"] = np.zeros(2 * d, np.int16)
        else:
            parts["weight"] = np.stack([_panels(weight) for weight in arrays.weights])
            parts["score_weight"] = _panels(arrays.scores)
        # Copies of PyTorch start at a cache line, arrays of NumPy do not. They are kept here: the
        # structure holds only their addresses.
        self._arrays = {name: torch.from_numpy(part).clone().numpy() for name, part in parts.items()}
        tied = len(arrays.weights) == 1
        struct = StepperStruct(
            layers=layers,
            d=d,
            symbols=symbols,
            set=0 if tied else self._arrays["weight"][0].size,
            standard=arrays.output == "standard",
            reads_memory=arrays.reads_memory,
            **{name: array.ctypes.data for name, array in self._arrays.items()},
        )
        self._struct, self._pointer = struct, ctypes.byref(struct)
        self._symbols = symbols

    def __call__(self, symbol: int) -> Floats:
        """Reads a character and returns the scores of the next one, ``[symbols]``.

        Raises:
            IndexError: if there is no such character.
        """
        if not 0 <= symbol < self._symbols:
            raise IndexError(f"symbol: expected from 0 to {self._symbols - 1}, got {symbol}")
        self._step(self._pointer, ctypes.c_int64(symbol))
        scores: Floats = self._arrays["scores"][: self._symbols].copy()
        return scores


def _padded(rows: int) -> int:
    return -(-rows // PANEL) * PANEL


def _panels(matrix: Floats) -> Floats:
    """``[rows, columns]`` as panels of rows, ``[rows / PANEL, columns, PANEL]``, padded with zeros."""
    rows, columns = matrix.shape
    padded = np.zeros((_padded(rows), columns), np.float32)
    padded[:rows] = matrix
    return np.ascontiguousarray(padded.reshape(-1, PANEL, columns).swapaxes(1, 2))
