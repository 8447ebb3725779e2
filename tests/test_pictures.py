"""Pictures of digits from anywhere: their polarity, size and place, and files that are none."""

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from gridlstm.data.locate import DataError
from gridlstm.experiments.images.data import ImageSet, shift
from gridlstm.experiments.images.pictures import read_picture, to_digit

DIGITS = ImageSet.sample().test.images


def alike(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of two images, one of them moved by at most one pixel: centres are rounded."""
    every = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    moved = shift(np.repeat(a[None], 9, 0), np.array(every), 1).reshape(9, -1)
    return float(np.corrcoef(moved, b.reshape(1, -1))[-1, :-1].max())


def enlarged(image: np.ndarray, side: int = 112) -> np.ndarray:
    """An image of MNIST as a large one, from 0 to 1."""
    large = Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(large) / 255


def save(path: Path, brightness: np.ndarray, **options: object) -> Path:
    picture = Image.fromarray(np.rint(255 * brightness.clip(0, 1)).astype(np.uint8))
    picture.save(path, **options)  # type: ignore[arg-type]
    return path


def test_images_of_mnist_stay_as_they_are() -> None:
    made = [to_digit(image / 255) for image in DIGITS]
    exact = [np.abs(a.astype(int) - b).max() <= 1 for a, b in zip(made, DIGITS, strict=True)]
    assert np.mean(exact) > 0.9  # Others have a row or column of faint pixels, which is cut off.
    assert min(alike(a, b) for a, b in zip(made, DIGITS, strict=True)) > 0.85


@settings(max_examples=25, deadline=None)
@given(
    number=st.integers(0, 99),
    place=st.tuples(st.integers(0, 100), st.integers(0, 150)),
    light=st.booleans(),
    contrast=st.floats(0.3, 0.8),
    ground=st.floats(0.1, 0.9),
)
def test_polarity_size_and_place_do_not_matter(
    number: int, place: tuple[int, int], light: bool, contrast: float, ground: float
) -> None:
    """A large digit anywhere on a ground of any grey, darker or lighter than that."""
    ground = min(ground, 1 - contrast) if light else max(ground, contrast)
    canvas = np.full((212, 262), ground)
    top, left = place
    ink = enlarged(DIGITS[number]) * (contrast if light else -contrast)
    canvas[top : top + 112, left : left + 112] += ink
    assert alike(to_digit(canvas), DIGITS[number]) > 0.8


def test_a_photograph_of_paper(tmp_path: Path) -> None:
    """Ink in colour on paper in the shade, with noise, as JPEG."""
    random = np.random.default_rng(0)
    for number, image in enumerate(DIGITS[:20]):
        paper = np.full((500, 400, 3), [0.95, 0.93, 0.85])
        paper[100:324, 60:284] *= 1 - enlarged(image, 224)[..., None] * np.array([0.9, 0.8, 0.4])
        paper *= np.linspace(1, 0.8, 500)[:, None, None]
        paper += random.normal(0, 0.02, paper.shape)
        path = save(tmp_path / f"{number}.jpg", paper, quality=70)
        assert alike(to_digit(read_picture(path)), image) > 0.85


def test_a_digit_that_touches_the_border() -> None:
    image = enlarged(DIGITS[0])
    rows, columns = (np.flatnonzero((image > 0.1).any(axis)) for axis in (1, 0))
    cut = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert alike(to_digit(1 - cut), DIGITS[0]) > 0.9


def test_a_border_of_two_halves() -> None:
    """As many dark pixels as light ones, and nothing in between: either may be the ground."""
    halves = np.zeros((40, 40))
    halves[:, 20:] = 1
    for brightness in (halves, 1 - halves, halves.T, np.array([[0.0, 1.0]])):
        digit = to_digit(brightness)
        assert digit.shape == (28, 28)
        assert digit.max() == 255


def test_the_smallest_pictures() -> None:
    for shape in ((1, 1), (1, 2), (2, 1), (2, 2), (1, 9)):
        with pytest.raises(DataError, match="got a blank picture"):
            to_digit(np.full(shape, 0.3))


def test_the_box_and_the_centre_are_those_of_mnist() -> None:
    """A tall bar: 20 pixels high, its proportions kept, its centre of mass in the middle."""
    canvas = np.zeros((300, 300))
    canvas[10:110, 200:230] = 1
    digit = to_digit(canvas)
    y, x = np.nonzero(digit > 128)
    assert (y.max() - y.min() + 1, x.max() - x.min() + 1) == (20, 6)
    assert abs(y.mean() - 14) <= 0.5
    assert abs(x.mean() - 14) <= 0.5
    assert digit.max() == 255


@pytest.mark.parametrize("ink", [0, 255])
def test_transparent_pictures(tmp_path: Path, ink: int) -> None:
    """Black strokes and white ones: neither vanishes in the ground."""
    alpha = np.rint(255 * enlarged(DIGITS[3]).clip(0, 1)).astype(np.uint8)
    layers = np.stack([np.full_like(alpha, ink)] * 3 + [alpha], -1)
    Image.fromarray(layers).save(tmp_path / "a.png")
    assert alike(to_digit(read_picture(tmp_path / "a.png")), DIGITS[3]) > 0.9
    Image.fromarray(layers).quantize(64).save(tmp_path / "p.png")
    assert alike(to_digit(read_picture(tmp_path / "p.png")), DIGITS[3]) > 0.85


@pytest.mark.parametrize("light", [False, True])
def test_a_sheet_with_transparent_surroundings(tmp_path: Path, light: bool) -> None:
    """Round corners and a transparent margin, as screenshots of windows have: the digit is found."""
    for number, image in enumerate(DIGITS[:20]):
        grey = np.rint(255 * enlarged(image, 160).clip(0, 1)).astype(np.uint8)
        sheet = Image.fromarray(grey if light else 255 - grey)
        corners = Image.new("L", (160, 160), 0)
        ImageDraw.Draw(corners).rounded_rectangle((0, 0, 159, 159), 16, fill=255)
        for margin in (0, 40):
            side = 160 + 2 * margin
            picture = Image.new("LA", (side, side), (0, 0))
            picture.paste(Image.merge("LA", (sheet, corners)), (margin, margin))
            picture.save(tmp_path / "window.png")
            assert alike(to_digit(read_picture(tmp_path / "window.png")), image) > 0.8, (number, margin)


def test_nothing_but_transparency(tmp_path: Path) -> None:
    Image.new("RGBA", (50, 50), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    with pytest.raises(DataError, match="got a blank picture"):
        to_digit(read_picture(tmp_path / "clear.png"))


@pytest.mark.parametrize("side", [100, 300, 1500])
def test_sixteen_bits_are_not_clipped(tmp_path: Path, side: int) -> None:
    deep = np.rint(20_000 + 40_000 * enlarged(DIGITS[5], side).clip(0, 1)).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    brightness = read_picture(tmp_path / "deep.png")
    assert brightness.max() == pytest.approx(60_000 / 65_535, abs=0.02)
    assert alike(to_digit(brightness), DIGITS[5]) > 0.9


def test_a_picture_stands_as_its_camera_says(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # To be turned clockwise.
    turned = np.rot90(enlarged(DIGITS[7]))
    path = save(tmp_path / "turned.jpg", turned, exif=exif.tobytes())
    assert alike(to_digit(read_picture(path)), DIGITS[7]) > 0.9


def test_damaged_notes_of_a_camera_are_left_out(tmp_path: Path) -> None:
    """The picture is whole, and nothing is told on the way."""
    exif = Image.Exif()
    exif[0x010F] = "who made the camera"
    path = save(tmp_path / "noted.jpg", enlarged(DIGITS[7]), exif=exif.tobytes())
    content = path.read_bytes()
    place = content.index(struct.pack(">HHI", 0x010F, 2, 20)) + 8
    path.write_bytes(content[:place] + b"\xff\xff" + content[place + 2 :])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert alike(to_digit(read_picture(path)), DIGITS[7]) > 0.9


def test_black_and_white_pictures(tmp_path: Path) -> None:
    Image.fromarray(DIGITS[8] < 128).save(tmp_path / "bits.png")
    assert alike(to_digit(read_picture(tmp_path / "bits.png")), DIGITS[8]) > 0.85


@pytest.mark.parametrize("mode", ["1", "P", "L", "RGB", "LA", "RGBA"])
def test_thin_strokes_of_a_large_picture_are_kept(tmp_path: Path, mode: str) -> None:
    """A scan of a circle, 3 of 2000 pixels wide: smaller, it is grey, but has no gaps."""
    picture = Image.new("L", (2000, 2000), 255)
    ImageDraw.Draw(picture).ellipse((400, 300, 1500, 1700), outline=0, width=3)
    picture.convert(mode).save(tmp_path / "scan.png")
    scan = read_picture(tmp_path / "scan.png")
    assert max(scan.shape) == 200
    strokes = scan[30:171, 40:151] < 0.95
    assert strokes.any(0).all()
    assert strokes.any(1).all()


def test_a_large_photograph_is_read_at_a_fraction_of_its_size(tmp_path: Path) -> None:
    """Turned as its camera says, as a small one is."""
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = np.rot90(enlarged(DIGITS[7], 3000))
    path = save(tmp_path / "turned.jpg", turned, exif=exif.tobytes())
    assert alike(to_digit(read_picture(path)), DIGITS[7]) > 0.9


def test_a_blank_picture() -> None:
    for grey in (0.0, 0.5, 1.0):
        with pytest.raises(DataError, match=r"^sheet\.png: expected a digit, got a blank picture$"):
            to_digit(np.full((50, 60), grey), "sheet.png")
    noise = np.random.default_rng(0).normal(0.5, 0.05, (200, 150))
    with pytest.raises(DataError, match="got a blank picture"):
        to_digit(noise)


def bomb(side: int) -> bytes:
    """A small PNG file that says it is large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_files_that_are_not_pictures(tmp_path: Path) -> None:
    packed = io.BytesIO()
    Image.fromarray(DIGITS[0]).save(packed, "PNG")
    whole = packed.getvalue()
    broken = bytearray(whole)
    broken[45] ^= 0xFF  # In the data: the checksum is wrong.
    eps = io.BytesIO()
    Image.fromarray(DIGITS[0]).save(eps, "EPS")
    contents = {
        "empty": b"",
        "text": b"not a picture",
        "truncated": whole[: len(whole) // 2],
        "broken": bytes(broken),
        "program": eps.getvalue(),
        "large": bomb(7_500),
        "quite large": bomb(12_000),
        "larger": bomb(40_000),
    }
    for name, content in contents.items():
        path = tmp_path / f"{name}.png"
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DataError, match=f"{name}.png: expected a picture") as caught:
                read_picture(path)
        assert "\n" not in str(caught.value)


def in_all_modes(shades: np.ndarray) -> Iterator[Image.Image]:
    """A picture as Pillow may hold it."""
    picture = Image.fromarray(np.rint(255 * shades.clip(0, 1)).astype(np.uint8))
    yield from (picture.convert(mode) for mode in ("1", "L", "P", "RGB", "LA", "RGBA", "CMYK"))
    yield Image.merge("LAB", [picture, *[Image.new("L", picture.size, 128)] * 2])
    deep = np.rint(65_535 * shades.clip(0, 1))
    yield from (Image.fromarray(deep.astype(kind)) for kind in (np.uint16, np.int32))
    yield Image.fromarray(shades.astype(np.float32))


FORMATS = [
    *("AVIF", "BMP", "DDS", "GIF", "ICO", "JPEG", "JPEG2000", "PCX", "PNG", "PPM", "QOI", "SGI"),
    *("SPIDER", "TGA", "TIFF", "WEBP"),
]


@pytest.mark.parametrize("kind", FORMATS)
def test_all_that_pillow_reads(kind: str, tmp_path: Path) -> None:
    """In all the ways in which it can write them."""
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow does not write {kind}")
    read = 0
    for picture in in_all_modes(1 - enlarged(DIGITS[3])):
        if kind in ("AVIF", "GIF", "WEBP") and picture.mode in ("I;16", "I", "F"):
            continue  # Pillow clips these when it writes them.
        try:
            picture.save(tmp_path / "picture", kind)
        except (OSError, ValueError, KeyError):  # There is no such picture in this format.
            continue
        assert alike(to_digit(read_picture(tmp_path / "picture")), DIGITS[3]) > 0.8, picture.mode
        read += 1
    assert read > 1


@pytest.mark.parametrize("white", [1, 255, 65_535, 1e6])
def test_shades_of_any_range(white: float, tmp_path: Path) -> None:
    shades = ((1 - enlarged(DIGITS[3])) * white).astype(np.float32)
    shades[shades == shades.min()] = np.nan  # Counts as black.
    Image.fromarray(shades).save(tmp_path / "float.tiff")
    brightness = read_picture(tmp_path / "float.tiff")
    assert 0.9 < brightness.max() <= 1.1
    assert alike(to_digit(brightness), DIGITS[3]) > 0.85


@pytest.mark.parametrize("kind", ["GIF", "PNG", "TIFF", "WEBP"])
def test_the_first_frame_of_an_animation(kind: str, tmp_path: Path) -> None:
    first, second = (
        Image.fromarray(np.rint(255 * enlarged(DIGITS[n]).clip(0, 1)).astype(np.uint8)) for n in (3, 60)
    )
    first.save(tmp_path / "moving", kind, save_all=True, append_images=[second])
    assert alike(to_digit(read_picture(tmp_path / "moving")), DIGITS[3]) > 0.8
