"""What the command shows of a sweep: a table on a terminal, lines of JSON elsewhere."""

from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gridlstm.errors import one_line
from gridlstm.pipes import best_effort_stdout, print_json
from gridlstm.sweeps.results import count_states
from gridlstm.sweeps.status import CellState

__all__ = ["SweepScreen"]

BY_INTEREST = ("running", "failed", "stopped", "solved", "samples", "cut off", "waiting")
"""States in the order in which cells are shown where not all fit."""
COLOURS = {"running": "cyan", "failed": "red", "solved": "green", "cut off": "yellow"}


class SweepScreen:
    """Shows the cells of a sweep while they run.

    Args:
        measure: the name of what is measured.
        what: what is shown: the cells of a sweep, or runs.
    """

    def __init__(self, measure: str, what: str = "cell") -> None:
        self._measure = measure
        self._what = what
        self._output = best_effort_stdout()
        self._console = Console(file=self._output, highlight=False)
        self._live: Live | None = None
        self._shown: dict[str, dict[str, object]] = {}

    def __enter__(self) -> "SweepScreen":
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, states: Sequence[CellState]) -> None:
        """Shows what has changed."""
        if self._live is not None:
            self._live.update(self._table(states, self._console.height - 6), refresh=True)
        elif not self._console.is_terminal:
            self._print_lines(states)

    def show(self, states: Sequence[CellState]) -> None:
        """Shows all cells once."""
        if self._console.is_terminal:
            self._console.print(self._table(states, len(states)))
        else:
            self._print_lines(states)

    def _print_lines(self, states: Sequence[CellState]) -> None:
        for state in states:
            row: dict[str, object] = {
                self._what: state.cell.name,
                "state": state.state,
                "samples": state.samples,
                self._measure: state.measured,
                **({"line": state.detail} if state.state == "failed" else {}),
            }
            if self._shown.get(state.cell.name) != row:
                self._shown[state.cell.name] = row
                print_json(row, self._output)

    def _table(self, states: Sequence[CellState], rows: int) -> Table:
        """All cells in their order, or the most interesting ones if there are too many."""
        counts = ", ".join(f"{count} {name}" for name, count in count_states(states).items())
        many = f"{len(states)} {self._what}{'' if len(states) == 1 else 's'}"
        table = Table(caption=f"{many}: {counts}", caption_justify="left")
        for title in (self._what, "state", "samples", "minutes", self._measure):
            right = title not in (self._what, "state")
            table.add_column(title, justify="right" if right else "left", overflow="fold")
        shown = list(states)
        if len(shown) > max(rows, 1):
            shown = sorted(shown, key=lambda state: BY_INTEREST.index(state.state))[: max(rows, 1)]
        for state in shown:
            detail = f": {state.detail}" if state.state == "failed" else ""
            table.add_row(
                Text(one_line(state.cell.name)),
                Text(one_line(state.state + detail), style=COLOURS.get(state.state, "")),
                f"{state.samples:,}" if state.samples else "",
                f"{state.seconds / 60:.1f}" if state.seconds else "",
                "" if state.measured is None else f"{state.measured:.4f}",
            )
        return table
