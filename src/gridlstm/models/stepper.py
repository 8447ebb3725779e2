"""Runs a model one character at a time: in NumPy where possible, whose calls take a microsecond."""

import numpy as np
import torch
from numpy.typing import NDArray

from gridlstm.models.character_model import CharacterModel
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.state import State

__all__ = ["GridStepper", "ModelStepper", "Stepper", "make_stepper"]

Floats = NDArray[np.float32]


class ModelStepper:
    """Runs any model one character at a time.

    Args:
        model: the model.
        state: the initial state, for a batch of one. Default: zero.
    """

    def __init__(self, model: CharacterModel, state: State | None = None) -> None:
        self.model = model
        self.state = state

    @torch.no_grad()
    def __call__(self, symbol: int) -> Floats:
        """Reads a character and returns the scores of the next one, ``[symbols]``."""
        read = torch.tensor([[symbol]], device=self.model.alphabet.device)
        scores, self.state = self.model(read, self.state)
        array: Floats = scores[0, 0].float().numpy()
        return array


class GridStepper:
    """Runs a tied or untied 2-LSTM, several times faster than :class:`ModelStepper`.

    Both dimensions of a block are one product. Rows of sigmoid gates are halved beforehand: because
    ``σ(x) = (tanh(x / 2) + 1) / 2``, one tanh computes all gates.

    Args:
        model: the model; its body is a :class:`SequenceGridLSTM` with LSTM cells along both dimensions.
        state: the initial state, for a batch of one. Default: zero.
    """

    def __init__(self, model: CharacterModel, state: State | None = None) -> None:
        body = model.body
        assert isinstance(body, SequenceGridLSTM), "a 2-LSTM"
        d, layers = body.hidden_size, body.num_layers
        halves = np.repeat(
            np.array([0.5, 0.5, 0.5, 1.0], np.float32), d
        )  # For the gates u, f, o and c.
        self.weights, self.biases = [], []
        for layer in range(layers):
            matrices, vectors = [], []
            for name in ("time", "depth"):
                shared, offset = body.grid.weights_of(name)
                weight = _array(shared)
                vector = np.zeros(weight.shape[:-1], np.float32) if offset is None else _array(offset)
                index = layer if weight.ndim == 3 else ...
                matrices.append(weight[index] * halves[:, None])
                vectors.append(vector[index] * halves)
            self.weights.append(np.concatenate(matrices))
            self.biases.append(np.concatenate(vectors))
        projection = body.projection.linear
        # The vectors with which each character enters, [symbols, 2, d]: hidden, then memory.
        entering = _array(projection.weight).T + (
            0 if projection.bias is None else _array(projection.bias)
        )
        self.entering = np.ascontiguousarray(entering).reshape(-1, 2, d)
        self.scores = _array(model.scores.weight)
        self.score_bias = 0 if model.scores.bias is None else _array(model.scores.bias)
        self.reads_memory = body.readout == "both"
        self.hidden = np.zeros((layers, d), np.float32)
        self.memory = np.zeros((layers, d), np.float32)
        if state is not None and state.memory is not None:
            self.hidden[:], self.memory[:] = _array(state.hidden[:, 0]), _array(state.memory[:, 0])

    def __call__(self, symbol: int) -> Floats:
        """Reads a character and returns the scores of the next one, ``[symbols]``."""
        d = self.hidden.shape[1]
        h, m = np.empty((2, d), np.float32), np.empty((2, d), np.float32)  # For time and depth.
        h[1], m[1] = self.entering[symbol]
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h[0], m[0] = self.hidden[layer], self.memory[layer]
            gates = weight @ h.reshape(-1)
            gates += bias
            np.tanh(gates, out=gates)
            u, f, o, c = gates.reshape(2, 4, d).swapaxes(0, 1)
            # (f + 1) / 2 · m + (u + 1) / 2 · c, and tanh((o + 1) / 2 · m) (Eq. 1).
            f += 1
            u += 1
            m *= f
            u *= c
            m += u
            m *= 0.5
            o += 1
            o *= m
            o *= 0.5
            np.tanh(o, out=h)
            self.hidden[layer], self.memory[layer] = h[0], m[0]
        read = np.concatenate((h[1], m[1])) if self.reads_memory else h[1]
        scores: Floats = self.scores @ read + self.score_bias
        return scores


Stepper = ModelStepper | GridStepper


def make_stepper(model: CharacterModel, state: State | None = None) -> Stepper:
    """The fastest stepper for a model, starting from a state."""
    body = model.body
    plain = (
        isinstance(body, SequenceGridLSTM)
        and not body.bidirectional
        and all(dim.transform == "lstm" and not dim.priority for dim in body.grid.dims)
        and body.grid.output == "paper"
        and body.grid.dims[1].hidden_size in (None, body.hidden_size)
    )
    return GridStepper(model, state) if plain else ModelStepper(model, state)


def _array(tensor: torch.Tensor) -> Floats:
    array: Floats = tensor.detach().float().cpu().numpy()
    return array
