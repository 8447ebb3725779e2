"""Generates text from a character model, one character after the other."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from gridlstm.checks import check_positive
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.stepper import Stepper, make_stepper
from gridlstm.state import State

__all__ = ["continue_text", "draw_after", "draw_symbol", "generate"]

PROMPT_CHUNK = 500
"""The number of characters of a prompt that are read at once."""


def continue_text(
    model: CharacterModel,
    prompt: str = "",
    length: int = 200,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    int8: bool = False,
) -> str:
    """Returns a prompt and the text that a model writes after it.

    Args:
        model: the model.
        prompt: the text to continue. Bytes that are not in the alphabet are not read.
        length: the number of bytes to write.
        temperature: divides the scores; 0 takes the most likely character.
        top_k: draw from this many of the most likely characters only. Default: all.
        seed: the seed of the random draws.
        int8: round the weights to 8 bits, as in :func:`generate`.

    Raises:
        TypeError: if ``length`` is not an integer.
        ValueError: if it is not positive, or as in :func:`generate`.
    """
    check_positive("length", length)
    alphabet: list[int] = model.alphabet.tolist()
    indices = {byte: index for index, byte in enumerate(alphabet)}
    known = np.array([indices[byte] for byte in prompt.encode() if byte in indices], np.int64)
    symbols = generate(model, known, temperature=temperature, top_k=top_k, seed=seed, int8=int8)
    written = bytes(alphabet[symbol] for symbol in islice(symbols, length))
    return prompt + written.decode(errors="replace")


@torch.no_grad()
def generate(
    model: CharacterModel,
    prompt: NDArray[np.int64],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    int8: bool = False,
) -> Iterator[int]:
    """Continues a prompt without end, in constant memory. Yields indices into the alphabet.

    Args:
        model: the model.
        prompt: indices into the alphabet. An empty prompt is replaced by a newline, or by the first
            character of the alphabet if that has no newline.
        temperature: divides the scores; 0 takes the most likely character.
        top_k: draw from this many of the most likely characters only. Default: all.
        seed: the seed of the random draws.
        int8: write with weights that are rounded to 8 bits, which is faster. For a plain 2-LSTM only;
            the prompt is read with the weights as they are.

    Raises:
        ValueError: if ``int8`` and the model is not a plain 2-LSTM, or its weights are not finite.
    """
    if not len(prompt):
        alphabet = model.alphabet.tolist()
        prompt = np.array([alphabet.index(10) if 10 in alphabet else 0])
    state: State | None = None
    for first in range(0, len(prompt) - 1, PROMPT_CHUNK):
        read = torch.from_numpy(prompt[first : min(first + PROMPT_CHUNK, len(prompt) - 1)])
        _, state = model(read.unsqueeze(0).to(model.alphabet.device), state)
    random = np.random.default_rng(seed)
    step = make_stepper(model, state, int8=int8)
    return draw_after(step, int(prompt[-1]), temperature, top_k, random)


def draw_after(
    step: Stepper, symbol: int, temperature: float, top_k: int | None, random: np.random.Generator
) -> Iterator[int]:
    """Yields the symbols after ``symbol``, each drawn from the scores after the previous one."""
    while True:
        symbol = draw_symbol(step(symbol), temperature, top_k, random)
        yield symbol


def draw_symbol(
    scores: NDArray[np.float32], temperature: float, top_k: int | None, random: np.random.Generator
) -> int:
    """Draws a symbol from the softmax of the scores."""
    if temperature == 0:
        return int(scores.argmax())
    logits = scores.astype(np.float64)
    if top_k is not None and top_k < len(logits):
        logits[np.argpartition(logits, -top_k)[:-top_k]] = -np.inf
    logits -= logits.max()
    logits /= temperature
    cumulative = np.exp(logits).cumsum()
    return int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))
