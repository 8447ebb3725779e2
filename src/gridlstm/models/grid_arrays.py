"""The weights and the state of a character model with a 2-LSTM, as NumPy arrays."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from gridlstm.cells import Output
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.state import State

__all__ = ["Floats", "GridArrays", "round_rows"]

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class GridArrays:
    """What it takes to run a 2-LSTM one character at a time.

    Attributes:
        weights: one matrix ``[8 d, 2 d]`` per layer, or a single one if tied: the gates ``u, f, o, c``
            of time, then those of depth.
        biases: the same without columns.
        entering: the vectors of each character, ``[symbols, 2, d]``: hidden, then memory.
        scores: the matrix ``[symbols, d or 2 d]`` that scores are read with.
        score_bias: ``[symbols]``.
        reads_memory: whether scores are read from memory vectors, too.
        output: how hidden vectors are read from memories.
        hidden: the state, ``[layers, d]``.
        memory: the same for memories.
    """

    weights: list[Floats]
    biases: list[Floats]
    entering: Floats
    scores: Floats
    score_bias: Floats
    reads_memory: bool
    output: Output
    hidden: Floats
    memory: Floats

    def rounded(self) -> "GridArrays":
        """The same with the values that all matrices have as :func:`round_rows` stores them."""

        def values(matrix: Floats) -> Floats:
            integers, scale = round_rows(matrix)
            return integers * scale[:, None]

        return replace(self, weights=list(map(values, self.weights)), scores=values(self.scores))

    @classmethod
    def of(cls, model: CharacterModel, state: State | None = None) -> "GridArrays | None":
        """Those of a model and a state for a batch of one; ``None`` if it is not a plain 2-LSTM."""
        body = model.body
        if not isinstance(body, SequenceGridLSTM) or body.bidirectional:
            return None
        grid, d = body.grid, body.hidden_size
        plain = all(dim.transform == "lstm" and not dim.priority for dim in grid.dims)
        plain = plain and not grid.layer_norm and not grid.block.has_zoneout
        if not plain or grid.dims[1].hidden_size not in (None, d):
            return None
        matrices = [_array(grid.weights_of(name)[0]) for name in ("time", "depth")]
        offsets = [grid.weights_of(name)[1] for name in ("time", "depth")]
        vectors = [
            np.zeros(matrix.shape[:-1], np.float32) if offset is None else _array(offset)
            for matrix, offset in zip(matrices, offsets, strict=True)
        ]
        sets = max(len(matrix) if matrix.ndim == 3 else 1 for matrix in matrices)
        weights = np.concatenate([np.broadcast_to(m, (sets, 4 * d, 2 * d)) for m in matrices], 1)
        biases = np.concatenate([np.broadcast_to(v, (sets, 4 * d)) for v in vectors], 1)
        projection, scores = body.projection.linear, model.scores
        entering = _array(projection.weight).T
        if projection.bias is not None:
            entering = entering + _array(projection.bias)
        hidden, memory = (np.zeros((body.num_layers, d), np.float32) for _ in range(2))
        if state is not None and state.memory is not None:
            hidden[:], memory[:] = _array(state.hidden[:, 0]), _array(state.memory[:, 0])
        return cls(
            weights=list(weights),
            biases=list(biases),
            entering=np.ascontiguousarray(entering).reshape(-1, 2, d),
            scores=_array(scores.weight),
            score_bias=np.zeros(len(scores.weight), np.float32)
            if scores.bias is None
            else _array(scores.bias),
            reads_memory=body.readout == "both",
            output=grid.output,
            hidden=hidden,
            memory=memory,
        )


def round_rows(matrix: Floats) -> tuple[NDArray[np.int8], Floats]:
    """A matrix as integers from -127 to 127 and the scale of each row, ``[rows]``.

    Raises:
        ValueError: if it is not finite.
    """
    if not np.isfinite(matrix).all():
        raise ValueError("int8: expected finite weights, got NaN or infinity")
    scale = np.maximum(np.abs(matrix).max(1) / np.float32(127), np.finfo(np.float32).tiny)
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale


def _array(tensor: torch.Tensor) -> Floats:
    array: Floats = tensor.detach().float().cpu().contiguous().numpy()
    return array
