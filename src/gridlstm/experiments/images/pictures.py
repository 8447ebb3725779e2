"""Pictures of digits from anywhere, made into images as those of MNIST are.

MNIST has light strokes on black. A digit fills a box of 20 × 20 pixels, its proportions kept, and
stands in 28 × 28 pixels so that its centre of mass is in the middle.
"""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from gridlstm.data.locate import DataError, open_file

__all__ = ["read_picture", "to_digit"]

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

SIDE, BOX = 28, 20
PIXELS = 50_000_000
"""Of a picture that is read: more than a scan of a sheet has, and less than would fill the memory."""
LARGEST = 200
"""Pixels of the longer side beyond which a picture is made smaller first, which removes its noise."""
SHADE = 0.2
"""What differs more from most of the border is a stroke that touches it, not paper in the shade."""
SHEET = 0.7
"""An opaque area that fills more of its box is not made of strokes."""
BLANK, FAINT = 1 / 16, 1 / 64
"""A picture has no strokes if nothing differs more from the ground; what differs less is no stroke."""


def read_picture(path: Path) -> Floats:
    """The brightness of a picture, ``[height, width]``, from 0 to 1.

    It is in any format that Pillow reads but for EPS and FITS. The picture stands as its camera says;
    of an animated one it is the first frame. Where it is transparent, it has the ground of its opaque
    parts, or if these are strokes, one that they stand out from.

    Raises:
        DataError: if it is not a file, or not a picture, a damaged or a huge one.
    """
    with open_file(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of damaged notes of a camera.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(file) as picture:
                return _brightness(picture)
        except UnidentifiedImageError:
            reason = "not in a format that can be read"
        except Exception as error:  # Of damaged files, readers of some formats raise anything.
            reason = str(error) or type(error).__name__
    raise DataError(f"{path}: expected a picture, got something else ({' '.join(reason.split())})")


def to_digit(brightness: Floats, name: str = "picture") -> Bytes:
    """A picture as an image of MNIST, ``[28, 28]``.

    What is usual along its border is the ground, which may be in the shade towards one side; strokes
    are what is darker or lighter than that, whichever differs more.

    Args:
        brightness: ``[height, width]``, of any size.
        name: how an error is to call it.

    Raises:
        DataError: if nothing is on it.
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


def _brightness(picture: Image.Image) -> Floats:
    if picture.format in ("EPS", "FITS"):  # A program to be run; packed so that it may fill the memory.
        raise ValueError(f"not in a format that can be read: {picture.format}")
    picture.draft(None, (LARGEST, LARGEST))  # A JPEG is read at a fraction of its size.
    if picture.width * picture.height > PIXELS:
        raise ValueError(f"{picture.width} × {picture.height} pixels, more than {PIXELS:,}")
    picture = ImageOps.exif_transpose(picture)
    if picture.mode == "F" or picture.mode.startswith("I"):  # A conversion to bytes would clip it.
        shades = np.nan_to_num(_reduced(picture.convert("F")))
        usual = (1.0, 255.0, 65535.0) if picture.mode == "F" else (65535.0,)
        return shades / next((white for white in usual if shades.max() <= white), shades.max())
    if picture.mode == "LAB":
        picture = picture.getchannel("L")
    if not picture.has_transparency_data:
        return _reduced(picture.convert("L")) / 255
    grey, alpha = np.moveaxis(_reduced(picture.convert("RGBA").convert("LA")) / 255, -1, 0)
    shown: Floats = grey * alpha + _behind(grey, alpha) * (1 - alpha)
    return shown


def _behind(grey: Floats, alpha: Floats) -> float:
    """What to put behind a picture that is transparent in places.

    An opaque area in different shades is a sheet with a digit on it, of which the corners may be cut
    off: its usual shade goes on. Anything else is the digit: what it stands out from.
    """
    opaque = alpha > alpha.max() / 2
    if not opaque.any():
        return 1.0
    shades = np.quantile(grey[opaque], [0.02, 0.5, 0.98])
    if opaque[_box(opaque)].mean() > SHEET and shades[2] - shades[0] > SHADE:
        return float(shades[1])
    return 1.0 if np.average(grey, weights=alpha) < 0.5 else 0.0


def _box(mask: NDArray[np.bool_]) -> tuple[slice, slice]:
    """The rows and columns in which something is."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _reduced(picture: Image.Image) -> Floats:
    """A picture that is not too large, ``[height, width, ...]``.

    Its pixels must be shades: of palettes and single bits, Pillow would only keep some pixels.
    """
    picture.thumbnail((LARGEST, LARGEST), Image.Resampling.BOX)
    return np.asarray(picture, np.float64)


def _ground(brightness: Floats) -> tuple[Floats, float]:
    """What the border says of the ground everywhere, and by how much that differs from the border.

    It is a plane through those pixels of the border that are about as bright as most of them: a digit
    may touch it.
    """
    y, x = np.indices(brightness.shape)
    height, width = brightness.shape
    outside = (y == 0) | (y == height - 1) | (x == 0) | (x == width - 1)
    # One of the pixels: between two halves of a border there may be none.
    middle = np.quantile(brightness[outside], 0.5, method="nearest")
    usual = outside & (np.abs(brightness - middle) < SHADE)
    plane = np.stack([np.ones_like(brightness), y / height, x / width], -1)
    weights = np.linalg.lstsq(plane[usual], brightness[usual], rcond=None)[0]
    ground: Floats = plane @ weights
    return ground, float(np.quantile(np.abs(brightness - ground)[usual], 0.98))


def _fitted(cut: Floats) -> Floats:
    """A digit whose longer side has the pixels of the box, its darkest stroke as dark as can be."""
    height, width = cut.shape
    scale = BOX / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if size != (width, height):
        picture = Image.fromarray(cut.astype(np.float32))
        cut = np.asarray(picture.resize(size, Image.Resampling.BILINEAR), np.float64)
    fitted: Floats = cut / cut.max()
    return fitted


def _centred(digit: Floats) -> Bytes:
    """A digit in the middle of an image, by its centre of mass."""
    image = np.zeros((SIDE, SIDE))
    place = []
    for axis, size in enumerate(digit.shape):
        mass = digit.sum(1 - axis)
        centre = float((mass * np.arange(size)).sum() / mass.sum())
        place.append(min(max(round(SIDE / 2 - centre), 0), SIDE - size))
    top, left = place
    image[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return np.rint(255 * image).astype(np.uint8)
