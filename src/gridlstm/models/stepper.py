"""Runs a model one character at a time: a 2-LSTM in C or in NumPy, whose calls take a microsecond."""

import numpy as np
import torch

from gridlstm.engines.native.build import library
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.grid_arrays import Floats, GridArrays
from gridlstm.models.native_stepper import NativeStepper
from gridlstm.state import State

__all__ = ["GridStepper", "ModelStepper", "Stepper", "make_stepper"]


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
    """Runs a tied or untied 2-LSTM in NumPy, several times faster than :class:`ModelStepper`.

    Both dimensions of a block are one product. Rows of sigmoid gates are halved beforehand: because
    ``σ(x) = (tanh(x / 2) + 1) / 2``, one tanh computes all gates.

    Args:
        arrays: the weights of the network, and its state.
    """

    def __init__(self, arrays: GridArrays) -> None:
        self.arrays = arrays
        layers, d = arrays.hidden.shape
        # For the gates u, f, o and c of time, then of depth.
        halves = np.tile(np.repeat(np.array([0.5, 0.5, 0.5, 1.0], np.float32), d), 2)
        copies = layers // len(arrays.weights)
        self.weights = [weight * halves[:, None] for weight in arrays.weights] * copies
        self.biases = [bias * halves for bias in arrays.biases] * copies

    def __call__(self, symbol: int) -> Floats:
        """Reads a character and returns the scores of the next one, ``[symbols]``."""
        arrays = self.arrays
        d = arrays.hidden.shape[1]
        h, m = np.empty((2, d), np.float32), np.empty((2, d), np.float32)  # For time and depth.
        h[1], m[1] = arrays.entering[symbol]
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h[0], m[0] = arrays.hidden[layer], arrays.memory[layer]
            gates = weight @ h.reshape(-1)
            gates += bias
            np.tanh(gates, out=gates)
            u, f, o, c = gates.reshape(2, 4, d).swapaxes(0, 1)
            # (f + 1) / 2 · m + (u + 1) / 2 · c.
            f += 1
            u += 1
            m *= f
            u *= c
            m += u
            m *= 0.5
            o += 1
            o *= 0.5
            if arrays.output == "paper":
                np.tanh(o * m, out=h)
            else:
                np.multiply(o, np.tanh(m), out=h)
            arrays.hidden[layer], arrays.memory[layer] = h[0], m[0]
        read = np.concatenate((h[1], m[1])) if arrays.reads_memory else h[1]
        scores: Floats = arrays.scores @ read + arrays.score_bias
        return scores


Stepper = ModelStepper | GridStepper | NativeStepper


def make_stepper(model: CharacterModel, state: State | None = None, *, int8: bool = False) -> Stepper:
    """The fastest stepper for a model.

    Args:
        model: the model.
        state: the initial state, for a batch of one. Default: zero.
        int8: round the weights of the grid and of the scores to 8 bits, one scale per row.

    Raises:
        ValueError: if ``int8`` and the model is not a plain 2-LSTM, or its weights are not finite.
    """
    arrays, kernel = GridArrays.of(model, state), library()
    if arrays is None:
        if int8:
            raise ValueError(f"int8: expected a plain 2-LSTM, got {type(model.body).__name__}")
        return ModelStepper(model, state)
    if kernel is None:
        return GridStepper(arrays.rounded() if int8 else arrays)
    return NativeStepper(kernel, arrays, int8=int8)
