"""Checkpoints: tensors in safetensors, the rest in JSON, written whole or not at all.

A checkpoint is a folder ``step-N`` with ``tensors.safetensors`` and ``state.json``; one that replaces
another of the same step is ``step-N.1`` and so on, so that nothing is removed before its successor is
on the disk. ``state.json`` holds checksums of the tensors and of itself, and which run it is of, so a
damaged or foreign checkpoint is recognised and the one before it is used. Nothing is unpickled.
"""

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from gridlstm.errors import ExpectedError
from gridlstm.files import checksum, read_json, replacing

__all__ = ["Checkpoint", "CheckpointError", "load_newest", "save"]

KEPT = 2
FORMAT = "gridlstm checkpoint 2"
_log = logging.getLogger("gridlstm")
_NAME = re.compile(r"step-(\d+)(?:\.(\d+))?")


class CheckpointError(ExpectedError):
    """A checkpoint that cannot be written or read, and why."""


class Checkpoint(NamedTuple):
    """What a run needs to go on: tensors by name, and anything else as JSON."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


class _Found(NamedTuple):
    """A folder that is named like a checkpoint: its step, and how many of that step came before it."""

    step: int
    again: int
    path: Path


def save(folder: Path, checkpoint: Checkpoint, origin: str = "") -> Path:
    """Writes a checkpoint, then drops others of its step and those before the last two steps.

    Args:
        folder: where checkpoints are.
        checkpoint: what to write.
        origin: which run it is of.

    Raises:
        CheckpointError: if it cannot be written. Earlier ones are as they were.
    """
    step = checkpoint.step
    same = [found for found in _find(folder) if found.step == step]
    target = folder / (f"step-{step}.{same[0].again + 1}" if same else f"step-{step}")
    # Contiguous copies: safetensors refuses views that share memory.
    tensors = {n: t.detach().cpu().clone().contiguous() for n, t in checkpoint.tensors.items()}
    try:
        with replacing(target, folder=True) as beside:
            path = beside / "tensors.safetensors"
            save_file(tensors, path)
            described = {
                "format": FORMAT,
                "origin": origin,
                "step": step,
                "tensors": checksum(path),
                "state": checkpoint.state,
            }
            described["sha256"] = _digest(described)
            (beside / "state.json").write_text(json.dumps(described, indent=1))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot write checkpoint {target}: {error}", code=1) from error
    # Those of later steps are damaged, or this one would have begun from them.
    earlier = [found for found in _find(folder) if found.step < step]
    for old in [*same, *earlier[KEPT - 1 :]]:
        shutil.rmtree(old.path, ignore_errors=True)
    return target


def load_newest(
    folder: Path, origin: str = "", shapes: Mapping[str, torch.Size] | None = None
) -> Checkpoint | None:
    """The newest checkpoint that is whole; ``None`` where there is none at all.

    Args:
        folder: where checkpoints are.
        origin: the run it has to be of.
        shapes: those of tensors that it has to have.

    Raises:
        CheckpointError: if there are checkpoints, but none that can be used.
    """
    candidates = _find(folder)
    for step, _, path in candidates:
        try:
            return _load(path, step, origin, shapes or {})
        except CheckpointError as error:  # noqa: PERF203, there are two of them
            _log.warning("%s; trying the one before", error)
    if candidates:
        raise CheckpointError(f"no usable checkpoint in {folder}: {len(candidates)} damaged or foreign")
    return None


def _load(path: Path, step: int, origin: str, shapes: Mapping[str, torch.Size]) -> Checkpoint:
    try:
        described = read_json((path / "state.json").read_text())
        if not isinstance(described, Mapping) or described.get("format") != FORMAT:
            raise CheckpointError(f"{path}: expected a {FORMAT!r}, got something else")
        whole = described["sha256"] == _digest({k: v for k, v in described.items() if k != "sha256"})
        content = (path / "tensors.safetensors").read_bytes()
        if not whole or described["tensors"] != hashlib.sha256(content).hexdigest():
            raise CheckpointError(f"{path}: it is not what was saved (checksum)")
        if (described["origin"], described["step"]) != (origin, step):
            raise CheckpointError(f"{path}: it is of another run or step")
        tensors = load(content)
        state = dict(described["state"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{path}: damaged ({error!r})") from error
    for name, shape in shapes.items():
        if name not in tensors or tensors[name].shape != shape:
            raise CheckpointError(
                f"{path}: expected {name} of shape {list(shape)}, got another network"
            )
    return Checkpoint(step, tensors, state)


def _find(folder: Path) -> list[_Found]:
    """Checkpoints, the newest first. What was never finished has another name."""
    if not folder.is_dir():
        return []
    named = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted(
        (_Found(int(match[1]), int(match[2] or 0), path) for match, path in named if match),
        reverse=True,
    )


def _digest(described: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
