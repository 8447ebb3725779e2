"""The rooms of the demo, as visitors use them: with a mouse, a finger, or a keyboard only."""

import pytest

ROOMS = ("write", "draw", "solve", "translate")
SIZES = {"desktop": 1280, "phone": 390}


@pytest.fixture
def page(browser, demo):
    browser.open(demo)
    return browser


def press(page, *keys: str) -> None:
    """Presses keys on whatever has the focus."""
    for key in keys:
        text = {"Enter": "\r", "Space": " "}.get(key, key if len(key) == 1 else "")
        event = {"key": " " if key == "Space" else key, "text": text, "unmodifiedText": text}
        event["windowsVirtualKeyCode"] = {"Enter": 13, "Space": 32, "Tab": 9}.get(key, 0)
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", **event})
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", **event})


def focus(page, selector: str) -> None:
    page.run("document.querySelector(arguments[0]).focus()", selector)


def text(page, room: str, part: str) -> str:
    selector = f"#room-{room} [data-part={part}]"
    return page.run("return document.querySelector(arguments[0]).textContent", selector)


def wait(page, condition: str) -> None:
    """Waits for a condition in the page."""
    page.run(f"while (!({condition})) await new Promise((resolve) => setTimeout(resolve, 20))")


def path(page, room: str, part: str, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points of an element, from 0 to 1 both ways, as coordinates of the window."""
    script = """
        const element = document.querySelector(arguments[0]);
        element.scrollIntoView({ block: "center" });
        const { left, top, width, height } = element.getBoundingClientRect();
        return arguments[1].map(([x, y]) => [left + x * width, top + y * height]);
        """
    return page.run(script, f"#room-{room} [data-part={part}]", points)


def touch(page, points: list[tuple[float, float]]) -> None:
    """Moves a finger over points."""
    for i, (x, y) in enumerate(points):
        event = {"type": "touchMove" if i else "touchStart", "touchPoints": [{"x": x, "y": y}]}
        page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", event)
    page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def show(page, room: str) -> None:
    page.run("showRoom(arguments[0])", room)


SEVEN = [(0.3, 0.2), (0.5, 0.2), (0.7, 0.2), (0.6, 0.45), (0.5, 0.65), (0.42, 0.85)]


def test_tabs_by_keyboard(page):
    focus(page, "#tab-write")
    for room in ("draw", "solve", "translate", "write"):
        press(page, "ArrowRight")
        shown = (
            "return Array.from(document.querySelectorAll('[role=tabpanel]:not([hidden])'), (p) => p.id)"
        )
        assert page.run(shown) == [f"room-{room}"]
        selected = (
            "return document.querySelector('[aria-selected=true]').id + document.activeElement.id"
        )
        assert page.run(selected) == f"tab-{room}tab-{room}"
    press(page, "ArrowLeft")
    assert page.run("return location.hash") == "#translate"


def test_a_room_can_be_linked_to(page, demo):
    page.driver.get(demo.as_uri() + "#solve")
    page.driver.refresh()
    assert page.run("return document.querySelector('[aria-selected=true]').dataset.room") == "solve"


def test_text_streams_from_a_prompt_and_can_be_paused(page):
    focus(page, "#room-write [name=prompt]")
    page.run("document.activeElement.value = 'JULIET:'")
    press(page, "Enter")
    wait(page, "rooms.write.columns.length > 20")
    written = text(page, "write", "text")
    assert written.startswith("JULIET:")
    assert len(written) > 20
    likely = "return Array.from(arguments[0], (share) => parseFloat(share.textContent))"
    shares = page.run(likely, page.driver.find_elements("css selector", "#room-write .value"))
    assert len(shares) == 8
    assert shares == sorted(shares, reverse=True)
    focus(page, "#room-write [data-part=pause]")
    press(page, "Enter")
    paused = text(page, "write", "text")
    page.run("await new Promise((resolve) => setTimeout(resolve, 200))")
    assert text(page, "write", "text") == paused
    press(page, "Enter")
    wait(page, f"rooms.write.parts.text.textContent.length > {len(paused)}")


def test_the_memories_of_a_character_can_be_read(page):
    focus(page, "#room-write [data-part=memories]")
    press(page, "ArrowRight", "ArrowRight", "ArrowDown")
    value = page.run("return rooms.write.columns[1].blocks[3].outgoing[0].m[1].toFixed(3)")
    assert text(page, "write", "readout") == f"After “O”, layer 4, unit 2: memory {value}"
    page.run("document.querySelector('#room-write [name=along][value=\"1\"]').click()")
    press(page, "ArrowLeft", "ArrowRight")
    value = page.run("return rooms.write.columns[1].blocks[3].outgoing[1].m[1].toFixed(3)")
    page.run("rooms.write.map.point([1, 1])")
    assert text(page, "write", "readout").endswith(f"memory {value}")


def test_temperature_is_shown(page):
    focus(page, "#write-temperature")
    page.run(
        "document.activeElement.value = 0; document.activeElement.dispatchEvent(new Event('input'))"
    )
    assert page.run("return document.querySelector('#room-write [name=shown]').value") == "0.0"


def test_a_digit_drawn_with_the_mouse(page):
    show(page, "draw")
    assert text(page, "draw", "answer") == "–"
    points = path(page, "draw", "pad", SEVEN)
    for kind, (x, y) in zip(["mousePressed", *["mouseMoved"] * 5], points, strict=True):
        event = {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
        page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    wait(page, "rooms.draw.parts.answer.textContent === '7'")
    page.run("rooms.draw.parts.clear.click()")
    assert text(page, "draw", "answer") == "–"


def test_a_digit_drawn_with_a_finger(page):
    page.resize(390, 844, touch=True)
    show(page, "draw")
    points = path(page, "draw", "pad", SEVEN)
    scrolled = page.run("return scrollY")
    touch(page, points)
    wait(page, "rooms.draw.parts.answer.textContent === '7'")
    assert page.run("return scrollY") == scrolled  # The finger draws and does not move the page.


def test_a_digit_drawn_with_the_keyboard(page):
    show(page, "draw")
    focus(page, "#room-draw [data-part=pad]")
    press(page, "ArrowUp", "Space", *["ArrowDown"] * 18, "Space", "ArrowLeft")
    wait(page, "rooms.draw.parts.answer.textContent === '1'")
    assert page.run("return rooms.draw.pen") == {"x": 94, "y": 152, "down": False}


def test_digits_to_choose(page):
    show(page, "draw")
    for digit in range(10):
        focus(page, f"#room-draw .samples button:nth-child({digit + 1})")
        press(page, "Enter")
        assert text(page, "draw", "answer") == str(digit)
    page.run("rooms.draw.maps[1].point([2, 3])")
    value = page.run("return rooms.draw.strengths[0][2 * 7 + 3].toFixed(3)")
    assert text(page, "draw", "readout") == f"Sweep 1, patch 3, 4: mean |memory| {value}"
    page.run("rooms.draw.stroke({x: 100, y: 30}, {x: 100, y: 170})")  # In place of the chosen one.
    wait(page, "rooms.draw.parts.answer.textContent === '1'")


def test_letters_step_by_step(page):
    show(page, "solve")
    focus(page, "#room-solve [data-part=step]")
    for step in range(1, 26):
        press(page, "Enter")
        assert text(page, "solve", "note") == f"Wave {step} of 25"
        # Times and layers of the blocks of a wave add up to the same number, and none is left out.
        wave = page.run("return rooms.solve.wave.map(({ position }) => position)")
        assert sorted(wave) == [
            [time, step - 1 - time] for time in range(18) if 0 <= step - 1 - time < 8
        ]
    press(page, "Enter")
    assert text(page, "solve", "note") == "Repeated REMEMBER: 144 blocks in 25 waves."
    press(page, "Enter")
    assert text(page, "solve", "note") == "Wave 1 of 25"


def test_letters_played_to_the_end(page):
    show(page, "solve")
    page.run("rooms.solve.parts.random.click()")
    word = page.run("return rooms.solve.parts.form.word.value")
    assert len(word) == 8
    focus(page, "#room-solve [name=word]")
    press(page, "Enter")
    wait(page, "rooms.solve.finished")
    assert word in text(page, "solve", "note")


@pytest.mark.parametrize("word", ["SHORT", "NOT-ABCD", ""])
def test_other_letters_are_refused(page, word):
    show(page, "solve")
    page.run(
        "const { word } = rooms.solve.parts.form; word.value = arguments[0];"
        "word.dispatchEvent(new Event('input'))",
        word,
    )
    assert text(page, "solve", "note") == "Type 8 letters from A to Z."
    focus(page, "#room-solve [name=word]")
    press(page, "Enter")
    assert page.run("return rooms.solve.blocks.size") == 0


def test_the_vectors_of_a_block_can_be_read(page):
    show(page, "solve")
    page.run("for (let i = 0; i < 26; i++) rooms.solve.step()")
    ((x, y),) = path(page, "solve", "grid", [(0.99, 0.16)])
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
    readout = text(page, "solve", "readout")
    assert readout.startswith("Time 18, layer 8: along time |h| ")
    assert "predicts –" in readout
    focus(page, "#room-solve [data-part=grid]")
    press(page, "ArrowDown")
    assert page.run("return rooms.solve.chosen.position") == [17, 6]


def test_what_a_finger_touches_stays(page):
    page.resize(390, 844, touch=True)
    show(page, "solve")
    page.run("for (let i = 0; i < 26; i++) rooms.solve.step()")
    ((x, y),) = path(page, "solve", "grid", [(0.99, 0.16)])
    touch(page, [(x, y)])
    wait(page, "rooms.solve.parts.readout.textContent.startsWith('Time 18, layer 8')")


def test_sentences(page):
    show(page, "translate")
    wait(page, "rooms.translate.parts.translation.textContent !== '…'")
    assert text(page, "translate", "translation") == "I want to drink water."
    focus(page, "#room-translate .samples button:nth-child(2)")
    press(page, "Enter")
    wait(page, "rooms.translate.parts.translation.textContent !== '…'")
    assert text(page, "translate", "translation").startswith("He doesn't like")
    assert page.run("return document.querySelectorAll('#room-translate canvas').length") == 2
    page.run("await rooms.translate.translate(' ')")
    assert text(page, "translate", "translation") == "Type a sentence."


@pytest.mark.parametrize("width", SIZES.values(), ids=SIZES)
def test_nothing_is_wider_than_the_window(page, width):
    page.resize(width, touch=width < 500)
    for room in ROOMS:
        show(page, room)
        assert page.overflow() == 0, room
        if room == "draw":
            page.run("document.querySelector('#room-draw .samples button:nth-child(3)').click()")
            heights = "return Array.from(rooms.draw.parts.classes.children, (bar) => bar.clientHeight)"
            assert len({*page.run(heights)}) == 1  # Even that of 100.0 % is one line high.
        wide = """
            return Array.from(document.querySelectorAll('main *'))
              .filter((e) => e.getClientRects().length)
              .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5)
              .map((e) => e.outerHTML.slice(0, 80));
            """
        assert page.run(wide) == [], room


CONTRAST = """
    const linear = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const behind = (e) => {
      for (; e; e = e.parentElement) {
        const colour = numbers(getComputedStyle(e).backgroundColor);
        if (colour[3] === undefined || colour[3] === 1) return colour;
      }
      return [255, 255, 255];
    };
    const texts = Array.from(document.querySelectorAll("body *")).filter((e) =>
      e.getClientRects().length && (e.matches("input[type=text]") ||
        Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.data.trim())));
    return texts.map((e) => {
      const [a, b] = [numbers(getComputedStyle(e).color), behind(e)].map(luminance);
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)];
    }).sort((a, b) => a[0] - b[0]);
    """


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast(page, dark):
    """At least 4.5, as WCAG asks for (level AA)."""
    page.dark(dark)
    for room in ROOMS:
        show(page, room)
        worst = page.run(CONTRAST)
        assert len(worst) > 10
        assert worst[0][0] >= 4.5, (room, worst[:3])


def test_colours_follow_the_system_until_they_are_chosen(page):
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    pressed = "return document.getElementById('theme').getAttribute('aria-pressed')"
    light = page.run(background)
    page.dark(True)
    dark = page.run(background)
    assert dark != light
    wait(page, "document.getElementById('theme').getAttribute('aria-pressed') === 'true'")
    focus(page, "#theme")
    press(page, "Enter")
    assert page.run(background) == light
    assert page.run(pressed) == "false"
    page.run("showRoom('draw')")
    assert page.run("return css('background')").replace(" ", "") == light.replace(",", " ").replace(
        " ", ""
    )


def test_what_can_be_used_has_a_name(page):
    for room in ROOMS:
        show(page, room)
        found = page.driver.find_elements("css selector", "button, input, [role], a")
        shown = [element for element in found if element.is_displayed()]
        assert len(shown) > 10
        nameless = [e.get_attribute("outerHTML")[:80] for e in shown if not e.accessible_name]
        assert nameless == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("room", ROOMS)
def test_screenshot(page, room, size):
    """Looked at by hand: ``make screenshots`` keeps them in docs/screenshots."""
    page.resize(SIZES[size], 844, touch=size == "phone")
    page.dark(room in ("draw", "translate"))
    show(page, room)
    prepare = {
        "write": """
            const room = rooms.write;
            room.random = seededRandom(4);
            for (let i = 0; i < 150; i++) { room.tick(); clearTimeout(room.timer); }
            """,
        "draw": "document.querySelector('#room-draw .samples button:nth-child(3)').click()",
        "solve": "for (let i = 0; i < 17; i++) rooms.solve.step(); rooms.solve.map.point([3, 5]);",
        "translate": "document.querySelector('#room-translate .samples button:nth-child(2)').click()",
    }
    page.run(prepare[room])
    wait(page, "rooms.translate?.parts.translation.textContent !== '…'")
    page.run("scrollTo(0, 0); await new Promise((resolve) => setTimeout(resolve, 300))")
    assert page.keep(f"demo-{room}-{size}") > 5000
