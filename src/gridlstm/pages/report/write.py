"""Reads runs and writes their report. No PyTorch here."""

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from gridlstm.files import write_text
from gridlstm.pages.report.page import Section, make_page
from gridlstm.pages.report.parts import find_parts
from gridlstm.pages.report.runs import read_runs
from gridlstm.pages.report.states import follow

__all__ = ["open_page", "write_report"]


def write_report(paths: Sequence[Path], out: Path) -> None:
    """Writes the report on runs, sweeps and reproductions.

    Raises:
        ReportError: if a path is none of them.
        RunError: if a run cannot be read.
        SweepError: if the plan of a sweep cannot be read.
        OSError: if the file cannot be written.
    """
    parts = find_parts(paths)
    write_text(out, make_page([Section(part, read_runs(part, follow(part)())) for part in parts]))


def open_page(path: Path) -> None:
    """Opens a page in the browser, or says that there is none."""
    if not webbrowser.open(path.resolve().as_uri()):
        sys.stderr.write("no browser found; open the file in one\n")
