"""Reads pictures, which may come from anywhere, and converts those of digits to images like MNIST's.

MNIST has light strokes on black. A digit fits into a box of 20 × 20 pixels, with its proportions kept,
and is placed in 28 × 28 pixels so that its centre of mass is in the middle.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from gridlstm.data.locate import DataError, open_file

__all__ = ["read_picture", "read_square", "to_digit"]

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Pixels = TypeVar("Pixels", Bytes, Floats)

SIDE, BOX = 28, 20
PIXELS = 50_000_000
"""The largest number of pixels of a picture: enough for a scan of a sheet."""
LARGEST = 200
"""Pictures with a longer side than this are scaled down first, which removes noise."""
SHADE = 0.2
"""Border pixels that differ more than this from most of the border belong to strokes."""
SHEET = 0.7
"""An opaque area that fills more than this share of its box is a sheet, not strokes."""
BLANK, FAINT = 1 / 16, 1 / 64
"""The least difference from the background of the strongest pixel, and of each pixel of a stroke."""


def read_picture(path: Path) -> Floats:
    """Reads the brightness of a picture, ``[height, width]``, from 0 to 1.

    All formats that Pillow reads are supported except EPS and FITS. The orientation stored by a camera
    is applied; of an animation, the first frame is read. Transparent parts get the background of the
    opaque parts or, if these are strokes, a colour that contrasts with them.

    Raises:
        DataError: if the path is not a file, or the picture is damaged or too large.
    """
    return _read(path, LARGEST, _brightness)


def read_square(path: Path, side: int, *, colour: bool = False) -> Bytes:
    """Reads the largest square in the middle of a picture, resized.

    Formats and orientation are as in :func:`read_picture`. Transparent parts are white.

    Args:
        path: the picture.
        side: height and width of the result.
        colour: whether to keep colours; shades of grey otherwise.

    Returns:
        ``[side, side]``, from 0 to 255; ``[3, side, side]`` in colour: red, green and blue.

    Raises:
        DataError: if the path is not a file, or the picture is damaged or too large.
    """
    return _read(path, 2 * side, lambda picture: _square(picture, side, "RGB" if colour else "L"))


def _read(path: Path, least: int, convert: Callable[[Image.Image], Pixels]) -> Pixels:
    """The pixels of a picture. A JPEG may be decoded at a reduced size, not below ``least`` pixels."""
    with open_file(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # About damaged EXIF data.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(file) as picture:
                return convert(_upright(picture, least))
        except UnidentifiedImageError:
            reason = "not in a format that can be read"
        except Exception as error:  # For damaged files, Pillow may raise anything.
            reason = str(error) or type(error).__name__
    raise DataError(f"{path}: expected a picture, got something else ({' '.join(reason.split())})")


def to_digit(brightness: Floats, name: str = "picture") -> Bytes:
    """Converts a picture to an image like those of MNIST, ``[28, 28]``.

    The background is estimated from the border, and may be darker towards one side. Strokes are either
    darker or lighter than the background, whichever differs more.

    Args:
        brightness: ``[height, width]``, of any size.
        name: the name of the picture in error messages.

    Raises:
        DataError: if the picture is blank.
    """
    ground, noise = _ground(brightness)
    ink = brightness - ground
    if -ink.min() > ink.max():
        ink = -ink
    if ink.max() < max(BLANK, 3 * noise):
        raise DataError(f"{name}: expected a digit, got a blank picture")
    stroke = ink > max(FAINT, 3 * noise)
    least = min(noise, float(ink.max()) / 2)
    ink = np.clip((ink - least) / (ink.max() - least), 0, 1)
    return _centred(_fitted(ink[_box(stroke)]))


def _upright(picture: Image.Image, least: int) -> Image.Image:
    """A picture with the orientation stored by a camera, once its format and size are accepted."""
    if picture.format in ("EPS", "FITS"):  # EPS is a program; FITS may unpack to any size.
        raise ValueError(f"not in a format that can be read: {picture.format}")
    picture.draft(None, (least, least))  # Decodes a JPEG at reduced size.
    if picture.width * picture.height > PIXELS:
        raise ValueError(f"{picture.width} × {picture.height} pixels, more than {PIXELS:,}")
    return ImageOps.exif_transpose(picture)


def _has_wide_pixels(picture: Image.Image) -> bool:
    """Whether a conversion to bytes would clip values."""
    return picture.mode == "F" or picture.mode.startswith("I")


def _shades(picture: Image.Image, values: Floats) -> Floats:
    """The values of wide pixels, from 0 to 1."""
    values = np.nan_to_num(values)
    usual = (1.0, 255.0, 65535.0) if picture.mode == "F" else (65535.0,)
    return values / next((white for white in usual if values.max() <= white), values.max())


def _square(picture: Image.Image, side: int, mode: str) -> Bytes:
    if _has_wide_pixels(picture):
        shades = _shades(picture, np.asarray(picture.convert("F"), np.float64))
        picture = Image.fromarray(np.rint(255 * np.clip(shades, 0, 1)).astype(np.uint8))
    elif picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    square = ImageOps.fit(picture.convert(mode), (side, side), Image.Resampling.BILINEAR)
    pixels: Bytes = np.asarray(square)
    return pixels if mode == "L" else np.moveaxis(pixels, -1, 0)


def _brightness(picture: Image.Image) -> Floats:
    if _has_wide_pixels(picture):
        return _shades(picture, _reduced(picture.convert("F")))
    if picture.mode == "LAB":
        picture = picture.getchannel("L")
    if not picture.has_transparency_data:
        return _reduced(picture.convert("L")) / 255
    grey, alpha = np.moveaxis(_reduced(picture.convert("RGBA").convert("LA")) / 255, -1, 0)
    shown: Floats = grey * alpha + _behind(grey, alpha) * (1 - alpha)
    return shown


def _behind(grey: Floats, alpha: Floats) -> float:
    """The shade to put behind a picture that is partly transparent.

    An opaque area with different shades is a sheet with a digit on it, perhaps with round corners: its
    median shade is used. Any other opaque area is the digit: black or white, whichever contrasts.
    """
    opaque = alpha > alpha.max() / 2
    if not opaque.any():
        return 1.0
    shades = np.quantile(grey[opaque], [0.02, 0.5, 0.98])
    if opaque[_box(opaque)].mean() > SHEET and shades[2] - shades[0] > SHADE:
        return float(shades[1])
    return 1.0 if np.average(grey, weights=alpha) < 0.5 else 0.0


def _box(mask: NDArray[np.bool_]) -> tuple[slice, slice]:
    """The bounding box of a mask."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _reduced(picture: Image.Image) -> Floats:
    """The pixels of a picture, scaled down if it is large, ``[height, width, ...]``.

    They must be shades: Pillow does not average pixels of palettes or single bits.
    """
    picture.thumbnail((LARGEST, LARGEST), Image.Resampling.BOX)
    return np.asarray(picture, np.float64)


def _ground(brightness: Floats) -> tuple[Floats, float]:
    """The background, estimated from the border, and its deviation from the border.

    It is a plane through the pixels of the border that are about as bright as most of them, because a
    digit may touch the border.
    """
    y, x = np.indices(brightness.shape)
    height, width = brightness.shape
    outside = (y == 0) | (y == height - 1) | (x == 0) | (x == width - 1)
    # The value of a pixel: an average of two different halves would be like neither.
    middle = np.quantile(brightness[outside], 0.5, method="nearest")
    usual = outside & (np.abs(brightness - middle) < SHADE)
    plane = np.stack([np.ones_like(brightness), y / height, x / width], -1)
    weights = np.linalg.lstsq(plane[usual], brightness[usual], rcond=None)[0]
    ground: Floats = plane @ weights
    return ground, float(np.quantile(np.abs(brightness - ground)[usual], 0.98))


def _fitted(cut: Floats) -> Floats:
    """A digit scaled to the size of the box and to a maximum of 1."""
    height, width = cut.shape
    scale = BOX / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if size != (width, height):
        picture = Image.fromarray(cut.astype(np.float32))
        cut = np.asarray(picture.resize(size, Image.Resampling.BILINEAR), np.float64)
    fitted: Floats = cut / cut.max()
    return fitted


def _centred(digit: Floats) -> Bytes:
    """A digit placed in an image by its centre of mass."""
    image = np.zeros((SIDE, SIDE))
    place = []
    for axis, size in enumerate(digit.shape):
        mass = digit.sum(1 - axis)
        centre = float((mass * np.arange(size)).sum() / mass.sum())
        place.append(min(max(round(SIDE / 2 - centre), 0), SIDE - size))
    top, left = place
    image[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return np.rint(255 * image).astype(np.uint8)
