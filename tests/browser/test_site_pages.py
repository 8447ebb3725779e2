"""The documentation site that ``make docs`` built, in Chromium: it loads nothing and fits a phone."""

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
SOURCES = sorted(SITE.parents[1].glob("*.md"))
SHOWN = ("index", "start", "own_grid", "paper", "gallery")
"""The pages of which ``make screenshots`` keeps pictures."""

pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs")


@pytest.mark.parametrize("name", [source.stem for source in SOURCES])
def test_a_page_works_offline_and_fits(browser, name: str) -> None:
    """Chromium's fixture fails if the page writes an error or loads anything from a network."""
    for width in (1280, 390):
        browser.resize(width, touch=width < 500)
        browser.open(SITE / f"{name}.html")
        assert browser.overflow() <= 0, width
        assert browser.run("return document.querySelector('h1').textContent.length > 0")


@pytest.mark.parametrize("name", SHOWN)
def test_screenshots_of_the_site(browser, name: str) -> None:
    for device, width, dark in (("desktop", 1280, False), ("phone", 390, True)):
        browser.resize(width, 844, touch=width < 500)
        browser.dark(dark)
        browser.open(SITE / f"{name}.html")
        browser.run("await new Promise(done => setTimeout(done, 1000))")  # Equations are typeset.
        assert browser.keep(f"site-{name}-{device}") > 5000
