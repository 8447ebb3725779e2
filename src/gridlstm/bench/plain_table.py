"""The look of a wide table on a terminal."""

from rich import box
from rich.table import Table

__all__ = ["make_plain_table"]


def make_plain_table(title: str, caption: str) -> Table:
    """A table without lines between its columns, so that many of them fit."""
    return Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
