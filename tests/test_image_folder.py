"""Own pictures for ``train images``: a folder per class."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gridlstm as library
from gridlstm.data.locate import DataError
from gridlstm.experiments.images.data import shift
from gridlstm.experiments.images.folder import read_folder
from gridlstm.experiments.images.options import ImageOptions
from gridlstm.experiments.images.pictures import read_square
from gridlstm.experiments.images.problem import ImageProblem
from gridlstm.hub import from_pretrained, save_pretrained
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.training.rundir import RunDir

from .figure_text import figure_text

COLOURS = {"grün": (0, 200, 0), "red car": (200, 0, 0), "sky": (80, 80, 255)}


def draw(
    path: Path, colour: tuple[int, int, int], number: int, size: tuple[int, int] = (16, 12)
) -> None:
    """A picture of one colour with some noise, which differs from number to number."""
    noise = np.random.default_rng(number).integers(0, 40, (*size[::-1], 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((noise + colour).clip(0, 255).astype(np.uint8)).save(path)


def make(folder: Path, each: int = 20) -> Path:
    for label, (name, colour) in enumerate(COLOURS.items()):
        for number in range(each):
            kind = ("png", "bmp", "webp")[number % 3]
            draw(folder / name / f"{number}.{kind}", colour, 100 * label + number)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("own") / "pictures")


SMALL = (
    "--preset", "smoke", "--pixels", 8, "--patch", 4, "--hidden", 4, "--relu", 8, "--shift", 1,
    "--colour", "--samples", 2000, "--evaluate-every", 1000,
)  # fmt: skip


@pytest.fixture(scope="module")
def trained(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from gridlstm.cli import main

    out = tmp_path_factory.mktemp("runs") / "own"
    with pytest.MonkeyPatch.context() as patch:
        arguments = ["train", "images", "--folder", pictures, *SMALL, "--out", out]
        patch.setattr("sys.argv", ["gridlstm", *map(str, arguments)])
        main()
    return out


def test_classes_and_parts(pictures: Path) -> None:
    images = read_folder(pictures, 8, colour=True)
    assert images.names == images.class_names == ("grün", "red car", "sky")
    assert [len(part.labels) for part in (images.train, images.valid, images.test)] == [48, 6, 6]
    for part in (images.train, images.valid, images.test):
        counts = np.bincount(part.labels, minlength=3)
        assert (counts == len(part.labels) // 3).all()
        assert part.images.shape[1:] == (3, 8, 8)
    for image, label, file in zip(*images.test, images.test_files, strict=True):
        assert file.split("/")[0] == images.names[label]
        assert (image == read_square(pictures / file, 8, colour=True)).all()
    assert images.test.labels.tolist() != sorted(images.test.labels)  # A part of them has all classes.


def test_the_split_follows_from_the_names_of_files(pictures: Path, tmp_path: Path) -> None:
    """Not from the order in which a file system lists them, nor from where they are."""
    before = read_folder(pictures, 8, colour=False)
    for name in reversed(list(COLOURS)):
        for path in sorted((pictures / name).iterdir(), reverse=True):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
    (tmp_path / "sky" / ".DS_Store").write_text("not a picture")
    (tmp_path / "sky" / "Thumbs.db").write_text("not a picture")
    again = read_folder(tmp_path, 8, colour=False)
    assert again.sha256() == before.sha256()
    assert again.test_files == before.test_files
    (tmp_path / "sky").rename(tmp_path / "zenith")
    assert read_folder(tmp_path, 8, colour=False).sha256() != before.sha256()


def test_parts_of_their_own(tmp_path: Path) -> None:
    for part, each in (("train", 4), ("val", 2), ("test", 3)):
        make(tmp_path / part, each)
    images = read_folder(tmp_path, 8, colour=False)
    assert [len(part.labels) for part in (images.train, images.valid, images.test)] == [12, 6, 9]
    assert {file.split("/")[0] for file in images.test_files} == {"test"}
    (tmp_path / "test" / "sky").rename(tmp_path / "test" / "sea")
    with pytest.raises(DataError, match=r"expected the classes of train, got others: sea"):
        read_folder(tmp_path, 8, colour=False)
    (tmp_path / "val").rename(tmp_path / "other")
    with pytest.raises(DataError, match=r"train, valid and test, but there is no valid"):
        read_folder(tmp_path, 8, colour=False)


def test_a_class_called_train(tmp_path: Path) -> None:
    for name in ("train", "boat"):
        for number in range(3):
            draw(tmp_path / name / f"{number}.png", (9, 9, 9), number)
    assert read_folder(tmp_path, 8, colour=False).class_names == ("boat", "train")


def test_what_is_wrong_with_a_folder(tmp_path: Path) -> None:
    def check(message: str) -> None:
        with pytest.raises(DataError, match=message) as caught:
            read_folder(tmp_path / "own", 8, colour=False)
        assert "\n" not in str(caught.value)

    check("expected a folder with a folder of pictures for each class")
    for number in range(3):
        draw(tmp_path / "own" / "a" / f"{number}.png", (9, 9, 9), number)
    check("expected a folder for each of 2 or more classes, got 1")
    (tmp_path / "own" / "b").mkdir()
    check(r"own/b: expected pictures, got an empty folder")
    draw(tmp_path / "own" / "b" / "0.png", (9, 9, 9), 0)
    check(r"own/b: expected at least 3 pictures, to train, validate and test on, got 1")
    (tmp_path / "own" / "b" / "1.png").write_text("no picture")
    (tmp_path / "own" / "b" / "2.png").mkdir()
    check(r"own/b/[12].png: expected a (picture|file), got")
    (tmp_path / "own" / "note.txt").write_text("")
    check(r"own/note.txt: expected a folder of pictures for each class, got a file")


def test_too_many_pictures_for_the_memory(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridlstm.experiments.images.folder.memory_bytes", lambda: 1000)
    with pytest.raises(DataError, match="60 pictures of 8 × 8 pixels do not fit into memory"):
        read_folder(pictures, 8, colour=False)


def test_the_middle_of_a_picture_is_read(tmp_path: Path) -> None:
    shades = np.zeros((10, 30, 3), np.uint8)
    shades[:, 8:22] = (250, 100, 50)
    Image.fromarray(shades).save(tmp_path / "wide.png")
    colour = read_square(tmp_path / "wide.png", 5, colour=True)
    assert colour.shape == (3, 5, 5)
    assert (colour == np.array([250, 100, 50])[:, None, None]).all()
    grey = read_square(tmp_path / "wide.png", 5)
    assert grey.tolist() == [[139] * 5] * 5  # 0.299 of red, 0.587 of green and 0.114 of blue.


def test_transparency_and_sixteen_bits(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(tmp_path / "nothing.png")
    assert (read_square(tmp_path / "nothing.png", 2, colour=True) == 255).all()
    Image.fromarray(np.full((4, 4), 0x8000, np.uint16)).save(tmp_path / "wide.png")
    assert (read_square(tmp_path / "wide.png", 2) == 128).all()
    assert (read_square(tmp_path / "wide.png", 2, colour=True) == 128).all()


def test_shifts_repeat_the_edge() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(1, 3, 2, 2)
    (moved,) = shift(image, np.array([[1, 0]]), 1, "edge")
    assert moved.tolist() == [[[0, 1], [0, 1]], [[4, 5], [4, 5]], [[8, 9], [8, 9]]]
    (moved,) = shift(image, np.array([[0, -1]]), 2)
    assert moved.tolist() == [[[1, 0], [3, 0]], [[5, 0], [7, 0]], [[9, 0], [11, 0]]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pixels": 16}, "pixels, colour: only for own pictures"),
        ({"colour": True}, "pixels, colour: only for own pictures"),
        ({"folder": "x", "pixels": 0}, "pixels: expected at least 1 and at most 1024, got 0"),
        ({"folder": "x", "pixels": 2000}, "pixels: expected at least 1 and at most 1024, got 2000"),
        ({"folder": "x", "pixels": 8, "patch": 9}, "patch: expected at least 1 and at most 8, got 9"),
        ({"folder": "x", "pixels": 4}, "shift: expected at least 0 and below 4, got 4"),
    ],
)
def test_impossible_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImageOptions(**options)


def test_training_and_testing(gridlstm, trained: Path, pictures: Path, tmp_path: Path) -> None:
    code, out, _ = gridlstm("eval", trained)
    assert code == 0
    assert json.loads(out)["samples"] == 6
    evaluation = RunDir(trained).read_result("evaluation.json")
    assert evaluation["classes"] == ["grün", "red car", "sky"]
    assert evaluation["error"] == 0  # The colours are easy to tell apart.
    assert np.trace(evaluation["confusion"]) == 6
    code, out, _ = gridlstm("classify", trained, pictures / "red car" / "0.png")
    assert code == 0
    assert json.loads(out)["class"] == "red car"
    assert json.loads(out)["probability"] > 0.5
    code, _, err = gridlstm("classify", trained, trained / "config.json")
    assert code == 1
    assert "expected a picture" in err
    sky = pictures / "sky" / "0.png"
    for kind, options, words in (
        ("confusion", (), {"grün", "red car", "class", "predicted"}),
        ("mistakes", (), {"0 of 6 wrong, 0.00%"}),
        ("activations", (), {"layer 1 ↘"}),
        ("activations", ("--input", sky), {"predicted sky"}),
    ):
        file = tmp_path / f"{kind}.svg"
        assert gridlstm("plot", kind, trained, *options, "--out", file)[0] == 0
        assert words <= {*figure_text(file)}


def test_mistakes_have_names(pictures: Path, trained: Path) -> None:
    from gridlstm.experiments.images import IMAGES
    from gridlstm.experiments.record import EvalOptions
    from gridlstm.experiments.trained import options_of

    problem = ImageProblem(options_of(RunDir(trained), IMAGES), None)

    class AlwaysSky(torch.nn.Linear):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.eye(3)[torch.full((len(images),), 2)]

    result = problem.test(AlwaysSky(1, 1), None, EvalOptions())
    assert result["wrong"] == len(result["mistakes"]) == 4
    for row in result["mistakes"]:
        assert row["class"] == "sky"
        assert row["file"].startswith(f"{row['label']}/")
        assert (pictures / row["file"]).exists()


def test_samples_are_shown_with_their_names(gridlstm, pictures: Path) -> None:
    code, out, _ = gridlstm("train", "images", "--folder", pictures, *SMALL, "--show", 2)
    lines = out.splitlines()
    assert code == 0
    assert {lines[0], lines[9]} <= {*COLOURS}
    assert len(lines) == 18


def test_the_network_has_the_names(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the pictures."""
    monkeypatch.setattr("gridlstm.experiments.images.problem.read_folder", None)
    network = library.load(trained)
    assert network.class_names == ("grün", "red car", "sky")
    assert (network.channels, network.image_size) == (3, (8, 8))
    save_pretrained(network, tmp_path / "shared")
    shared = from_pretrained(tmp_path / "shared")
    assert shared.class_names == network.class_names
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(shared(images), network(images))


def test_a_run_goes_on_bit_for_bit(gridlstm, trained: Path, pictures: Path, tmp_path: Path) -> None:
    options = ("train", "images", "--folder", pictures, *SMALL, "--out", tmp_path / "run")
    assert gridlstm(*options, "--samples", 1000)[0] == 0
    assert gridlstm(*options, "--resume")[0] == 0
    assert RunDir(tmp_path / "run").model.read_bytes() == RunDir(trained).model.read_bytes()


def test_other_pictures_are_refused(gridlstm, trained: Path, pictures: Path) -> None:
    extra = pictures / "sky" / "extra.png"
    draw(extra, COLOURS["sky"], 1)
    try:
        for command in (
            ("eval", trained),
            ("train", "images", "--folder", pictures, *SMALL, "--out", trained, "--resume"),
        ):
            code, _, err = gridlstm(*command)
            assert code == 2
            assert "images" in err
            assert "data" in err
    finally:
        extra.unlink()


@pytest.mark.parametrize("network", ["tied-relu-grid", "multidimensional", "renet", "convolutional"])
def test_every_network_takes_them(pictures: Path, network: str) -> None:
    options = ImageOptions(
        folder=str(pictures), pixels=9, patch=4, shift=1, network=network, layers=1, hidden=2, relu=2
    )
    problem = ImageProblem(options, None)
    made = problem.network()
    assert made.class_names == ("grün", "red car", "sky")
    assert problem.loss(made, 0, 5).isfinite()
    assert 0 <= problem.evaluate(made, 0)["error"] <= 1
    assert list(problem.demonstrate(made))[-1].startswith("recognised as ")


def test_names_of_classes_are_checked() -> None:
    for names, error in (
        (["a"], ValueError),
        (["a", "a"], ValueError),
        ("ab", TypeError),
        ([1, 2], TypeError),
    ):
        with pytest.raises(error, match="class_names: expected"):
            ImageGridLSTM(4, 2, 1, num_classes=2, class_names=names)
    assert ImageGridLSTM(4, 2, 1).class_names is None
    assert "names" not in ImageGridLSTM(4, 2, 1).state_dict()


def test_damaged_names_are_refused(trained: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    from gridlstm.training.rundir import RunError

    for content in (b"[1]", b"{", b"\xff"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(trained, tmp_path / "run")
        summary = tmp_path / "run" / "summary.json"
        rest = {k: v for k, v in json.loads(summary.read_text()).items() if k != "model"}
        summary.write_text(json.dumps(rest))
        weights = load_file(tmp_path / "run" / "model.safetensors")
        weights["names"] = torch.tensor(list(content), dtype=torch.uint8)
        save_file(weights, tmp_path / "run" / "model.safetensors")
        with pytest.raises(RunError, match="names: "):
            library.load(tmp_path / "run")
