"""A byte-level language model around any recurrent network (section 4.3)."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.state import State

__all__ = ["CharacterBody", "CharacterModel"]


class CharacterBody(Protocol):
    """A recurrent network with the calling convention of ``torch.nn.LSTM``, batch first."""

    output_size: int

    def __call__(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """``[batch, time, symbols]`` to ``[batch, time, output]`` and the new state."""


class CharacterModel(nn.Module):
    """Predicts each character of a text from those before it.

    With a :class:`SequenceGridLSTM` that has ``readout="both"``, it is the model of the paper: a
    character is projected into the hidden and the memory vector that enter the bottom of the grid,
    and the scores are read from both vectors at its top.

    Args:
        alphabet: the byte values that occur in the text, ascending.
        body: a batch-first network whose inputs are as long as the alphabet.
        bias: add a bias to the scores.

    Variables:
        alphabet: ``[symbols]``, a buffer that is saved with the weights.

    >>> from gridlstm import SequenceGridLSTM
    >>> body = SequenceGridLSTM(3, 8, 2, readout="both", batch_first=True)
    >>> model = CharacterModel(b"abc", body)
    >>> scores, state = model(torch.tensor([[0, 2, 1, 1]]))
    >>> scores.shape
    torch.Size([1, 4, 3])
    """

    alphabet: Tensor

    def __init__(self, alphabet: bytes, body: CharacterBody, *, bias: bool = True) -> None:
        super().__init__()
        if not alphabet or sorted(set(alphabet)) != list(alphabet):
            raise ValueError(f"alphabet: expected distinct bytes in ascending order, got {alphabet!r}")
        self.register_buffer("alphabet", torch.tensor(list(alphabet), dtype=torch.uint8))
        self.body = body
        self.scores = nn.Linear(body.output_size, len(alphabet), bias)

    def forward(self, symbols: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Reads characters.

        Args:
            symbols: indices into the alphabet, ``[batch, time]``.
            state: the state that an earlier call returned. Default: zero.

        Returns:
            The scores (logits) of each next character, ``[batch, time, symbols]``, and the new state.
        """
        one_hot = F.one_hot(symbols, len(self.alphabet)).to(self.scores.weight.dtype)
        output, state = self.body(one_hot, state)
        return self.scores(output), state
