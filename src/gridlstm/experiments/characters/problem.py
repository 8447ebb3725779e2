"""Character-level language modelling as a problem for the trainer (section 4.3)."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.experiments.characters.data import (
    Corpus,
    contiguous,
    draw_chunks,
    encode,
    starts_sequence,
)
from gridlstm.experiments.characters.options import CharacterEval, CharacterOptions
from gridlstm.experiments.symbol_weights import symbol_weights
from gridlstm.models.character_model import CharacterBody, CharacterModel
from gridlstm.models.gated_feedback import GatedFeedbackLSTM
from gridlstm.models.generate import generate
from gridlstm.models.multiplicative import MultiplicativeRNN
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stacked import StackedLSTM
from gridlstm.state import State
from gridlstm.training.problem import Measures, Problem

__all__ = ["CharacterProblem", "make_model", "measure"]

Bytes = NDArray[np.uint8]

STREAMS = 50
"""The number of pieces of the validation text that are read in parallel."""
PROMPT, WRITTEN = 40, 200
"""The number of characters of a demonstration: of the prompt, and of the generated text."""
READ_AT_ONCE = 200
"""Characters per call when a text is measured."""


class CharacterProblem(Problem):
    """Prediction of a text.

    Args:
        options: the options of the experiment.
        data: the directory of data sets.

    Raises:
        ValueError: if the text is missing, damaged or too short.
    """

    def __init__(self, options: CharacterOptions, data: Path | None) -> None:
        self.options = options
        self.matrix_rows = options.hidden
        self.adam_parameters = symbol_weights(options.network)
        self.corpus = _corpus(options, data)
        if min(len(self.corpus.valid), len(self.corpus.test)) < 2:
            raise ValueError("text: expected at least 2 bytes each to validate and test on, got fewer")
        self._state: State | None = None
        self._chunks(0, 0, 1)  # Raises an error now, not in training, if the text is too short.

    def data(self) -> dict[str, str]:
        """The checksum of the text."""
        return {"text": self.corpus.sha256()}

    def show(self, count: int) -> Iterator[str]:
        """The first chunk of each of this many streams."""
        streams = min(count, self.options.training.batch)
        for chunk in self._chunks(0, 0, streams)[0]:
            yield chunk.tobytes().decode(errors="replace")

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """Text that the network generates after the beginning of the test text."""
        assert isinstance(network, CharacterModel), "the network of this problem"
        alphabet = self.corpus.alphabet
        prompt = bytes(self.corpus.test[:PROMPT])
        symbols = islice(generate(network, encode(prompt, alphabet)[0], temperature=0.7), WRITTEN)
        written = prompt + bytes(alphabet[symbol] for symbol in symbols)
        yield from written.decode(errors="replace").splitlines()

    def network(self) -> nn.Module:
        """A new network of the kind named in the options."""
        return make_model(self.options, self.corpus.alphabet)

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """Cross-entropy of a chunk of each stream; carries the state to the next chunk."""
        options = self.options
        update, stream = divmod(first, options.training.batch)
        device = next(network.parameters()).device
        inputs, targets = self._draw(update, stream, count, device)
        if starts_sequence(update, options.chunk, options.sequence):
            self._state = None
        scores, state = network(inputs, self._state)
        self._state = state.map(Tensor.detach)
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten())

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Bits per character of the beginning of the validation text, the same at every evaluation."""
        part = self.corpus.valid[: self.options.validated + 1]
        measures = measure(network, part, self.corpus.alphabet, min(STREAMS, len(part) - 1))
        return {"bits": measures["bits"]}

    def test(self, network: nn.Module, samples: int | None, options: CharacterEval) -> Measures:
        """Bits per character of the test text. Default: all of it."""
        part = self.corpus.test if samples is None else self.corpus.test[: samples + 1]
        measures = measure(network, part, self.corpus.alphabet, options.streams)
        return {"streams": options.streams, **measures}

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Whether there are fewer bits per character."""
        return not best or measures["bits"] < best["bits"]

    def carried(self) -> dict[str, Tensor]:
        """The state of each stream, ``[streams, layers, hidden]``."""
        if self._state is None:
            return {}
        parts = {"hidden": self._state.hidden, "memory": self._state.memory}
        return {name: t.transpose(0, 1) for name, t in parts.items() if t is not None}

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores the state."""
        parts = {name: t.transpose(0, 1).contiguous() for name, t in tensors.items()}
        self._state = State(parts["hidden"], parts.get("memory")) if parts else None

    def _chunks(self, update: int, first: int, count: int) -> tuple[Bytes, Bytes]:
        options = self.options
        return draw_chunks(
            self.corpus.train,
            options.training.seed,
            update,
            streams=options.training.batch,
            chunk=options.chunk,
            sequence=options.sequence,
            first=first,
            count=count,
        )

    def _draw(self, update: int, first: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
        chunks = self._chunks(update, first, count)
        inputs, targets = (_indices(text, self.corpus.alphabet, device) for text in chunks)
        return inputs, targets


def make_model(options: CharacterOptions, alphabet: bytes) -> CharacterModel:
    """Makes a new model of the kind named in the options, for texts in this alphabet."""
    kind, symbols = options.network, len(alphabet)
    cells: dict[str, Any] = {"forget_bias": options.forget_bias, "batch_first": True}
    sizes = (symbols, options.hidden, options.layers)
    body: CharacterBody
    if kind.endswith("grid"):
        body = SequenceGridLSTM(
            *sizes, tied=kind != "untied-grid", shared=kind == "shared-grid", readout="both", **cells
        )
    elif kind.endswith("stacked"):
        body = StackedLSTM(*sizes, tied=kind == "tied-stacked", **cells)
    elif kind == "gated-feedback":
        body = GatedFeedbackLSTM(*sizes, **cells)
    else:
        body = MultiplicativeRNN(symbols, options.hidden, batch_first=True)
    return CharacterModel(alphabet, body)


@torch.no_grad()
def measure(network: nn.Module, text: Bytes, alphabet: bytes, streams: int = 1) -> Measures:
    """Bits per character of a text except for its first character, with state carried along.

    Args:
        network: the network that predicts.
        text: bytes, all of them in the alphabet.
        alphabet: the alphabet of the network.
        streams: the number of pieces to read in parallel, each of which starts with a zero state.

    Returns:
        ``bits`` per character, and the number of predicted ``characters``.
    """
    if not 1 <= streams < len(text):
        raise ValueError(
            f"streams: expected 1 to {len(text) - 1} for a text of {len(text)}, got {streams}"
        )
    state: State | None = None
    total, characters = 0.0, 0
    device = next(network.parameters()).device
    for inputs, targets, scored in contiguous(text, streams, READ_AT_ONCE):
        scores, state = network(_indices(inputs, alphabet, device), state)
        following = _indices(targets, alphabet, device).flatten()
        losses = F.cross_entropy(scores.flatten(0, 1), following, reduction="none")
        losses = losses.double()[torch.from_numpy(scored).flatten().to(device)]
        total += losses.sum().item()
        characters += len(losses)
    return {"bits": total / characters / math.log(2), "characters": characters}


def _indices(text: Bytes, alphabet: bytes, device: torch.device) -> Tensor:
    return torch.from_numpy(encode(text, alphabet)[0]).to(device)


def _corpus(options: CharacterOptions, data: Path | None) -> Corpus:
    if options.text is not None:
        return Corpus.from_file(Path(options.text))
    return Corpus.enwik8(data) if options.corpus == "enwik8" else Corpus.shakespeare()
