"""Tasks on sequences of symbols: a network that reads one and predicts another."""

import json
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.experiments.algorithmic.problem import TaskProblem
from gridlstm.experiments.algorithmic.task import Task
from gridlstm.experiments.record import Options
from gridlstm.export.interface import Input, Interface, check_unused, interface_of
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stacked import StackedLSTM

__all__ = ["SymbolProblem", "SymbolReader"]


class SymbolReader(nn.Module):
    """Symbols ``[batch, time]`` to scores of symbols ``[batch, time, symbols]``.

    Args:
        task: its symbols, of which the network reads the numbers.
        body: the network over sequences.
    """

    def __init__(self, task: Task, body: SequenceGridLSTM | StackedLSTM) -> None:
        super().__init__()
        self.task = task
        self.body = body
        self.scores = nn.Linear(body.output_size, task.symbols)

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores at every time."""
        one_hot = F.one_hot(inputs, self.task.symbols).to(self.scores.weight.dtype)
        scores: Tensor = self.scores(self.body(one_hot)[0])
        return scores


@interface_of.register
def _(
    network: SymbolReader, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """Numbers of symbols, whose notation is part of the metadata, to scores."""
    check_unused(network, step=step, state=state, lengths=lengths)
    task = network.task
    symbols = Input("symbols", ("batch", "time"), most=task.symbols - 1)
    notation = json.dumps([task.show(symbol) for symbol in range(task.symbols)])
    return Interface([symbols], ["scores"], metadata={"symbols": notation})


class SymbolProblem(TaskProblem):
    """A task on sequences of symbols.

    Args:
        options: those of the experiment.
        forget_bias: the initial bias of the forget gates.
        task: the source of samples.
    """

    def __init__(self, options: Options, forget_bias: float, task: Task) -> None:
        super().__init__(options, task)
        self.forget_bias = forget_bias

    def network(self) -> nn.Module:
        """A 2-LSTM or a Stacked LSTM, tied along depth or not."""
        tied, _, kind = self.options.network.partition("-")
        sizes = (self.task.symbols, self.options.hidden, self.options.layers)
        shared: dict[str, Any] = {
            "tied": tied == "tied",
            "forget_bias": self.forget_bias,
            "batch_first": True,
        }
        if kind == "grid":
            return SymbolReader(self.task, SequenceGridLSTM(*sizes, readout="both", **shared))
        return SymbolReader(self.task, StackedLSTM(*sizes, **shared))
