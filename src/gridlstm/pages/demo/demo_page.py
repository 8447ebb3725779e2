"""The command ``gridlstm demo``."""

import base64
import sys
import webbrowser
from importlib.resources import files
from pathlib import Path
from typing import Any

import gridlstm
from gridlstm.experiments.images.data import ImageSet
from gridlstm.experiments.trained import open_run
from gridlstm.files import write_text
from gridlstm.pages.demo.options import DemoOptions, Room
from gridlstm.pages.html import embed_data, fill, inline_files

__all__ = ["make_demo", "write_demo"]

NETWORKS: dict[Room, str] = {
    "write": "characters",
    "draw": "images",
    "solve": "memorization",
    "translate": "translation",
}
"""The network of the package that each room shows."""


def write_demo(options: DemoOptions) -> None:
    """Writes the page, and opens it unless told not to.

    Raises:
        OSError: if it cannot be written.
    """
    write_text(options.out, make_demo(options.rooms))
    size = options.out.stat().st_size / 1e6
    sys.stdout.write(f"{options.out} ({size:.1f} MB)\n")
    if options.open and not webbrowser.open(options.out.resolve().as_uri()):
        sys.stderr.write("gridlstm demo: no browser found; open the file in one\n")


def make_demo(rooms: tuple[Room, ...]) -> str:
    """The page with these rooms, as HTML."""
    folder = Path(str(files("gridlstm"))) / "pages" / "demo"
    page = fill(inline_files(folder, "demo.html"), {"version": gridlstm.__version__})
    networks = {NETWORKS[room]: _network(NETWORKS[room]) for room in rooms}
    data = {"rooms": rooms, "networks": networks, "digits": _digits() if "draw" in rooms else []}
    return embed_data(page, "demo-data", data)


def _network(name: str) -> dict[str, Any]:
    """The weights of a network, as they are stored, and the options of its run."""
    run = open_run(None, name)
    weights = base64.b64encode(run.model.read_bytes()).decode()
    return {"options": run.config()["options"], "weights": weights}


def _digits() -> list[dict[str, Any]]:
    """The first test image of each digit."""
    images, labels = ImageSet.sample().test
    first = {int(label): image for image, label in zip(images[::-1], labels[::-1], strict=True)}
    return [
        {"digit": digit, "pixels": base64.b64encode(first[digit].tobytes()).decode()}
        for digit in sorted(first)
    ]
