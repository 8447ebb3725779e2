"""The browser of the other tests: it reports errors and requests, and has the size asked for."""

import pytest


@pytest.fixture
def page(tmp_path):
    def write(html: str):
        path = tmp_path / "page.html"
        path.write_text(f"<!doctype html><meta charset=utf-8><title>page</title>{html}")
        return path

    return write


def test_runs_scripts_and_passes_their_errors_on(browser, page):
    browser.open(page("<p id=a>four</p>"))
    assert browser.run("return document.getElementById('a').textContent + arguments[0]", 5) == "four5"
    with pytest.raises(AssertionError, match="wrong here"):
        browser.run("throw new Error('wrong here')")


def test_errors_and_requests_are_noticed(browser, page):
    browser.open(page("<script>console.error('broken')</script><img src='http://127.0.0.1:9/a.png'>"))
    assert any("broken" in error for error in browser.errors())
    assert any(address.endswith("/a.png") for address in browser.requests())
    browser.start()


@pytest.mark.parametrize("width", [390, 1280])
def test_has_the_width_of_a_phone_and_of_a_desk(browser, page, width):
    browser.open(page("<meta name=viewport content='width=device-width'><div style='width:1000px'>a"))
    browser.resize(width)
    assert browser.run("return innerWidth") == width
    assert browser.overflow() == max(0, 1008 - width)


def test_prefers_dark_colours_if_told_to(browser, page):
    browser.open(page(""))
    query = "return matchMedia('(prefers-color-scheme: dark)').matches"
    assert browser.run(query) is False
    browser.dark(True)
    assert browser.run(query) is True
