"""Drawings: what they show of a grid, checked in the SVG's own elements, and how they are saved."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gridlstm import Dim, GridLSTM, ImageGridLSTM, Reencoder
from gridlstm.commands.gallery import make_gallery, run
from gridlstm.commands.options import GalleryOptions
from gridlstm.drawing import Drawing, draw_wave
from gridlstm.geometry import make_plan

SVG = "{http://www.w3.org/2000/svg}"


def elements(drawing: Drawing, tag: str, kind: str = "") -> list[ElementTree.Element]:
    found = ElementTree.fromstring(str(drawing)).iter(SVG + tag)
    return [element for element in found if kind in element.get("class", "").split() or not kind]


def words(drawing: Drawing) -> list[str]:
    return [element.text or "" for element in elements(drawing, "text")]


def line_about(drawing: Drawing, name: str) -> str:
    (line,) = (text for text in words(drawing) if text.startswith(f"{name}: "))
    return line


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_every_block_and_every_pair_of_vectors_is_drawn(dimensions: int) -> None:
    names = "abc"[:dimensions]
    drawing = GridLSTM(list(names), 4).draw(dict.fromkeys(names, 3))
    blocks = 3**dimensions
    assert len(elements(drawing, "rect", "gl-block")) == blocks
    # Along each dimension, a line enters every block, and one more leaves the last of each row; the
    # legend has two hidden lines and one memory line.
    lines = dimensions * (blocks + blocks // 3)
    assert len(elements(drawing, "path", "gl-h")) == lines + 2
    assert len(elements(drawing, "path", "gl-m")) == lines + 1
    about = [block[0].text for block in elements(drawing, "rect", "gl-block")]
    assert len(set(about)) == blocks
    assert about[-1] is not None


def test_sides_have_the_names_and_shapes_of_a_call() -> None:
    drawing = GridLSTM([Dim("time"), Dim("depth", size=18)], 64).draw()
    counted = Counter(words(drawing))
    for name, shape in (("time", "[batch, depth=18, 64]"), ("depth", "[batch, time, 64]")):
        assert counted[f'sides["{name}"]'] == counted[f'out["{name}"]'] == 1
        assert counted[shape] == 2
    assert line_about(drawing, "time") == "time: any length, LSTM cells, tied"


def test_a_reversed_dimension_is_entered_at_its_end() -> None:
    def side(reverse: bool, label: str) -> float:
        drawing = GridLSTM([Dim("time", reverse=reverse), "depth"], 8).draw()
        (text,) = (t for t in elements(drawing, "text") if t.text == f'{label}["time"]')
        return float(text.get("x", ""))

    assert side(False, "sides") < side(False, "out")
    assert side(True, "sides") > side(True, "out")
    backwards = GridLSTM([Dim("time", reverse=True)], 8).draw({"time": 2})
    heads = [h.get("points", "").split() for h in elements(backwards, "polygon", "gl-h")]
    tip, *back = (float(point.split(",")[0]) for point in heads[0])
    assert tip < min(back)


def test_a_colour_is_a_weight_set() -> None:
    def colours(**arguments: bool) -> int:
        dims = [Dim("time", size=3), Dim("depth", size=4, **arguments)]
        blocks = elements(GridLSTM(dims, 4).draw(), "rect", "gl-block")
        return len({block.get("class") for block in blocks})

    assert colours(tied=True) == 1
    assert colours(tied=False) == 4
    untied = GridLSTM([Dim("time", size=3, tied=False), Dim("depth", size=4, tied=False)], 4).draw()
    style = elements(untied, "style")[0].text or ""
    light = re.findall(r"\.gl-s(\d+)\{fill:(#\w+)", style.split("@media")[0])
    assert len({colour for _, colour in light}) == 12


def test_dimensions_say_what_they_are() -> None:
    def leaky(x: object) -> object:
        return x

    grid = GridLSTM(
        [
            Dim("time", "gru", reverse=True),
            Dim("row", "peephole"),
            Dim("depth", "relu", size=1, priority=True),
        ],
        4,
    )
    drawing = grid.draw()
    assert line_about(drawing, "time") == "time: any length, GRU cells, tied, travelled backwards"
    assert line_about(drawing, "row") == "row: any length, LSTM with peepholes cells, tied"
    assert "1 block, no cells, h' = relu(V H), tied, priority" in line_about(drawing, "depth")
    shared = GridLSTM(["time", Dim("depth", shares_weights_with="time")], 4).draw()
    assert 'uses the weights of "time"' in line_about(shared, "depth")
    own = GridLSTM([Dim("time", leaky)], 4).draw()  # type: ignore[arg-type]
    assert "h' = leaky(V H)" in line_about(own, "time")


def test_of_many_blocks_some_are_left_out() -> None:
    drawing = GridLSTM([Dim("depth", size=100)], 4).draw()
    assert len(elements(drawing, "rect", "gl-block")) == 4
    assert len(elements(drawing, "path", "gl-far")) == 2
    assert "depth 99" in {block[0].text for block in elements(drawing, "rect", "gl-block")}


def test_more_than_three_dimensions_are_drawn_as_pairs() -> None:
    drawing = GridLSTM(["a", "b", "c", Dim("d", size=2)], 4).draw()
    titles = [text for text in words(drawing) if text.endswith("one position of the others")]
    assert [title[:5] for title in titles] == ["a × b", "a × c", "a × d", "b × c", "b × d", "c × d"]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_a_block_shows_its_vectors_and_transforms(dimensions: int) -> None:
    names = ["time", "depth", "row", "column"][:dimensions]
    shown = words(GridLSTM(list(names), 4).draw_block())
    assert f"H = [{'; '.join(f'h_{name}' for name in names)}]" in shown
    for name in names:
        assert {f"h_{name}, m_{name}", f"h'_{name}, m'_{name}", f"{name}: LSTM"} <= set(shown)


def test_a_block_computes_priority_dimensions_last() -> None:
    shown = words(GridLSTM([Dim("depth", "identity", priority=True), Dim("time")], 4).draw_block())
    assert shown.index("time: LSTM") < shown.index("depth: V H, reads the new h")
    assert "h'_depth" in shown
    alone = words(GridLSTM([Dim("depth", priority=True)], 4).draw_block())
    assert "depth: LSTM" in alone


def test_stacks_show_the_directions_of_their_layers() -> None:
    reencoder = words(Reencoder(9, 7, 8).stack.draw())
    assert "layer 1: all dimensions forwards" in reencoder
    assert "layer 2: source backwards" in reencoder
    image = words(ImageGridLSTM(8, 4, patch_size=4).stack.draw())
    assert "layer 3: row and column backwards" in image


@pytest.mark.parametrize(("tied", "colours"), [(False, 4), (True, 1)])
def test_layers_with_the_same_weights_have_one_colour(tied: bool, colours: int) -> None:
    drawing = ImageGridLSTM(8, 4, patch_size=4, tied=tied).stack.draw()
    assert len({block.get("class") for block in elements(drawing, "rect", "gl-block")}) == colours


def test_the_gallery_of_the_documents_is_what_the_command_draws() -> None:
    stored = Path(__file__).parent.parent / "docs" / "gallery"
    drawn = {f"{name}.svg": str(drawing) for name, drawing in make_gallery().items()}
    written = {path.name: path.read_text() for path in stored.glob("*.svg")}
    assert written == drawn, "run gridlstm gallery --out docs/gallery"


def test_the_command_writes_the_gallery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(GalleryOptions(out=tmp_path / "new"))
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "new" / f"{n}.svg") for n in make_gallery()
    ]


def test_the_wave_lights_blocks_in_the_steps_of_the_plan() -> None:
    grid = GridLSTM([Dim("time", reverse=True), Dim("depth", size=3)], 4)
    drawing = draw_wave(grid.dims, {"time": 5})
    plan = make_plan((5, 3), (True, False), (False, False))
    lit = Counter(rect.get("class", "").split()[-1] for rect in elements(drawing, "rect", "gl-lit"))
    assert lit == {f"gl-step{k}": step.stop - step.start for k, step in enumerate(plan.steps)}
    first = elements(drawing, "rect", "gl-step0")[0]
    assert float(first.get("x", "")) == max(
        float(rect.get("x", "")) for rect in elements(drawing, "rect", "gl-lit")
    )
    assert "prefers-reduced-motion" in str(drawing)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"tmie": 3}, ValueError, 'sizes: unknown dimension "tmie", expected some of time, depth'),
        ({"time": 0}, ValueError, 'sizes: "time": expected at least 1, got 0'),
        ({"time": 2.0}, TypeError, 'sizes: "time": expected an integer, got 2.0'),
        ({"depth": 3}, ValueError, 'sizes: "depth": expected 2, its size, got 3'),
    ],
)
def test_wrong_sizes(sizes: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        GridLSTM(["time", Dim("depth", size=2)], 4).draw(sizes)


def test_a_wave_needs_two_dimensions_and_their_sizes() -> None:
    with pytest.raises(ValueError, match="dims: expected two dimensions, got 1"):
        draw_wave(GridLSTM(["time"], 4).dims, {"time": 2})
    with pytest.raises(ValueError, match="sizes: expected a size for depth, got none"):
        draw_wave(GridLSTM(["time", "depth"], 4).dims, {"time": 2})


def test_a_drawing_shows_and_saves_itself(tmp_path: Path) -> None:
    drawing = GridLSTM([Dim("depth", size=2)], 4).draw()
    assert drawing._repr_svg_() == str(drawing)
    drawing.save(tmp_path / "new" / "grid.svg")
    assert (tmp_path / "new" / "grid.svg").read_text() == str(drawing)
    with pytest.raises(ValueError, match=r"path: expected a name that ends in .svg, got 'grid.png'"):
        drawing.save(str(tmp_path / "grid.png"))


def test_all_text_is_inside_the_picture_and_classes_are_its_own() -> None:
    drawing = GridLSTM([Dim("time"), Dim("depth", size=3, tied=False)], 4).draw()
    root = ElementTree.fromstring(str(drawing))
    left, top, width, height = (float(value) for value in root.get("viewBox", "").split())
    for text in elements(drawing, "text"):
        assert left < float(text.get("x", "")) < left + width
        assert top < float(text.get("y", "")) < top + height
    rules = re.findall(r"([^{}@]+)\{[^{}]*\}", elements(drawing, "style")[0].text or "")
    selectors = [part for rule in rules for part in rule.split(",")]
    assert all(selector.startswith(".gl ") for selector in selectors)


def test_drawing_does_not_load_pytorch() -> None:
    code = "import sys, gridlstm.drawing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
