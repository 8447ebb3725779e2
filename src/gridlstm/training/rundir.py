"""A run's directory, which explains itself.

``config.json`` says what was asked for, ``sessions.json`` on which machine, with which versions and
commit, ``metrics.jsonl`` how it went, ``summary.json`` how it ended; ``checkpoints/`` has what is
needed to go on, the best weights so far among it where they are kept, ``model.safetensors`` the best or
else the last weights of a run that has ended.

Nothing is removed before what takes its place is on the disk. A run that has ended and is resumed
keeps its model and its summary until it ends again; :meth:`RunDir.summary` tells whether it has.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from gridlstm.errors import ExpectedError
from gridlstm.files import make_folder, read_json, write_json, write_text
from gridlstm.provenance import environment
from gridlstm.training.identity import continued, origin_of
from gridlstm.training.lock import LOCK, LockedError, locked
from gridlstm.training.records import count, measures, table

__all__ = ["RunDir", "RunError"]

FORMAT = "gridlstm run 1"
WRITTEN = ("config.json", "metrics.jsonl", "sessions.json", "summary.json", "model.safetensors")
"""What only the process that holds the lock writes."""
MEASURED = ("evaluation.json", "ensemble.json")
"""What was found about ``model.safetensors``."""

Read = TypeVar("Read")


class RunError(ExpectedError):
    """A directory that cannot be used as asked, and why."""


class RunDir:
    """The files of a run.

    Args:
        path: its directory.

    Attributes:
        best: where older versions kept the best weights so far.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.best = path / "best.safetensors"
        self.model = path / "model.safetensors"
        self._asked: dict[str, Any] | None = None
        self._overwrite = False

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
    def start(
        cls,
        path: Path,
        config: Mapping[str, Any],
        *,
        resume: bool,
        overwrite: bool = False,
        defaults: Mapping[str, Any] | None = None,
    ) -> "RunDir":
        """A new run, or with ``resume`` one that there is. Nothing is written before :meth:`begin`.

        Args:
            path: its directory.
            config: the experiment's name and its ``options``.
            resume: go on with the run, if there is one.
            overwrite: put the new run in its place, if there is one.
            defaults: those of options, for a run that is older than they are.

        Raises:
            RunError: if there is a run and it is neither to be resumed nor overwritten, or resumed with
                other options; or if there is something else.
        """
        run = cls(path)
        run._check_place()
        asked = json.loads(json.dumps({"format": FORMAT, **config}))
        if (path / "config.json").exists():
            if not resume and not overwrite:
                raise RunError(
                    f"{path}: the run already exists; pass --resume to continue it, --overwrite to "
                    f"replace it, or another --out"
                )
            before = run.config()
            if resume:
                try:
                    asked["options"] = continued(before, asked, defaults or {})
                except ValueError as error:
                    raise RunError(f"{path}: {error}") from None
        run._asked, run._overwrite = asked, overwrite
        return run

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Within it, no other process trains here; what killed processes left is removed.

        Raises:
            RunError: if another one does, if there is something else than a run, or if nothing can be
                written.
        """
        self._check_place()
        with ExitStack() as held:
            try:
                make_folder(self.path)
                held.enter_context(locked(self.path))
            except LockedError as error:
                raise RunError(str(error)) from None
            except OSError as error:
                raise RunError(f"cannot write {self.path}: {error}") from error
            unfinished = (*WRITTEN, "best.safetensors", "checkpoints")
            _remove(*(path for name in unfinished for path in self.path.glob(f".{name}*")))
            _remove(*self.checkpoints.glob(".step-*"))
            yield

    def config(self) -> dict[str, Any]:
        """What was asked for."""
        if self._asked is not None:
            return self._asked
        found = self._read("config.json", _config)
        if found is None:
            raise RunError(f"{self.path}: not a run directory (no config.json)")
        return found

    def origin(self) -> str:
        """What tells the run from others: a hash of the options that cannot change."""
        return origin_of(self.config())

    def begin(self, step: int, **details: object) -> None:
        """Writes what was asked for, notes a session, and drops metrics of steps yet to come again.

        Raises:
            RunError: if the run has ended, but what it could be resumed from is gone; or if something
                cannot be written.
        """
        if self._overwrite:
            self._clear()
        if step == 0 and self.model.exists():
            raise RunError(
                f"{self.path}: cannot be resumed, because the run has ended and its checkpoints are "
                f"gone; pass --overwrite to train anew"
            )
        if self._asked is not None:
            self._write("config.json", self._asked)
            self._asked = None
        rows, sessions = [row for row in self.metrics() if row["step"] <= step], self.sessions()
        self._write("metrics.jsonl", rows, lines=True)
        ended = self._ended()
        if ended is not None and "session" not in ended:  # Of an older version: it was the last one.
            self._write("summary.json", {**ended, "session": len(sessions)})
        self._write("sessions.json", [*sessions, {"step": step, **details, **environment()}])

    def sessions(self) -> list[dict[str, Any]]:
        """Machine, versions and commit of every session."""
        return self._read("sessions.json", _sessions) or []

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of all evaluations. A line that a killed process left unfinished is none."""
        return self._read("metrics.jsonl", _rows) or []

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
        ended, sessions = self._ended(), len(self.sessions())
        return ended if ended is not None and ended.get("session", sessions) == sessions else None

    def finish(self, summary: Mapping[str, Any], model: str) -> None:
        """Notes how a session ended, after its network has been written.

        Args:
            summary: how.
            model: the checksum of ``model.safetensors``.
        """
        before = self._ended()
        if before is None or before.get("model") != model:  # They are about another network.
            _remove(*(self.path / name for name in MEASURED))
        self._write("summary.json", {**summary, "session": len(self.sessions()), "model": model})
        _remove(self.best)

    def note(self, name: str, content: object) -> None:
        """Writes a further file of the run."""
        self._write(name, content)

    def noted(self, name: str) -> dict[str, Any] | None:
        """A further file of the run; ``None`` if there is none."""
        return self._read(name, lambda text: table(read_json(text), name))

    def _ended(self) -> dict[str, Any] | None:
        """How a session ended, be it the last or one before."""
        return self._read("summary.json", _ended)

    def _check_place(self) -> None:
        """Whether there is a run or nothing, but what a start that was killed may have left."""
        path = self.path
        if not path.exists() or (path / "config.json").exists():
            return
        if not path.is_dir() or any(
            found.name != LOCK and not found.name.startswith(".config.json.")
            for found in path.iterdir()
        ):
            raise RunError(f"{path}: not a run directory (no config.json), and not empty")

    def _clear(self) -> None:
        """Removes a run, but for what says that it is one: its config, which is replaced after that.

        Checkpoints first lose their name, because one that is removed in part is a damaged one.
        """
        try:
            if self.checkpoints.exists():
                self.checkpoints.rename(self.path / f".checkpoints.{os.getpid()}")
            _remove(*self.path.glob(".checkpoints.*"), self.path / "tensorboard", self.best)
            _remove(*(self.path / name for name in (*MEASURED, *WRITTEN) if name != "config.json"))
        except OSError as error:
            raise RunError(f"cannot overwrite {self.path}: {error}") from error

    def _read(self, name: str, parse: Callable[[str], Read]) -> Read | None:
        """What a file holds; ``None`` if there is none."""
        try:
            return parse((self.path / name).read_text())
        except FileNotFoundError:
            return None
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


def _config(text: str) -> dict[str, Any]:
    found = table(read_json(text), "config")
    if found.get("format") != FORMAT:
        raise ValueError(f"expected a {FORMAT!r}, got something else")
    for name in ("options", "data"):
        table(found.get(name, {}), name)
    if not isinstance(found.get("experiment"), str) or "options" not in found:
        raise ValueError("expected an experiment and its options")
    return found


def _sessions(text: str) -> list[dict[str, Any]]:
    found = read_json(text)
    if not isinstance(found, list):
        raise ValueError("expected a list of sessions")
    return [table(session, "session") for session in found]


def _rows(text: str) -> list[dict[str, Any]]:
    rows = [measures(read_json(line), "row") for line in text.split("\n")[:-1]]
    for row in rows:
        for name in ("step", "samples"):
            count(row.get(name), name)
    return rows


def _ended(text: str) -> dict[str, Any]:
    found = table(read_json(text), "summary")
    if not isinstance(found.get("reason"), str):
        raise ValueError("expected a reason, got something else")
    return found


def _remove(*paths: Path) -> None:
    """Removes files and folders that there are."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
