"""Tasks on sequences of symbols: a network that reads one and predicts another."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.experiments.algorithmic.problem import TaskProblem
from gridlstm.experiments.algorithmic.task import Task
from gridlstm.experiments.record import Options
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stacked import StackedLSTM

__all__ = ["SymbolProblem", "SymbolReader"]


class SymbolReader(nn.Module):
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
            return SymbolReader(sizes[0], SequenceGridLSTM(*sizes, readout="both", **shared))
        return SymbolReader(sizes[0], StackedLSTM(*sizes, **shared))
