"""Pages as one HTML file, and the command that writes the demo; tests/browser opens it in Chromium."""

import json
import re
import webbrowser
from pathlib import Path

import pytest

from gridlstm.pages.demo.demo_page import make_demo
from gridlstm.pages.html import embed_data, fill, inline_files


def test_files_are_put_in_place_of_their_links(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("const a = '\\1 {{b}}';\n")
    (tmp_path / "a.css").write_text("p { color: red }\n")
    (tmp_path / "page.html").write_text(
        '<link rel="stylesheet" href="a.css"><p>é</p><script src="a.js"></script>'
    )
    assert inline_files(tmp_path, "page.html") == (
        "<style>\np { color: red }\n</style><p>é</p><script>\nconst a = '\\1 {{b}}';\n</script>"
    )


def test_a_script_that_would_end_early_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("const a = '</Script>';")
    (tmp_path / "page.html").write_text('<script src="a.js"></script>')
    with pytest.raises(ValueError, match=r"^a\.js: expected no </script, which would end it$"):
        inline_files(tmp_path, "page.html")


def test_data_cannot_end_its_element() -> None:
    data = {"text": "</script><script>alert(1)</script>é", "numbers": [1, 2.5, None]}
    page = embed_data("<p></p><script>1</script>", "my-data", data)
    (text,) = re.findall(r'<script type="application/json" id="my-data">(.*?)</script>', page)
    assert json.loads(text) == data
    with pytest.raises(ValueError, match="expected a script"):
        embed_data("<p></p>", "my-data", data)


def test_text_is_escaped() -> None:
    assert fill("{{a}} {{b}}", {"a": "<b>", "b": "&"}) == "&lt;b&gt; &amp;"
    with pytest.raises(KeyError):
        fill("{{c}}", {"a": ""})


def test_the_demo_has_the_networks_of_its_rooms() -> None:
    page = make_demo(("solve",))
    assert "{{" not in page.partition("<script")[0]
    assert not re.findall(r'(?:src|href)="(?!data:|https://arxiv)[^"]*"', page)
    (text,) = re.findall(r'id="demo-data">(.*?)</script>', page)
    data = json.loads(text)
    assert [*data["networks"]] == ["memorization"]
    assert data["networks"]["memorization"]["options"]["length"] == 8
    assert data["digits"] == []


def test_the_command_writes_a_page_and_opens_it(gridlstm, tmp_path, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or len(opened) < 2)
    page = tmp_path / "pages" / "demo.html"
    arguments = ("demo", "--out", page, "--rooms", "solve")
    written = gridlstm(*arguments, "--no-open")
    assert written == (0, f"{page} ({page.stat().st_size / 1e6:.1f} MB)\n", "")
    assert not opened
    assert gridlstm(*arguments)[0] == 0
    assert opened == [page.as_uri()]
    code, _, errors = gridlstm(*arguments)
    assert (code, errors) == (0, "gridlstm demo: no browser found; open the file in one\n")
    assert page.read_text() == make_demo(("solve",))


def test_a_demo_without_rooms_is_refused(gridlstm) -> None:
    code, _, errors = gridlstm("demo", "--no-open", "--rooms")
    assert code == 2
    assert "rooms" in errors
