"""The directory of a run.

- ``config.json``: the experiment and its options.
- ``sessions.json``: machine, versions and commit of each session. Each start or resume is a session.
- ``metrics.jsonl``: the measurements, one line per evaluation.
- ``summary.json``: how the run ended.
- ``checkpoints/``: what is needed to continue it, including the best weights where they are kept.
- ``model.safetensors``: the best, or else the last, weights of a run that has ended.
- ``evaluation.json``, ``demonstration.json``: what this network measured on a test, and an example.

Nothing is removed before its replacement is on disk. A run that has ended and is resumed keeps its
model and its summary until it ends again; until then :meth:`RunDir.summary` returns ``None``.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

from gridlstm.errors import ExpectedError
from gridlstm.files import make_folder, read_json, write_json, write_text
from gridlstm.provenance import environment
from gridlstm.training.identity import fingerprint, resumed_options
from gridlstm.training.json_checks import check_object
from gridlstm.training.lock import LOCK_FILE, LockedError, locked
from gridlstm.training.run_files import (
    FORMAT,
    parse_config,
    parse_metrics,
    parse_sessions,
    parse_summary,
)
from gridlstm.training.settings import TrackerName

__all__ = ["DEMONSTRATION", "RunDir", "RunError"]

RUN_FILES = ("config.json", "metrics.jsonl", "sessions.json", "summary.json", "model.safetensors")
"""Files that only the process that holds the lock writes."""
DEMONSTRATION = "demonstration.json"
"""What the network does with samples that it has never seen, as lines."""
RESULTS = ("evaluation.json", "ensemble.json", DEMONSTRATION)
"""Results of evaluating ``model.safetensors``."""

Parsed = TypeVar("Parsed")


class RunError(ExpectedError):
    """A run directory cannot be used as requested."""


class RunDir:
    """The files of a run.

    Args:
        path: the directory.

    Attributes:
        checkpoints: the folder of checkpoints.
        model: the file of the final weights.
        old_best: the file in which older versions kept the best weights so far.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.old_best = path / "best.safetensors"
        self.model = path / "model.safetensors"
        self._new_config: dict[str, Any] | None = None
        self._overwrite = False

    @classmethod
    def open(cls, path: Path) -> "RunDir":
        """Opens an existing run.

        Raises:
            RunError: if there is none.
        """
        run = cls(path)
        run.config()
        return run

    @classmethod
    def prepare(
        cls,
        path: Path,
        config: Mapping[str, Any],
        *,
        resume: bool,
        overwrite: bool = False,
        defaults: Mapping[str, Any] | None = None,
    ) -> "RunDir":
        """Prepares a new run or a resumed one. Writes nothing before :meth:`begin_session`.

        Args:
            path: the directory.
            config: the experiment's name and its ``options``.
            resume: continue the run, if there is one.
            overwrite: replace the run, if there is one.
            defaults: values of options that did not exist when the run was started.

        Raises:
            RunError: if the run exists and neither ``resume`` nor ``overwrite`` is set, if it cannot be
                resumed with these options, or if the directory holds anything but a run.
        """
        run = cls(path)
        run._check_directory()
        new_config = json.loads(json.dumps({"format": FORMAT, **config}))
        if (path / "config.json").exists():
            if not resume and not overwrite:
                raise RunError(
                    f"{path}: the run already exists; pass --resume to continue it, --overwrite to "
                    f"replace it, or another --out"
                )
            old_config = run.config()
            if resume:
                try:
                    new_config["options"] = resumed_options(old_config, new_config, defaults or {})
                except ValueError as error:
                    raise RunError(f"{path}: {error}") from None
        run._new_config, run._overwrite = new_config, overwrite
        return run

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Locks the run within the context, and removes what killed processes left behind.

        Raises:
            RunError: if another process holds the lock, if the directory holds anything but a run, or
                if it cannot be written.
        """
        self._check_directory()
        with ExitStack() as held:
            try:
                make_folder(self.path)
                held.enter_context(locked(self.path))
            except LockedError as error:
                raise RunError(str(error)) from None
            except OSError as error:
                raise RunError(f"cannot write {self.path}: {error}") from error
            unfinished = (*RUN_FILES, DEMONSTRATION, "best.safetensors", "checkpoints")
            _remove(*(path for name in unfinished for path in self.path.glob(f".{name}*")))
            _remove(*self.checkpoints.glob(".step-*"))
            yield

    def config(self) -> dict[str, Any]:
        """The experiment and its options: those asked for now, or else those of the file."""
        if self._new_config is not None:
            return self._new_config
        config = self._read("config.json", parse_config)
        if config is None:
            raise RunError(f"{self.path}: not a run directory (no config.json)")
        return config

    def fingerprint(self) -> str:
        """Identifies the run: a hash of the options that cannot change."""
        return fingerprint(self.config())

    def begin_session(self, step: int, **details: object) -> None:
        """Writes the config, adds a session, and drops metrics of steps that will be repeated.

        Args:
            step: the updates done before this session.
            details: added to the entry of the session.

        Raises:
            RunError: if the run has ended and its checkpoints are gone, or if a file cannot be written.
        """
        if self._overwrite:
            self._clear()
        if step == 0 and self.model.exists():
            raise RunError(
                f"{self.path}: cannot be resumed, because the run has ended and its checkpoints are "
                f"gone; pass --overwrite to train anew"
            )
        if self._new_config is not None:
            self._write("config.json", self._new_config)
            self._new_config = None
        rows, sessions = [row for row in self.metrics() if row["step"] <= step], self.sessions()
        self._write("metrics.jsonl", rows, lines=True)
        summary = self._last_summary()
        if summary is not None and "session" not in summary:  # Written by an older version.
            self._write("summary.json", {**summary, "session": len(sessions)})
        self._write("sessions.json", [*sessions, {"step": step, **details, **environment()}])

    def sessions(self) -> list[dict[str, Any]]:
        """Machine, versions and commit of each session."""
        return self._read("sessions.json", parse_sessions) or []

    def metrics(self) -> list[dict[str, Any]]:
        """The measurements of all evaluations, without a line that a killed process left unfinished."""
        return self._read("metrics.jsonl", parse_metrics) or []

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Adds the measurements of an evaluation."""
        try:
            with (self.path / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(f"cannot write {self.path / 'metrics.jsonl'}: {error}") from error

    def summary(self) -> dict[str, Any] | None:
        """How the last session ended; ``None`` if it is running or was killed."""
        summary, sessions = self._last_summary(), len(self.sessions())
        current = summary is not None and summary.get("session", sessions) == sessions
        return summary if current else None

    def finish_session(self, summary: Mapping[str, Any], model: str) -> None:
        """Writes how the session ended. Its network must have been written before.

        Args:
            summary: the content of ``summary.json``.
            model: the checksum of ``model.safetensors``.
        """
        before = self._last_summary()
        if before is None or before.get("model") != model:  # The results are of another network.
            _remove(*(self.path / name for name in RESULTS))
        self._write("summary.json", {**summary, "session": len(self.sessions()), "model": model})
        _remove(self.old_best)

    def write_result(self, name: str, content: object) -> None:
        """Writes a file of results, such as ``evaluation.json``."""
        self._write(name, content)

    def read_result(self, name: str) -> dict[str, Any] | None:
        """Reads a file of results; ``None`` if there is none."""
        return self._read(name, lambda text: check_object(read_json(text), name))

    def _last_summary(self) -> dict[str, Any] | None:
        """The summary of the last session that ended, which may not be the last session."""
        return self._read("summary.json", parse_summary)

    def _check_directory(self) -> None:
        """Refuses a directory with other files than a run's, or than those of a killed start."""
        path = self.path
        if not path.exists() or (path / "config.json").exists():
            return
        if not path.is_dir() or any(
            file.name != LOCK_FILE and not file.name.startswith(".config.json.")
            for file in path.iterdir()
        ):
            raise RunError(f"{path}: not a run directory (no config.json), and not empty")

    def _clear(self) -> None:
        """Removes all files of a run but its config, which marks the directory as a run.

        Checkpoints are renamed first: one that is removed only in part would count as damaged.
        """
        try:
            if self.checkpoints.exists():
                self.checkpoints.rename(self.path / f".checkpoints.{os.getpid()}")
            _remove(*self.path.glob(".checkpoints.*"), self.old_best)
            _remove(*(self.path / name for name in get_args(TrackerName)))
            _remove(*(self.path / name for name in (*RESULTS, *RUN_FILES) if name != "config.json"))
        except OSError as error:
            raise RunError(f"cannot overwrite {self.path}: {error}") from error

    def _read(self, name: str, parse: Callable[[str], Parsed]) -> Parsed | None:
        """The parsed content of a file; ``None`` if there is no such file."""
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


def _remove(*paths: Path) -> None:
    """Removes files and folders; missing ones are ignored."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
