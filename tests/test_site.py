"""The documentation site: what its pages name exists, and the built site needs no network."""

import re
from pathlib import Path

import pytest

from gridlstm.commands.table import COMMANDS
from gridlstm.experiments.registry import EXPERIMENTS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BUILT = DOCS / "_build" / "html"
built = pytest.mark.skipif(not (BUILT / "index.html").exists(), reason="needs make docs")


def test_modules_and_tests_beside_the_paper_exist() -> None:
    modules = re.findall(r"`([\w/]+(?:\.py|/))`", (DOCS / "paper.md").read_text())
    assert len(modules) > 25
    for name in modules:
        folders = (ROOT, ROOT / "tests", ROOT / "src" / "gridlstm")
        assert any((folder / name).exists() for folder in folders), name


def test_every_experiment_and_figure_is_beside_the_paper() -> None:
    text = (DOCS / "paper.md").read_text()
    for name, experiment in EXPERIMENTS.items():
        assert f"`gridlstm train {name}`" in text
        for figure in experiment.paper_figures:
            assert f"`gridlstm reproduce {figure}`" in text


def test_commands_in_the_pages_exist() -> None:
    for page in DOCS.glob("*.md"):
        for command in re.findall(r"`gridlstm (\w+)", page.read_text()):
            assert command in COMMANDS, f"{page.name}: gridlstm {command}"


def test_links_and_pictures_lead_to_files() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130


@built
def test_the_site_loads_nothing_from_elsewhere() -> None:
    for page in BUILT.glob("*.html"):
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)', text)
        loaded += re.findall(r'<link[^>]*rel="stylesheet"[^>]* href="([^"]+)', text)
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page.name


@built
def test_the_site_has_the_public_names_and_their_equations() -> None:
    api = (BUILT / "api.html").read_text()
    for name in ("GridLSTM", "GridLSTM.draw", "Dim", "SequenceGridLSTM", "Reencoder", "Cell.forward"):
        assert f'id="gridlstm.{name}"' in api, name
    assert r"\mathrm{LSTM}(H, m_i, W_i)" in api
    assert "mathjax/tex-svg.js" in api
    assert (BUILT / "_static" / "mathjax" / "tex-svg.js").stat().st_size > 1_000_000
