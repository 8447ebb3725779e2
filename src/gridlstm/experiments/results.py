"""Tables of results, from runs that ``gridlstm collect`` wrote. No PyTorch here."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CollectedRun", "Table", "read_runs", "span"]

CollectedRun = dict[str, Any]
"""A run as ``gridlstm collect`` writes it: options, sessions, summary, evaluation, curve."""


class Table(NamedTuple):
    """A table of text.

    Attributes:
        titles: the titles of the columns.
        rows: rows of one cell per column.
        numbers: whether to align all columns but the first to the right.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = True

    def markdown(self) -> str:
        """The table in Markdown.

        >>> print(Table(["network", "error"], [["3-LSTM", "0.44 %"]]).markdown())
        | network | error |
        | --- | ---: |
        | 3-LSTM | 0.44 % |
        """
        rule = ["---", *["---:" if self.numbers else "---"] * (len(self.titles) - 1)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.titles, rule, *self.rows))


def read_runs(paths: Iterable[Path]) -> list[CollectedRun]:
    """The runs in files that ``gridlstm collect`` wrote."""
    return [run for path in paths for run in json.loads(path.read_text())["runs"]]


def span(values: Sequence[float], form: str, unit: str = "") -> str:
    """The range from the smallest to the largest value, as text.

    >>> span([23.9, 38.2], ".0f", " K")
    '24 to 38 K'
    """
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
