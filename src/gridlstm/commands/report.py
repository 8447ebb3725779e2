"""The command ``gridlstm report``. No PyTorch here."""

import sys

from gridlstm.commands.report_options import ReportOptions
from gridlstm.errors import one_line
from gridlstm.pages.report.write import open_page, write_report

__all__ = ["run"]


def run(options: ReportOptions) -> None:
    """Writes the page, and prints where.

    Raises:
        ExpectedError: if there is nothing to report on, or a file of a run is damaged.
    """
    write_report(options.runs, options.page)
    sys.stdout.write(f"{one_line(options.page)}\n")
    if options.open:
        open_page(options.page)
