"""Addition as a problem for the trainer (section 4.1)."""

from pathlib import Path

from gridlstm.experiments.addition.data import AdditionTask, GrowingAdditionTask, SparseAdditionTask
from gridlstm.experiments.addition.options import AdditionOptions
from gridlstm.experiments.algorithmic.symbols import SymbolProblem

__all__ = ["AdditionProblem"]


class AdditionProblem(SymbolProblem):
    """Numbers to be added. No data set is needed."""

    def __init__(self, options: AdditionOptions, data: Path | None = None) -> None:
        task = AdditionTask(options.digits)
        if options.pace is not None:
            task = GrowingAdditionTask(options.digits, options.pace)
        if options.fill is not None:
            task = SparseAdditionTask(options.digits, fill=options.fill)
        if options.zeros is not None:
            task = SparseAdditionTask(options.digits, options.zeros)
        super().__init__(options, options.forget_bias, task)
