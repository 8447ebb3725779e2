"""Joins the files of a page, and its data, to one HTML file that works from a disk and offline."""

import json
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

__all__ = ["embed_data", "fill", "inline_files"]

_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_SCRIPT = re.compile(r'<script src="([^"]+)"></script>')
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def inline_files(folder: Path, page: str) -> str:
    """A page with its style sheets and scripts in place of the links to them.

    Links are ``<link rel="stylesheet" href="NAME">`` and ``<script src="NAME"></script>``, so that the
    page can also be opened as it is while it is developed.

    Args:
        folder: the folder of the page and of its files.
        page: the name of the HTML file.

    Raises:
        ValueError: if a script or style sheet contains the tag that would end it.
    """

    def contents(tag: str) -> Callable[[re.Match[str]], str]:
        def replace(link: re.Match[str]) -> str:
            text = (folder / link[1]).read_text(encoding="utf-8")
            if f"</{tag}" in text.lower():
                raise ValueError(f"{link[1]}: expected no </{tag}, which would end it")
            return f"<{tag}>\n{text}</{tag}>"

        return replace

    html = (folder / page).read_text(encoding="utf-8")
    return _SCRIPT.sub(contents("script"), _STYLE.sub(contents("style"), html))


def embed_data(html: str, name: str, data: object) -> str:
    r"""A page with data, before its first script.

    Scripts read it by ``JSON.parse(document.getElementById(name).textContent)``.

    Args:
        html: the page.
        name: the ``id`` of the data.
        data: anything that JSON can represent.

    Raises:
        ValueError: if the page has no script.

    >>> print(embed_data("<p>a</p><script>1</script>", "numbers", [1, "</script>"]))
    <p>a</p><script type="application/json" id="numbers">[1,"\u003c/script>"]</script>
    <script>1</script>
    """
    before, script, after = html.partition("<script")
    if not script:
        raise ValueError("html: expected a script that reads the data, got none")
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    element = f'<script type="application/json" id="{escape(name)}">{text}</script>\n'
    return f"{before}{element}{script}{after}"


def fill(html: str, values: Mapping[str, str]) -> str:
    """A page with text in the places ``{{name}}``, escaped.

    Raises:
        KeyError: if there is no value for a place.

    >>> fill("<p>{{title}}</p>", {"title": "a < b"})
    '<p>a &lt; b</p>'
    """
    return _PLACE.sub(lambda place: escape(values[place[1]]), html)
