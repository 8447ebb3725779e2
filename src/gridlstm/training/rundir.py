"""A run's directory, which explains itself.

``config.json`` says what was asked for, ``sessions.json`` on which machine, with which versions and
commit, ``metrics.jsonl`` how it went, ``summary.json`` how it ended; ``checkpoints/`` has what is
needed to go on, ``best.safetensors`` the best weights so far where they are kept,
``model.safetensors`` the best or else the last weights of a run that has ended.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridlstm.errors import ExpectedError
from gridlstm.provenance import environment, write_json, write_text

__all__ = ["RunDir", "RunError"]

FORMAT = "gridlstm run 1"
FREE = ("minutes", "checkpoint_minutes", "samples")
"""Options that a run may be resumed with other values of: they say only when to stop or to save."""


class RunError(ExpectedError):
    """A directory that cannot be used as asked, and why."""


class RunDir:
    """The files of a run.

    Args:
        path: its directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.best = path / "best.safetensors"
        self.model = path / "model.safetensors"

    @classmethod
    def open(cls, path: Path) -> "RunDir":
        """A run that there is.

        Raises:
            RunError: if there is none.
        """
        run = cls(path)
        run.config()
        return run

    @classmethod
    def start(cls, path: Path, config: Mapping[str, Any], *, resume: bool) -> "RunDir":
        """A new run, or with ``resume`` one that there is.

        Args:
            path: its directory.
            config: the experiment's name and its ``options``.
            resume: go on with the run, if there is one.

        Raises:
            RunError: if there is a run and it is not to be resumed, or with other options; if there is
                something else; or if nothing can be written.
        """
        run = cls(path)
        described = json.loads(json.dumps({"format": FORMAT, **config}))
        if (path / "config.json").exists():
            if not resume:
                raise RunError(f"{path}: there is a run; --resume goes on with it, --out names another")
            _check_same(path, run.config(), described)
        elif path.exists() and not (path.is_dir() and _is_empty(path)):
            raise RunError(f"{path}: expected a run or nothing, got something else")
        run._write("config.json", described)
        return run

    def config(self) -> dict[str, Any]:
        """What was asked for."""
        found = self.noted("config.json")
        if found is None:
            raise RunError(f"{self.path}: expected a run, got a place without config.json")
        kinds = {"format": str, "experiment": str, "options": dict}
        if found.get("format") != FORMAT or not all(
            isinstance(found.get(name), kind) for name, kind in kinds.items()
        ):
            raise RunError(f"{self.path / 'config.json'}: expected a {FORMAT!r}, got something else")
        return found

    def origin(self) -> str:
        """What tells the run from others: a hash of the options that cannot change."""
        config = self.config()
        kept = {name: value for name, value in config["options"].items() if name not in FREE}
        described = json.dumps([config["experiment"], kept], sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()

    def begin(self, step: int, **details: object) -> None:
        """Notes a session, and drops what belongs to steps that are yet to come again, or to an end.

        Raises:
            RunError: if the run has ended, but what it could be resumed from is gone.
        """
        if step == 0 and self.model.exists():
            raise RunError(f"{self.path}: expected a checkpoint to resume from, got only an ended run")
        rows = [row for row in self.metrics() if row["step"] <= step]
        self._write("metrics.jsonl", rows, lines=True)
        sessions = self.sessions()
        self._write("sessions.json", [*sessions, {"step": step, **details, **environment()}])
        stale = [self.model, self.path / "summary.json", self.path / "evaluation.json"]
        for path in [*stale, self.best] if step == 0 else stale:
            path.unlink(missing_ok=True)

    def sessions(self) -> list[dict[str, Any]]:
        """Machine, versions and commit of every session."""
        found = self._load("sessions.json")
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(session, dict) for session in found):
            raise RunError(f"{self.path / 'sessions.json'}: expected a list of sessions")
        return found

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of all evaluations. A line that a killed process left unfinished is none."""
        rows = self._load("metrics.jsonl", lines=True) or []
        for row in rows:
            if not isinstance(row, dict) or "step" not in row or not all(map(_is_number, row.values())):
                raise RunError(
                    f"{self.path / 'metrics.jsonl'}: expected numbers by name, a step among them"
                )
        return list(rows)

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a row to the metrics."""
        try:
            with (self.path / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(f"cannot write {self.path / 'metrics.jsonl'}: {error}") from error

    def summary(self) -> dict[str, Any] | None:
        """How the last session ended; ``None`` if it has not, or was killed."""
        return self.noted("summary.json")

    def noted(self, name: str) -> dict[str, Any] | None:
        """A further file of the run; ``None`` if there is none."""
        found = self._load(name)
        if found is None or isinstance(found, dict):
            return found
        raise RunError(f"{self.path / name}: expected an object, got something else")

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Notes how a session ended."""
        self._write("summary.json", summary)

    def note(self, name: str, content: object) -> None:
        """Writes a further file of the run."""
        self._write(name, content)

    def _load(self, name: str, *, lines: bool = False) -> Any:
        """What JSON is in a file, or in each of its whole lines; ``None`` if there is no file."""
        try:
            text = (self.path / name).read_text()
            if not lines:
                return json.loads(text)
            return [json.loads(line) for line in text.split("\n")[:-1]]
        except FileNotFoundError:
            return None
        except RecursionError:
            raise RunError(f"{self.path / name}: nested too deeply") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path / name}: {error}") from error

    def _write(self, name: str, content: Any, *, lines: bool = False) -> None:
        path = self.path / name
        try:
            if lines:
                write_text(path, "".join(json.dumps(row) + "\n" for row in content))
            else:
                write_json(path, content)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error}") from error


def _is_number(value: object) -> bool:
    """Whether it can be computed with; no integer of ours is larger than what floats can tell apart."""
    return type(value) is float or (type(value) is int and abs(value) <= 2**53)


def _is_empty(path: Path) -> bool:
    """Whether there is nothing but what a start that was killed may have left."""
    return all(found.name.startswith(".config.json.") for found in path.iterdir())


def _check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    if old["experiment"] != new["experiment"]:
        raise RunError(f"{path}: expected a run of {new['experiment']}, got one of {old['experiment']}")
    before, now = old["options"], new["options"]
    free = [name for name in FREE if name != "samples" or now.get("schedule") == "constant"]
    other = [
        f"{name} was {before.get(name)}, now {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if name not in free and before.get(name) != now.get(name)
    ]
    if other:
        raise RunError(f"{path}: cannot be resumed with other options: {'; '.join(other)}")
    known = old.get("data")
    known = known if isinstance(known, dict) else {}
    data = [name for name, sha in new.get("data", {}).items() if known.get(name) != sha]
    if data:
        raise RunError(f"{path}: cannot be resumed with other data: {', '.join(data)}")
