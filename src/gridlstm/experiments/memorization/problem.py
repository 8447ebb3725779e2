"""Memorization as a problem for the trainer (section 4.2)."""

from pathlib import Path

from gridlstm.experiments.algorithmic.symbols import SymbolProblem
from gridlstm.experiments.memorization.data import MemorizationTask
from gridlstm.experiments.memorization.options import MemorizationOptions

__all__ = ["MemorizationProblem"]


class MemorizationProblem(SymbolProblem):
    """Sequences to be repeated. No data set is needed."""

    def __init__(self, options: MemorizationOptions, data: Path | None = None) -> None:
        task = MemorizationTask(options.length, options.vocabulary)
        super().__init__(options, options.forget_bias, task)
