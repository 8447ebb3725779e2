"""An algorithmic task as a problem for the trainer."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.experiments.algorithmic.task import Task
from gridlstm.experiments.record import EvalOptions, Options
from gridlstm.experiments.symbol_weights import symbol_weights
from gridlstm.training.problem import Measures, Problem

__all__ = ["TaskProblem"]

EVALUATED = 100
"""Held-out samples per evaluation, as in the paper."""
TESTED = 1000
"""The default number of samples of a test."""
FIRST_TESTED = 2**40
"""The number of the first sample of a test, beyond those of all evaluations."""


class TaskProblem(Problem):
    """An algorithmic task. It is solved when there is no error on 100 new samples.

    Args:
        options: the options of the experiment.
        task: the source of samples.
    """

    goal = "accuracy"

    def __init__(self, options: Options, task: Task) -> None:
        self.options = options
        self.matrix_rows = options.hidden
        self.task = task
        self.adam_parameters = symbol_weights(options.network)

    def show(self, count: int) -> Iterator[str]:
        """Samples in the paper's notation."""
        samples = self.task.draw(self.options.training.seed, 0, count)
        for inputs, targets, _ in zip(*samples, strict=True):
            yield from self._lines({"input": inputs, "target": targets})

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """The first sample of a test, and the output of the network where it is scored.

        Blanks after the input are left out.
        """
        batch = self._draw(network, FIRST_TESTED, 1, held_out=True)
        (inputs,), (targets,), (scored,) = batch
        (output,) = network(batch[0]).argmax(-1)
        ends = int(inputs.nonzero().max()) + 2 if len(targets) > 1 else len(inputs)
        rows = {"input": inputs[:ends], "output": output[scored]}
        if not torch.equal(output[scored], targets[scored]):
            rows["target"] = targets[scored]
        yield from self._lines({name: row.cpu().numpy() for name, row in rows.items()})

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """Cross-entropy over all targets, blanks included."""
        inputs, targets, _ = self._draw(network, first, count)
        return F.cross_entropy(network(inputs).flatten(0, 1), targets.flatten())

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Accuracy per symbol, and the share of samples without an error, on 100 samples."""
        return self._measure(network, number * EVALUATED, EVALUATED)

    def test(self, network: nn.Module, samples: int | None, options: EvalOptions) -> Measures:
        """The same for this many samples, a hundred at a time. Default: 1000."""
        samples = samples or TESTED
        sums: Measures = {}
        for first in range(0, samples, EVALUATED):
            count = min(EVALUATED, samples - first)
            for name, value in self._measure(network, FIRST_TESTED + first, count).items():
                sums[name] = sums.get(name, 0.0) + value * count
        return {"samples": samples, **{name: total / samples for name, total in sums.items()}}

    def _lines(self, rows: Mapping[str, NDArray[np.int64]]) -> Iterator[str]:
        """Symbols in the paper's notation, aligned over all rows."""
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
        samples = self.task.draw(self.options.training.seed, first, count, held_out=held_out)
        device = next(network.parameters()).device
        inputs, targets, scored = (torch.from_numpy(array).to(device) for array in samples)
        return inputs, targets, scored
