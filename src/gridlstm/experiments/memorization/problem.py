"""Memorization as a problem for the trainer (section 4.2)."""

from pathlib import Path

from torch import nn

from gridlstm.experiments.algorithmic.problem import TaskProblem
from gridlstm.experiments.algorithmic.symbol_reader import make_reader
from gridlstm.experiments.memorization.data import MemorizationTask
from gridlstm.experiments.memorization.options import MemorizationOptions

__all__ = ["MemorizationProblem"]


class MemorizationProblem(TaskProblem):
    """Sequences to be repeated. No data set is needed."""

    options: MemorizationOptions

    def __init__(self, options: MemorizationOptions, data: Path | None = None) -> None:
        super().__init__(options, MemorizationTask(options.length, options.vocabulary))

    def network(self) -> nn.Module:
        """A 2-LSTM or a Stacked LSTM."""
        return make_reader(
            self.options.network,
            self.task.symbols,
            self.options.hidden,
            self.options.layers,
            forget_bias=self.options.forget_bias,
        )
