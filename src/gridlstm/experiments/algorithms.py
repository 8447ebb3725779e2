"""The three algorithmic experiments as problems for the trainer (4.1, 4.2, and parity)."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.data import tasks
from gridlstm.experiments import options
from gridlstm.experiments.outer import outer_weights
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.models.feedforward import FeedForward
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stacked import StackedLSTM
from gridlstm.training.problem import Measures

__all__ = ["Judge", "Reader", "TaskProblem", "make_task"]

EVALUATED = 100
"""Unseen samples an evaluation looks at: the paper's rule."""
ALIKE = 0.9
"""How alike the weights of all bits are in a network that starts by counting: 0 not, 1 fully."""
TESTED = 2**40
"""The number of the first sample of a test, beyond those of all evaluations."""


class Reader(nn.Module):
    """Symbols ``[batch, time]`` to scores of symbols ``[batch, time, symbols]``."""

    def __init__(self, symbols: int, body: SequenceGridLSTM | StackedLSTM) -> None:
        super().__init__()
        self.symbols = symbols
        self.body = body
        self.scores = nn.Linear(body.output_size, symbols)

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores at every time."""
        one_hot = F.one_hot(inputs, self.symbols).to(self.scores.weight.dtype)
        scores: Tensor = self.scores(self.body(one_hot)[0])
        return scores


class Judge(nn.Module):
    """Bits ``[batch, k]`` to scores of even and odd ``[batch, 1, 2]``."""

    def __init__(self, body: DeepGridLSTM | FeedForward, *, signs: bool) -> None:
        super().__init__()
        self.body = body
        self.signs = signs
        self.scores = nn.Linear(body.output_size, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores of the string as a whole."""
        scores: Tensor = self.scores(self.body(self.encode(inputs))).unsqueeze(1)
        return scores

    def encode(self, bits: Tensor) -> Tensor:
        """Bits as the body reads them: 0 and 1, or -1 and 1."""
        return (2 * bits - 1 if self.signs else bits).to(self.scores.weight.dtype)


class TaskProblem:
    """An algorithmic task, to be solved on 100 fresh samples."""

    goal = "accuracy"

    def __init__(self, experiment: options.Algorithm) -> None:
        self.experiment = experiment
        self.adam_parameters = outer_weights(experiment.network)
        self.task = make_task(experiment)

    def data(self) -> dict[str, str]:
        """Nothing: samples follow from the options."""
        return {}

    def show(self, count: int) -> Iterator[str]:
        """Samples in the paper's notation."""
        samples = self.task.draw(self.experiment.training.seed, 0, count)
        for inputs, targets, _ in zip(*samples, strict=True):
            yield from self._lines({"input": inputs, "target": targets})

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """The first sample of a test and what the network gives where it counts.

        Blanks that follow the input are left out.
        """
        (inputs,), (targets,), (scored,) = found = self._draw(network, TESTED, 1, held_out=True)
        (given,) = network(found[0]).argmax(-1)
        ends = int(inputs.nonzero().max()) + 2 if len(targets) > 1 else len(inputs)
        rows = {"input": inputs[:ends], "output": given[scored]}
        if not torch.equal(given[scored], targets[scored]):
            rows["target"] = targets[scored]
        yield from self._lines({name: row.cpu().numpy() for name, row in rows.items()})

    def network(self) -> nn.Module:
        """The network that the experiment names."""
        given = self.experiment
        tied, _, kind = given.network.partition("-")
        shared: dict[str, Any] = {"tied": tied == "tied"}
        if kind in ("grid", "stacked"):
            shared["forget_bias"] = given.forget_bias
        if kind == "grid":
            shared["readout"] = "both"
        if isinstance(given, options.Parity):
            sizes = (given.bits, given.hidden, given.layers)
            body = (
                DeepGridLSTM(*sizes, **shared)
                if kind == "grid"
                else FeedForward(*sizes, activation=kind, **shared)
            )
            if given.start == "counting":
                linear = body.projection if isinstance(body, FeedForward) else body.projection.linear
                start_counting(linear, signs=given.signs)
            elif given.start == "signs":
                linear = body.projection if isinstance(body, FeedForward) else body.projection.linear
                start_signs(linear, given.hidden, signs=given.signs)
            return Judge(body, signs=given.signs)
        sizes = (self.task.symbols, given.hidden, given.layers)
        family = SequenceGridLSTM if kind == "grid" else StackedLSTM
        return Reader(self.task.symbols, family(*sizes, batch_first=True, **shared))

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """Cross-entropy over all targets, blanks included."""
        inputs, targets, _ = self._draw(network, first, count)
        return F.cross_entropy(network(inputs).flatten(0, 1), targets.flatten())

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Accuracy by symbol, and the share of samples without an error, of 100 samples."""
        return self._measure(network, number * EVALUATED, EVALUATED)

    def test(self, network: nn.Module, samples: int | None, streams: int) -> Measures:
        """The same of as many samples as wanted, a hundred at a time; of 1000 unless given."""
        if streams != 1:
            raise ValueError(f"streams: expected 1 for {self.experiment.name}, got {streams}")
        samples = samples or 1000
        sums: Measures = {}
        for first in range(0, samples, EVALUATED):
            count = min(EVALUATED, samples - first)
            for name, value in self._measure(network, TESTED + first, count).items():
                sums[name] = sums.get(name, 0.0) + value * count
        return {"samples": samples, **{name: total / samples for name, total in sums.items()}}

    def solved(self, measures: Mapping[str, float]) -> bool:
        """Not one wrong symbol."""
        return measures["accuracy"] == 1.0

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Never: the last network counts, which has solved the task or has not."""
        return False

    def carried(self) -> dict[str, Tensor]:
        """Nothing: samples are independent."""
        return {}

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        """Nothing to take back."""

    def _lines(self, rows: Mapping[str, NDArray[np.int64]]) -> Iterator[str]:
        """Symbols in the paper's notation, those of all rows equally wide."""
        shown = {name: [self.task.show(int(symbol)) for symbol in row] for name, row in rows.items()}
        width = max(len(symbol) for row in shown.values() for symbol in row)
        for name, row in shown.items():
            yield f"{name:6}  {' '.join(symbol.rjust(width) for symbol in row)}"

    def _measure(self, network: nn.Module, first: int, count: int) -> Measures:
        inputs, targets, scored = self._draw(network, first, count, held_out=True)
        right = (network(inputs).argmax(-1) == targets) | ~scored
        return {
            "accuracy": right[scored].double().mean().item(),
            "whole": right.all(-1).double().mean().item(),
        }

    def _draw(
        self, network: nn.Module, first: int, count: int, *, held_out: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        found = self.task.draw(self.experiment.training.seed, first, count, held_out=held_out)
        device = next(network.parameters()).device
        inputs, targets, scored = (torch.from_numpy(array).to(device) for array in found)
        return inputs, targets, scored


@torch.no_grad()
def start_counting(linear: nn.Linear, *, signs: bool) -> None:
    """Makes a projection of bits see their number first.

    Random weights see a random direction in which the parity has no part at all until all bits are
    weighted alike, and nothing pulls them there. Here each unit has nearly one weight for all bits, and
    its threshold lies anywhere within two deviations of the number of ones.
    """
    bits = linear.in_features
    weight = 3 * (ALIKE * linear.weight[:, :1] + (1 - ALIKE) * linear.weight)
    spread = 2 * weight.abs().mean(1) * bits**0.5
    bias = spread * (2 * torch.rand_like(linear.bias) - 1)
    if not signs:  # 0 and 1 for -1 and 1.
        weight, bias = 2 * weight, bias - weight.sum(1)
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)


@torch.no_grad()
def start_signs(linear: nn.Linear, units: int, *, signs: bool) -> None:
    """Makes the last ``units`` of a projection of bits majorities of literals.

    A threshold unit whose weights have one size and random signs is correlated with the parity of all
    k bits by about sqrt(2 / (π k)), whatever the signs; weights of random sizes lose this
    exponentially in k. Weights are ±s, with s = log2(k), large enough for a hard threshold; the
    threshold is uniform within s·sqrt(k)/2 of the mean. In a 1-LSTM these are the units of the memory,
    which carries the votes past the layers.
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


def make_task(experiment: options.Algorithm) -> tasks.Task:
    """Where the samples of an experiment come from."""
    if isinstance(experiment, options.Memorization):
        return tasks.Memorization(experiment.length, experiment.vocabulary)
    if isinstance(experiment, options.Addition):
        if experiment.pace is not None:
            return tasks.GrowingAddition(experiment.digits, experiment.pace)
        return tasks.Addition(experiment.digits)
    return tasks.Parity(experiment.bits)
