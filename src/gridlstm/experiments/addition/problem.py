"""Addition as a problem for the trainer (section 4.1)."""

from pathlib import Path

from torch import nn

from gridlstm.experiments.addition.data import AdditionTask, GrowingAdditionTask
from gridlstm.experiments.addition.options import AdditionOptions
from gridlstm.experiments.algorithmic.problem import TaskProblem
from gridlstm.experiments.algorithmic.symbol_reader import make_reader

__all__ = ["AdditionProblem"]


class AdditionProblem(TaskProblem):
    """Numbers to be added. No data set is needed."""

    options: AdditionOptions

    def __init__(self, options: AdditionOptions, data: Path | None = None) -> None:
        task = AdditionTask(options.digits)
        if options.pace is not None:
            task = GrowingAdditionTask(options.digits, options.pace)
        super().__init__(options, task)

    def network(self) -> nn.Module:
        """A 2-LSTM or a Stacked LSTM."""
        return make_reader(
            self.options.network,
            self.task.symbols,
            self.options.hidden,
            self.options.layers,
            forget_bias=self.options.forget_bias,
        )
