"""The look of a wide table on a terminal."""

from collections.abc import Collection, Sequence

from rich import box
from rich.table import Table

__all__ = ["fill", "make_plain_table"]


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


def fill(table: Table, rows: Sequence[dict[str, str]], left: Collection[str] = ()) -> Table:
    """Adds rows, cells by the titles of their columns. A column without any content is left out.

    Args:
        table: is filled, and returned.
        rows: all have the same titles.
        left: the titles of columns of words, which are aligned to the left.
    """
    titles = [title for title in rows[0] if any(row[title] for row in rows)] if rows else []
    for title in titles:
        table.add_column(title, justify="left" if title in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[title] for title in titles))
    return table
