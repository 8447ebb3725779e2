"""A headless Chromium for tests of pages. Run by ``make test-browser``; skipped where there is none."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from PIL import Image

from gridlstm.pages.demo.demo_page import make_demo

FLAGS = (
    "--headless",
    "--no-sandbox",  # Chromium refuses to run as root otherwise.
    "--disable-gpu",
    "--disable-dev-shm-usage",  # Containers have little shared memory.
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
OFFLINE = ("file:", "data:", "blob:", "about:")
"""The addresses that a page may load: it works without a network."""


def _missing() -> str | None:
    if not find_spec("selenium"):
        return "needs selenium: make test-browser installs it"
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"needs {program}: apt-get install chromium chromium-driver"
    return None


@pytest.fixture(scope="session")
def _driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Browser"]:
    if missing := _missing():
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(300)  # Networks run in the page, perhaps on a busy machine.
    yield Browser(driver)
    driver.quit()


@pytest.fixture
def browser(_driver: "Browser") -> Iterator["Browser"]:
    """Chromium, 1280 pixels wide and light.

    The test fails if a page wrote an error or a warning to the console, or loaded anything from a
    network.
    """
    _driver.start()
    yield _driver
    errors, requests = _driver.errors(), _driver.requests()
    assert not errors, errors
    online = [address for address in requests if not address.startswith(OFFLINE)]
    assert not online, online


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with all rooms."""
    page = tmp_path_factory.mktemp("demo") / "demo.html"
    page.write_text(make_demo(("write", "draw", "solve", "translate")))
    return page


class Browser:
    """Chromium with what tests of pages need beyond selenium's driver.

    Attributes:
        driver: the driver itself.
    """

    def __init__(self, driver: "WebDriver") -> None:  # noqa: F821
        self.driver = driver
        self._errors: list[str] = []
        self._requests: list[str] = []

    def start(self) -> None:
        """Forgets what earlier tests did, and the page with which Chromium starts."""
        self.driver.get("about:blank")
        self.errors(), self.requests()
        self._errors, self._requests = [], []
        self.resize(1280)
        self.dark(False)

    def open(self, page: Path) -> None:
        """Opens a file."""
        self.driver.get(page.resolve().as_uri())

    def run(self, script: str, *arguments: object) -> object:
        """Runs JavaScript in the page: the body of an async function, which may return a value."""
        done = "const done = arguments[arguments.length - 1];"
        body = f"(async function () {{ {script} }}).apply(null, arguments)"
        failed = "error => done({error: String(error.stack || error)})"
        answer = self.driver.execute_async_script(
            f"{done} {body}.then(value => done({{value}}), {failed});", *arguments
        )
        assert "error" not in answer, answer["error"]
        return answer.get("value")

    def resize(self, width: int, height: int = 900, *, touch: bool = False, scale: float = 1) -> None:
        """Sets the size of the page; a window cannot be as narrow as a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": touch}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": touch})

    def dark(self, dark: bool) -> None:
        """Sets the preferred colours."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def errors(self) -> list[str]:
        """Errors and warnings in the console since the start."""
        for entry in self.driver.get_log("browser"):
            if entry["level"] in ("SEVERE", "WARNING"):
                self._errors.append(entry["message"])
        return self._errors

    def requests(self) -> list[str]:
        """The addresses requested since the start."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"]["url"])
        return self._requests

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width = "document.documentElement.scrollWidth"
        return int(self.driver.execute_script(f"return {width} - window.innerWidth"))  # type: ignore[arg-type]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Writes a PNG file of the page: the whole of it, or what the window shows."""
        options: dict[str, object] = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", options)
        path.write_bytes(base64.b64decode(picture["data"]))

    def keep(self, name: str) -> int:
        """Takes a small screenshot of the whole page, and returns its size in bytes.

        It is kept in the folder that ``$SCREENSHOTS`` names, if any: see ``make screenshots``.
        """
        with TemporaryDirectory() as folder:
            path = Path(os.environ.get("SCREENSHOTS") or folder) / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.screenshot(path)
            with Image.open(path) as picture:
                small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
            small.save(path, optimize=True)
            return path.stat().st_size
