"""The report page in Chromium: curves, their legend and scale, colours, widths, keyboard."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gridlstm.pages.report.write import write_report

from ..made_runs import ROWS, fill_sweep, make_run, make_sweep
from ..test_report import hostile_run

PLOT = ".chart [data-plot]"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report on two runs."""
    make_run(tmp_path / "three", layers=3, lines=["input   0 1 1", "output  0"])
    fewer = [{**row, "accuracy": row["accuracy"] / 2} for row in ROWS[1::2]]
    make_run(tmp_path / "two", fewer, layers=2, reason="minutes")
    write_report([tmp_path / "three", tmp_path / "two"], tmp_path / "page.html")
    return tmp_path / "page.html"


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something holds at last: what the browser does by itself takes a while."""
    for _ in range(100):
        if holds():
            return True
        time.sleep(0.1)
    return False


def values(browser) -> list[str]:
    """What the legend says of each run."""
    return browser.run(
        "return [...document.querySelectorAll('[data-value]')].map(output => output.textContent)"
    )


def hover(browser, samples: float) -> None:
    """Points at a number of thousands of samples, as a mouse does."""
    browser.run(
        """const over = document.querySelector('.u-over'), box = over.getBoundingClientRect();
        const x = box.left + charts[0].plot.valToPos(arguments[0], 'x');
        const at = {clientX: x, clientY: box.top + 20, bubbles: true};
        over.dispatchEvent(new MouseEvent('mouseenter', at));
        over.dispatchEvent(new MouseEvent('mousemove', at));
        await new Promise(requestAnimationFrame);""",
        samples,
    )


def click(browser, selector: str) -> None:
    browser.run("document.querySelector(arguments[0]).click()", selector)
    browser.run("await new Promise(requestAnimationFrame)")


def ink(browser) -> list[int]:
    """Pixels of the plot in the colour of each run."""
    return browser.run(
        """await new Promise(requestAnimationFrame);
        const {width, height} = document.querySelector('.chart canvas');
        const copy = Object.assign(document.createElement('canvas'), {width, height});
        const context = copy.getContext('2d', {willReadFrequently: true});
        context.drawImage(document.querySelector('.chart canvas'), 0, 0);
        const {data} = context.getImageData(0, 0, width, height);
        return charts[0].data.runs.map((run, index) => {
            const hex = colour(index), at = [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
            let count = 0;
            for (let k = 0; k < data.length; k += 4)
                if (at.every((part, j) => data[k + j] === part)) count++;
            return count;
        });"""
    )


def ticks(browser) -> list[str]:
    """The values on the vertical axis of the first chart."""
    return browser.run("return charts[0].plot.axes[1]._values.filter(value => value)")


def test_hovering_shows_the_measurements(browser, page: Path) -> None:
    browser.open(page)
    assert values(browser) == ["0.92", "0.45"]  # At the end.
    lines = (page.parent / "three" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        hover(browser, row["samples"] / 1000)
        at = browser.run("return document.querySelector('[data-at]').textContent")
        assert at == f"{row['samples'] / 1000:g} (samples, thousands)"
        assert float(values(browser)[0]) == pytest.approx(row["accuracy"], rel=1e-5)
    # A run without a measurement there shows its nearest one.
    hover(browser, 4.5)
    assert float(values(browser)[1]) in [
        pytest.approx(ROWS[k]["accuracy"] / 2, rel=1e-5) for k in (1, 3)
    ]
    browser.run("document.querySelector('[data-y]').value = 'loss'")
    browser.run("document.querySelector('[data-y]').dispatchEvent(new Event('change'))")
    hover(browser, 3)
    assert [float(value) for value in values(browser)] == pytest.approx([0.35, 0.35])


def test_the_legend_hides_a_series(browser, page: Path) -> None:
    browser.open(page)
    before = ink(browser)
    assert all(count > 50 for count in before)
    click(browser, "[data-series='0']")
    after = ink(browser)
    assert after[0] == 0
    assert after[1] > 50
    assert values(browser) == ["", "0.45"]
    click(browser, "[data-all='false']")
    assert ink(browser) == [0, 0]
    click(browser, "[data-all='true']")
    assert all(count > 50 for count in ink(browser))
    assert browser.run("return document.querySelectorAll('[data-series]:checked').length") == 2


def test_the_button_makes_the_axis_logarithmic(browser, page: Path) -> None:
    browser.open(page)
    # On a linear axis, equal differences are equal distances; on a logarithmic one, equal ratios.
    positions = "return [0.3, 0.6, 0.9].map(value => charts[0].plot.valToPos(value, 'y'))"
    first, second, third = browser.run(positions)
    assert first - second == pytest.approx(second - third)
    before = ticks(browser)
    pressed = "return document.querySelector('[data-log]').getAttribute('aria-pressed')"
    assert browser.run(pressed) == "false"
    click(browser, "[data-log]")
    assert browser.run(pressed) == "true"
    first, second, third = browser.run(positions)
    assert (first - second) / (second - third) == pytest.approx(1.7095, abs=1e-3)  # log 2 / log 1.5
    assert ticks(browser) != before
    assert len(ticks(browser)) >= 2
    assert all(count > 50 for count in ink(browser))
    click(browser, "[data-log]")
    assert ticks(browser) == before


def test_the_keyboard_moves_the_cursor(browser, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    plot = browser.driver.find_element("css selector", PLOT)
    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert float(values(browser)[0]) == pytest.approx(ROWS[1]["accuracy"], rel=1e-5)
    plot.send_keys(Keys.ARROW_LEFT)
    assert float(values(browser)[0]) == pytest.approx(ROWS[0]["accuracy"], rel=1e-5)
    plot.send_keys(Keys.ESCAPE)
    assert values(browser) == ["0.92", "0.45"]
    browser.driver.find_element("css selector", "[data-y]").send_keys(Keys.TAB)
    reached = []
    for _ in range(7):
        reached.append(browser.run("return document.activeElement.outerHTML"))
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    order = ("data-x", "data-log", "data-all", "data-all", "data-plot", "data-series", "data-series")
    assert all(name in html for name, html in zip(order, reached, strict=True)), reached
    box = browser.driver.find_element("css selector", "[data-series='1']")
    box.send_keys(Keys.SPACE)
    assert ink(browser)[1] == 0


def test_a_finger_points_at_curves(browser, page: Path) -> None:
    browser.resize(390, touch=True)
    browser.open(page)
    x, y = browser.run(
        """const over = document.querySelector('.u-over');
        over.scrollIntoView({block: 'center'});
        const box = over.getBoundingClientRect();
        return [box.left + charts[0].plot.valToPos(4.5, 'x'), box.top + box.height / 2];"""
    )
    touch = "Input.dispatchTouchEvent"
    point = {"x": round(x), "y": round(y)}
    browser.driver.execute_cdp_cmd(touch, {"type": "touchStart", "touchPoints": [point]})
    browser.driver.execute_cdp_cmd(touch, {"type": "touchEnd", "touchPoints": []})
    expected = pytest.approx(ROWS[2]["accuracy"], rel=1e-5)
    assert eventually(lambda: float(values(browser)[0]) == expected)


def test_controls_have_names(browser, page: Path) -> None:
    browser.open(page)
    nameless = browser.run(
        """const controls = document.querySelectorAll('button, select, input, [tabindex], img');
        return [...controls].filter(element =>
            !(element.labels?.[0] || element).textContent.trim() && !element.getAttribute('aria-label')
            && !element.alt).map(element => element.outerHTML)"""
    )
    assert nameless == []
    assert browser.run("return document.querySelectorAll('h1').length") == 1


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_widths_and_colours(browser, tmp_path: Path, width: int, dark: bool) -> None:
    sweep = make_sweep(tmp_path / "parity-layers-seed", layers=[1, 2, 4], seed=[0, 1, 2])
    fill_sweep(sweep)
    write_report([sweep.path], tmp_path / "page.html")
    browser.resize(width, touch=width < 500)
    browser.dark(dark)
    browser.open(tmp_path / "page.html")
    assert browser.overflow() <= 0
    background, text = (_luminance(browser, name) for name in ("background-color", "color"))
    assert (background < 0.1) == dark
    assert _contrast(background, text) > 7
    assert all(count > 20 for count in ink(browser))
    browser.dark(not dark)  # While the page is open.
    assert eventually(lambda: all(count > 20 for count in ink(browser)))


@pytest.mark.skipif("SCREENSHOTS" not in os.environ, reason="make screenshots: it trains six networks")
def test_screenshot(browser, gridlstm, tmp_path: Path) -> None:
    """Looked at by hand: ``make screenshots`` keeps them in docs/screenshots."""
    small = ("--preset", "smoke", "--samples", 1200, "--evaluate-every", 150, "--test-samples", 100)
    over = ("--over", "layers=1,2,4", "seed=0,1", "--out", tmp_path / "parity-layers")
    assert gridlstm("sweep", "parity", *small, *over)[0] == 0
    write_report([tmp_path / "parity-layers"], tmp_path / "page.html")
    for name, width, dark in (("desktop", 1280, False), ("phone", 390, True)):
        browser.resize(width, 844, touch=width < 500)
        browser.dark(dark)
        browser.open(tmp_path / "page.html")
        hover(browser, 0.75)
        assert browser.keep(f"report-{name}") > 5000


def test_texts_and_curves_have_contrast(browser, page: Path) -> None:
    for dark in (False, True):
        browser.dark(dark)
        browser.open(page)
        background = _luminance(browser, "background-color")
        for name in ("--faint", "--accent", *(f"--c{k}" for k in range(8))):
            probe = f"document.body.style.setProperty('outline-color', 'var({name})')"
            browser.run(probe)
            assert _contrast(background, _luminance(browser, "outline-color")) > 4.5, (name, dark)


def test_the_page_is_resized_with_the_window(browser, page: Path) -> None:
    browser.open(page)
    wide = browser.run("return charts[0].plot.width")
    browser.resize(500)
    assert eventually(lambda: browser.run("return charts[0].plot.width") < 480 < wide)
    assert browser.overflow() <= 0


def test_a_live_page_reloads_and_remembers_what_was_chosen(browser, page: Path) -> None:
    html = page.read_text()
    page.write_text(html.replace('"refresh":null', '"refresh":0.5'))
    browser.open(page)
    browser.run("window.old = true")
    click(browser, "[data-log]")
    click(browser, "[data-series='0']")
    page.write_text(html)  # Does not reload any more.
    assert eventually(lambda: browser.driver.execute_script("return !window.old"))
    assert browser.run("return report.refresh") is None
    assert browser.run("return charts[0].chosen") == {
        "x": "samples", "y": "accuracy", "log": True, "hidden": [0],
    }  # fmt: skip
    assert ink(browser)[0] == 0


def test_hostile_files_run_no_script(browser, tmp_path: Path) -> None:
    write_report([hostile_run(tmp_path)], tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert browser.run("return typeof window.hacked") == "undefined"
    assert browser.run("return document.querySelectorAll('img, script').length") == 3
    assert browser.overflow() <= 0
    browser.resize(390)
    assert browser.overflow() <= 0


def test_the_policy_stops_a_script_that_was_not_escaped(browser, page: Path) -> None:
    attack = "<script>hacked=1</script><p onclick='hacked=1' id=p>a</p></main>"
    page.write_text(page.read_text().replace("</main>", attack))
    browser.open(page)
    click(browser, "#p")
    assert browser.run("return typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in error for error in browser.errors())
    browser.start()


def _luminance(browser, name: str) -> float:
    """The relative luminance of a colour of the body, as WCAG defines it."""
    colour = "getComputedStyle(document.body)[arguments[0]]"
    rgb = browser.run(f"return {colour}.match(/[\\d.]+/g).slice(0, 3).map(Number)", name)
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def _contrast(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return (high + 0.05) / (low + 0.05)
