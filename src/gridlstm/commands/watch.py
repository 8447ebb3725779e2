"""The command ``gridlstm watch``. No PyTorch here."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from gridlstm.commands.report_options import WatchOptions
from gridlstm.errors import one_line
from gridlstm.files import write_text
from gridlstm.pages.report.page import Section, make_page
from gridlstm.pages.report.parts import Part, ReportError, find_parts
from gridlstm.pages.report.runs import read_runs
from gridlstm.pages.report.states import follow
from gridlstm.pages.report.write import open_page
from gridlstm.sweeps.screen import SweepScreen
from gridlstm.sweeps.status import CellState
from gridlstm.training.rundir import RunError

__all__ = ["run"]


def run(options: WatchOptions) -> None:
    """Shows how far runs are and writes their page, until all have ended or Ctrl-C is pressed.

    A run that has not begun, was killed or stopped is waited for.

    Raises:
        ExpectedError: if the directory holds anything but a run or a sweep.
    """
    try:
        part = _wait(options)
        _follow(part, options)
    except KeyboardInterrupt:  # The usual end.
        sys.stderr.write("\n")


def _wait(options: WatchOptions) -> Part:
    """The part of a report about the run or sweep, once it has begun."""
    told = False
    while _is_empty(options.run):
        if not told:
            sys.stderr.write(f"{one_line(options.run)}: waiting for it to begin\n")
            told = True
        time.sleep(options.every)
    parts = find_parts([options.run])
    if len(parts) > 1:
        raise ReportError(f"{options.run}: expected one run or sweep, got {len(parts)}")
    return parts[0]


def _is_empty(path: Path) -> bool:
    """Whether nothing has begun there. A run that starts takes its lock, a hidden file, first."""
    return not path.exists() or (
        path.is_dir() and all(file.name.startswith(".") for file in path.iterdir())
    )


def _follow(part: Part, options: WatchOptions) -> None:
    """Shows the runs and writes the page whenever something has changed."""
    look, written = follow(part), None
    what = "run" if part.sweep is None else "cell"
    with SweepScreen(part.experiment.measure.name, what) as screen:
        try:
            while True:
                states, section = _read(part, look)
                if section is not None and section != written:
                    _write(section, options, options.every)
                    if written is None:
                        _announce(options)
                    written = section
                screen.update(states)
                if states and all(state.over for state in states):
                    break
                time.sleep(options.every)
        finally:
            if written is not None:  # Nobody writes it anew from here on.
                _write(written, options)
    screen.show(states)


def _write(section: Section, options: WatchOptions, refresh: float | None = None) -> None:
    """Writes the page, unless the run is gone: training refuses a directory with other files."""
    if not _is_empty(options.run):
        write_text(options.page, make_page([section], refresh))


def _read(part: Part, look: Callable[[], list[CellState]]) -> tuple[list[CellState], Section | None]:
    """How far the runs are; nothing while their files cannot be read, as while a run is replaced."""
    try:
        states = look()
        return states, Section(part, read_runs(part, states))
    except RunError as error:
        sys.stderr.write(f"{one_line(error)}\n")
        return [], None


def _announce(options: WatchOptions) -> None:
    sys.stderr.write(f"{one_line(options.page)}: open it in a browser; Ctrl-C stops watching\n")
    if options.open:
        open_page(options.page)
