"""Parity as a problem for the trainer (appendix)."""

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from gridlstm.experiments.algorithmic.problem import TaskProblem
from gridlstm.experiments.parity.data import ParityTask
from gridlstm.experiments.parity.options import ParityOptions
from gridlstm.export.interface import Input, Interface, check_unused, interface_of
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.models.feedforward import FeedForward

__all__ = ["ParityNetwork", "ParityProblem"]


class ParityNetwork(nn.Module):
    """Bits ``[batch, k]`` to scores of even and odd ``[batch, 1, 2]``.

    Args:
        body: the network that reads the bits.
        signs: present them as -1 and 1 instead of 0 and 1.
    """

    def __init__(self, body: DeepGridLSTM | FeedForward, *, signs: bool) -> None:
        super().__init__()
        self.body = body
        self.signs = signs
        self.scores = nn.Linear(body.output_size, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores of even and odd parity."""
        scores: Tensor = self.scores(self.body(self.encode(inputs))).unsqueeze(1)
        return scores

    def encode(self, bits: Tensor) -> Tensor:
        """Bits as the body reads them: 0 and 1, or -1 and 1."""
        return (2 * bits - 1 if self.signs else bits).to(self.scores.weight.dtype)


@interface_of.register
def _(
    network: ParityNetwork, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """Bits to the scores of even and odd."""
    check_unused(network, step=step, state=state, lengths=lengths)
    return Interface([Input("bits", ("batch", network.body.input_size), most=1)], ["scores"])


class ParityProblem(TaskProblem):
    """Strings of bits. No data set is needed."""

    options: ParityOptions

    def __init__(self, options: ParityOptions, data: Path | None = None) -> None:
        super().__init__(options, ParityTask(options.bits))

    def network(self) -> nn.Module:
        """A 1-LSTM or a feed-forward network, its projection initialised as the options say."""
        options = self.options
        sizes = (options.bits, options.hidden, options.layers)
        tied, _, kind = options.network.partition("-")
        body: DeepGridLSTM | FeedForward
        if kind == "grid":
            body = DeepGridLSTM(
                *sizes, tied=tied == "tied", forget_bias=options.forget_bias, readout="both"
            )
            projection = body.projection.linear
        else:
            body = FeedForward(*sizes, activation=kind, tied=tied == "tied")
            projection = body.projection
        if options.start == "signs":
            start_signs(projection, options.hidden, signs=options.signs)
        return ParityNetwork(body, signs=options.signs)


@torch.no_grad()
def start_signs(linear: nn.Linear, units: int, *, signs: bool) -> None:
    """Initialises the last ``units`` of a projection of bits as majorities of literals.

    A threshold unit whose weights have one size and random signs is correlated with the parity of all
    k bits by about sqrt(2 / (π k)), whatever the signs; weights of random sizes lose this
    exponentially in k. Weights are ±s, with s = log2(k), large enough for a hard threshold; the
    threshold is uniform within s·sqrt(k)/2 of the mean. In a 1-LSTM these are the units of the memory,
    which carries them through the layers.
    """
    bits, like = linear.in_features, linear.weight[-units:]
    size = math.log2(bits)
    weight = size * (2 * torch.randint_like(like, 2) - 1)
    bias = size * bits**0.5 / 2 * (2 * torch.rand_like(linear.bias[-units:]) - 1)
    if signs:  # -1 and 1 for 0 and 1: half the weights, and the mean is 0.
        weight = weight / 2
    else:
        bias = bias - weight.sum(1) / 2
    linear.weight[-units:] = weight
    linear.bias[-units:] = bias
