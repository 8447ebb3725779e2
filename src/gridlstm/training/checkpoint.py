"""Checkpoints: tensors in safetensors, the rest in JSON, written whole or not at all.

A checkpoint is a folder ``step-N`` with ``tensors.safetensors`` and ``state.json``. It is written under
another name, forced to the disk and renamed. ``state.json`` holds the checksum of the tensors, so a
truncated or damaged checkpoint is recognised and the one before it is used. Nothing is unpickled.
"""

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

__all__ = ["Checkpoint", "CheckpointError", "load_newest", "save"]

KEPT = 2
FORMAT = "gridlstm checkpoint 1"
_log = logging.getLogger("gridlstm")
_NAME = re.compile(r"step-(\d+)")


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or read, and why."""


class Checkpoint(NamedTuple):
    """What a run needs to go on: tensors by name, and anything else as JSON."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint and drops those before the last two.

    Raises:
        CheckpointError: if it cannot be written. Earlier ones are as they were.
    """
    target = folder / f"step-{checkpoint.step}"
    beside = folder / f".{target.name}.{os.getpid()}"
    try:
        for unfinished in folder.glob(".step-*"):  # Of a process that was killed.
            shutil.rmtree(unfinished)
        beside.mkdir(parents=True)
        path = beside / "tensors.safetensors"
        # Contiguous copies: safetensors refuses views that share memory.
        save_file(
            {name: t.detach().cpu().clone().contiguous() for name, t in checkpoint.tensors.items()},
            path,
        )
        described = {
            "format": FORMAT,
            "step": checkpoint.step,
            "sha256": _sha256(path),
            "state": checkpoint.state,
        }
        (beside / "state.json").write_text(json.dumps(described, indent=1))
        for written in (path, beside / "state.json", beside):
            _force(written)
        if target.exists():  # The same step again, after a resume: replace it.
            shutil.rmtree(target)
        beside.rename(target)
        _force(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise CheckpointError(f"cannot write checkpoint {target}: {error}") from error
    for old in _found(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; ``None`` where there is none at all.

    Raises:
        CheckpointError: if there are checkpoints, but none that can be used.
    """
    found = _found(folder)
    for path in found:
        try:
            return _load(path)
        except CheckpointError as error:  # noqa: PERF203, there are two of them
            _log.warning("%s; trying the one before", error)
    if found:
        raise CheckpointError(f"no usable checkpoint in {folder}: {len(found)} damaged")
    return None


def _load(path: Path) -> Checkpoint:
    try:
        described = json.loads((path / "state.json").read_text())
        if not isinstance(described, Mapping) or described.get("format") != FORMAT:
            raise CheckpointError(f"{path}: expected a {FORMAT!r}, got something else")
        if _sha256(path / "tensors.safetensors") != described["sha256"]:
            raise CheckpointError(f"{path}: its tensors are not those that were saved (checksum)")
        tensors = load_file(path / "tensors.safetensors")
        return Checkpoint(int(described["step"]), tensors, dict(described["state"]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"{path}: damaged ({error})") from error


def _found(folder: Path) -> list[Path]:
    """Checkpoints, the newest first. What was never finished has another name."""
    if not folder.is_dir():
        return []
    named = [
        (int(match[1]), path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))
    ]
    return [path for _, path in sorted(named, reverse=True)]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest()


def _force(path: Path) -> None:
    """To the disk, so that a power cut after the rename finds the contents there."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
