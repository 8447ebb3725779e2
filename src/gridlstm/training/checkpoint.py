"""Checkpoints: tensors in safetensors, the rest in JSON, written atomically.

A checkpoint is a folder ``step-N`` with ``tensors.safetensors`` and ``state.json``; one that replaces
another of the same step is named ``step-N.1`` and so on, so that nothing is removed before its
replacement is on disk. ``state.json`` holds checksums of the tensors and of itself, and the fingerprint
of the run. A checkpoint that is damaged or belongs to another run is skipped, and the one before it is
used. Nothing is unpickled.
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
from gridlstm.files import atomic_write, checksum, read_json

__all__ = [
    "BEST",
    "CARRIED",
    "NETWORK",
    "Checkpoint",
    "CheckpointError",
    "load_newest",
    "save_checkpoint",
    "select_prefix",
]

STEPS_KEPT = 2
FORMAT = "gridlstm checkpoint 2"
NETWORK, BEST, CARRIED = "network.", "best.", "carried."
"""Prefixes of tensor names: the current network, the best one so far, and the other state that is
carried from one update to the next."""
_log = logging.getLogger("gridlstm")
_NAME = re.compile(r"step-(\d+)(?:\.(\d+))?")


class CheckpointError(ExpectedError):
    """A checkpoint cannot be written or read."""


class Checkpoint(NamedTuple):
    """What is needed to continue a run: tensors by name, and other values as JSON."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


class _Folder(NamedTuple):
    """A folder named like a checkpoint: ``step-N``, or ``step-N.R`` for its R-th replacement."""

    step: int
    replacement: int
    path: Path


def save_checkpoint(folder: Path, checkpoint: Checkpoint, fingerprint: str = "") -> Path:
    """Writes a checkpoint, then removes others of its step and those before the last two steps.

    Args:
        folder: the folder of all checkpoints.
        checkpoint: the checkpoint to write.
        fingerprint: that of the run.

    Returns:
        The folder of the new checkpoint.

    Raises:
        CheckpointError: if it cannot be written. Earlier checkpoints are unchanged.
    """
    step = checkpoint.step
    replaced = [old for old in _list(folder) if old.step == step]
    target = folder / (f"step-{step}.{replaced[0].replacement + 1}" if replaced else f"step-{step}")
    # Contiguous copies: safetensors refuses views that share memory.
    tensors = {n: t.detach().cpu().clone().contiguous() for n, t in checkpoint.tensors.items()}
    try:
        with atomic_write(target, folder=True) as temporary:
            path = temporary / "tensors.safetensors"
            save_file(tensors, path)
            described = {
                "format": FORMAT,
                "origin": fingerprint,
                "step": step,
                "tensors": checksum(path),
                "state": checkpoint.state,
            }
            described["sha256"] = _digest(described)
            (temporary / "state.json").write_text(json.dumps(described, indent=1))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot write checkpoint {target}: {error}", code=1) from error
    # Checkpoints of later steps are damaged: otherwise the run would have continued from them.
    earlier = [old for old in _list(folder) if old.step < step]
    for old in [*replaced, *earlier[STEPS_KEPT - 1 :]]:
        shutil.rmtree(old.path, ignore_errors=True)
    return target


def load_newest(
    folder: Path, fingerprint: str = "", shapes: Mapping[str, torch.Size] | None = None
) -> Checkpoint | None:
    """The newest checkpoint that is intact; ``None`` if there are no checkpoints.

    Args:
        folder: the folder of all checkpoints.
        fingerprint: that of the run, which the checkpoint must have.
        shapes: tensors that the checkpoint must contain, and their shapes.

    Raises:
        CheckpointError: if there are checkpoints, but none can be used.
    """
    candidates = _list(folder)
    for step, _, path in candidates:
        try:
            return _load(path, step, fingerprint, shapes or {})
        except CheckpointError as error:  # noqa: PERF203, there are two of them
            _log.warning("%s; trying the one before", error)
    if candidates:
        raise CheckpointError(
            f"no usable checkpoint in {folder}: {len(candidates)} damaged or of another run"
        )
    return None


def select_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with a prefix, under their names without it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _load(path: Path, step: int, fingerprint: str, shapes: Mapping[str, torch.Size]) -> Checkpoint:
    try:
        described = read_json((path / "state.json").read_text())
        if not isinstance(described, Mapping) or described.get("format") != FORMAT:
            raise CheckpointError(f"{path}: expected a {FORMAT!r}, got something else")
        intact = described["sha256"] == _digest({k: v for k, v in described.items() if k != "sha256"})
        content = (path / "tensors.safetensors").read_bytes()
        if not intact or described["tensors"] != hashlib.sha256(content).hexdigest():
            raise CheckpointError(f"{path}: damaged (its checksum does not match)")
        if (described["origin"], described["step"]) != (fingerprint, step):
            raise CheckpointError(f"{path}: belongs to another run or step")
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


def _list(folder: Path) -> list[_Folder]:
    """All checkpoints, newest first. Unfinished ones have other names."""
    if not folder.is_dir():
        return []
    named = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted(
        (_Folder(int(match[1]), int(match[2] or 0), path) for match, path in named if match),
        reverse=True,
    )


def _digest(described: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
