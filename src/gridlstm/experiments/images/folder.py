"""Own pictures as images: a folder for each class.

The order of pictures and their split into three parts follow from the names of their files, so they
are the same on every machine and in every session.
"""

import hashlib
from pathlib import Path

import numpy as np

from gridlstm.data.locate import DataError, as_data_error
from gridlstm.experiments.images.data import ImageSet, Labelled
from gridlstm.experiments.images.pictures import read_square
from gridlstm.provenance import memory_bytes

__all__ = ["read_folder"]

VALID = ("valid", "val")
"""Names of the folder of validation pictures."""
HELD_OUT = 10
"""One in this many pictures of a class is for validation, and another one for the test."""
IGNORED = ("thumbs.db", "desktop.ini")
"""Files that file managers leave behind, besides hidden ones."""

ByClass = dict[str, list[Path]]


def read_folder(folder: Path, pixels: int, *, colour: bool) -> ImageSet:
    """Reads all pictures of a folder.

    The folder has a folder of pictures for each class; of each class one picture in ten, at least one,
    is for validation and as many are for the test. Or it has the folders ``train``, ``valid`` (or
    ``val``) and ``test``, each with a folder for each class.

    Args:
        folder: the folder.
        pixels: the side of the images: pictures are cropped to a square and resized.
        colour: whether to keep colours.

    Raises:
        DataError: if it is missing, has another structure, too few classes or pictures, or a file that
            is not a picture.
    """
    with as_data_error(f"{folder}: cannot be read"):
        train, valid, test = _parts(folder)
    names = sorted(train)
    count = sum(len(paths) for part in (train, valid, test) for paths in part.values())
    memory = memory_bytes()
    if memory is not None and count * pixels**2 * (3 if colour else 1) > memory / 2:
        raise DataError(
            f"{folder}: {count:,} pictures of {pixels} × {pixels} pixels do not fit into memory"
        )

    def read(*parts: ByClass) -> Labelled:
        paths = [path for part in parts for path in _mixed(part)]
        images = [read_square(path, pixels, colour=colour) for path in paths]
        labels = [names.index(path.parent.name) for path in paths]
        return Labelled(np.stack(images), np.array(labels, np.int64))

    return ImageSet(
        name=folder.absolute().name,
        retrain=read(train, valid),
        validated=sum(map(len, valid.values())),
        test=read(test),
        class_names=tuple(names),
        test_files=tuple(str(path.relative_to(folder)) for path in _mixed(test)),
    )


def _parts(folder: Path) -> tuple[ByClass, ByClass, ByClass]:
    """The pictures for training, validation and test, by class."""
    if not folder.is_dir():
        raise DataError(f"{folder}: expected a folder with a folder of pictures for each class")
    # A class may be called "train", too: then it has pictures, not folders.
    if not (folder / "train").is_dir() or not any(map(Path.is_dir, (folder / "train").iterdir())):
        return _split(_by_class(folder), folder)
    valid = next((folder / name for name in VALID if (folder / name).is_dir()), None)
    if valid is None or not (folder / "test").is_dir():
        missing = "test" if valid is not None else "valid"
        raise DataError(f"{folder}: expected folders train, valid and test, but there is no {missing}")
    train = _by_class(folder / "train")
    held_out = [_by_class(part, least=1) for part in (valid, folder / "test")]
    unknown = sorted({name for part in held_out for name in part if name not in train})
    if unknown:
        raise DataError(f"{folder}: expected the classes of train, got others: {', '.join(unknown)}")
    return train, held_out[0], held_out[1]


def _by_class(folder: Path, least: int = 2) -> ByClass:
    """The pictures in each folder of a folder, by its name."""
    classes: ByClass = {}
    for path in _visible(folder):
        if not path.is_dir():
            raise DataError(f"{path}: expected a folder of pictures for each class, got a file")
        try:
            path.name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{folder}: expected names in UTF-8, got {path.name!r}") from None
        classes[path.name] = _visible(path)
        if not classes[path.name]:
            raise DataError(f"{path}: expected pictures, got an empty folder")
    if len(classes) < least:
        raise DataError(
            f"{folder}: expected a folder for each of {least} or more classes, got {len(classes)}"
        )
    return classes


def _visible(folder: Path) -> list[Path]:
    paths = sorted(folder.iterdir())
    return [p for p in paths if not p.name.startswith(".") and p.name.lower() not in IGNORED]


def _split(classes: ByClass, folder: Path) -> tuple[ByClass, ByClass, ByClass]:
    train, valid, test = ByClass(), ByClass(), ByClass()
    for name, paths in classes.items():
        if len(paths) < 3:
            raise DataError(
                f"{folder / name}: expected at least 3 pictures, to train, validate and test on, "
                f"got {len(paths)}"
            )
        mixed, count = sorted(paths, key=_shuffled), max(1, len(paths) // HELD_OUT)
        test[name], valid[name], train[name] = (
            mixed[:count],
            mixed[count : 2 * count],
            mixed[2 * count :],
        )
    return train, valid, test


def _mixed(part: ByClass) -> list[Path]:
    """All pictures of a part, the classes mixed."""
    return sorted((path for paths in part.values() for path in paths), key=_shuffled)


def _shuffled(path: Path) -> bytes:
    """The key of an order that looks random and depends on the names of class and file only."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}".encode(errors="surrogateescape")).digest()
