"""The options of ``gridlstm demo``. No PyTorch here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gridlstm.fields import check_types

__all__ = ["DemoOptions", "Room"]

Room = Literal["write", "draw", "solve", "translate"]


@dataclass(frozen=True)
class DemoOptions:
    """Write a page that runs networks of the package in a browser, and open it.

    It is one HTML file that needs neither a server nor a network.
    """

    out: Path = Path("demo.html")
    """The file to write."""
    rooms: tuple[Room, ...] = ("write", "draw", "solve")
    """What the page shows. translate adds 9 MB to the file."""
    open: bool = True
    """Open the page in the default browser."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.rooms:
            raise ValueError("rooms: expected at least one, got none")
