"""Metrics of a run in TensorBoard or Weights & Biases, as well as in its directory.

A run does not depend on its tracker: if that fails, there is a warning and training goes on without it.
"""

import logging
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from gridlstm.errors import one_line
from gridlstm.files import write_text
from gridlstm.training.problem import Measures
from gridlstm.training.rundir import RunDir
from gridlstm.training.settings import TrackerName

__all__ = ["SafeTracker", "Tracker", "check_tracker", "start_tracker"]

_log = logging.getLogger("gridlstm")

PROJECT = "gridlstm"
"""The project on Weights & Biases, unless $WANDB_PROJECT names another."""


class Tracker(Protocol):
    """Where metrics go."""

    def add(self, values: Measures, samples: int) -> None:
        """Adds the measurements of an evaluation after this many samples."""

    def close(self, *, failed: bool) -> None:
        """Ends the session, and says whether an error ended it."""


def check_tracker(name: TrackerName | None) -> None:
    """Checks that the package of a tracker is installed, without importing it.

    Raises:
        ValueError: if it is not.
    """
    if name is not None and find_spec(name) is None:
        raise ValueError(
            f"track: {name} is not installed: pip install 'gridlstm[{name}]', or train without --track"
        )


class SafeTracker:
    """A tracker whose errors end the tracking with a warning, and never the training.

    Args:
        name: which tracker; ``None`` for none.
        run: the directory of the run.
        samples: the samples before this session.
    """

    def __init__(self, name: TrackerName | None, run: RunDir, samples: int) -> None:
        self._name = name
        self._tracker: Tracker | None = None
        if name is not None:
            try:
                self._tracker = start_tracker(name, run, samples)
            except Exception as error:
                self._give_up(error)

    def evaluated(self, row: Measures) -> None:
        """Adds the measurements of an evaluation."""
        if self._tracker is not None:
            values = {name: value for name, value in row.items() if name not in ("samples", "step")}
            try:
                self._tracker.add(values, int(row["samples"]))
            except Exception as error:
                self._give_up(error)

    def close(self, *, failed: bool) -> None:
        """Ends the session."""
        if self._tracker is not None:
            try:
                self._tracker.close(failed=failed)
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._tracker = None
        reason = one_line(error) or type(error).__name__
        _log.warning("%s failed, and the run goes on without it: %s", self._name, reason)


def start_tracker(name: TrackerName, run: RunDir, samples: int) -> Tracker:
    """Starts a tracker. It raises whatever the package does."""
    return TensorBoard(run, samples) if name == "tensorboard" else WeightsAndBiases(run)


class TensorBoard:
    """Event files in the folder ``tensorboard`` of a run."""

    def __init__(self, run: RunDir, samples: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # A resumed run repeats what came after its last checkpoint.
        self._writer = SummaryWriter(str(run.path / "tensorboard"), purge_step=samples + 1)

    def add(self, values: Measures, samples: int) -> None:
        """Writes a scalar per measurement."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, samples)

    def close(self, *, failed: bool) -> None:
        """Closes the files."""
        self._writer.close()


class WeightsAndBiases:
    """A run on Weights & Biases, with files in the folder ``wandb`` of a run.

    Its id is stored there, too, so that a resumed run continues it. ``$WANDB_MODE``,
    ``$WANDB_PROJECT`` and the other variables of the package apply.
    """

    def __init__(self, run: RunDir) -> None:
        wandb: Any = import_module("wandb")
        folder = run.path / "wandb"
        folder.mkdir(exist_ok=True)  # Otherwise the package would choose a temporary folder.
        config = run.config()
        self._run = wandb.init(
            id=_read_id(folder / "run-id"),
            resume="allow",
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=run.path.absolute(),
            name=run.path.name,
            config={"experiment": config["experiment"], **config["options"]},
            allow_val_change=True,  # A resumed run may have another limit of samples or minutes.
            settings=wandb.Settings(console="off"),  # It would capture the progress line.
        )

    def add(self, values: Measures, samples: int) -> None:
        """Logs the measurements. What a resumed run repeats is there already, and is dropped."""
        self._run.log(values, step=samples)

    def close(self, *, failed: bool) -> None:
        """Ends the session and waits for uploads."""
        self._run.finish(exit_code=int(failed))


def _read_id(path: Path) -> str:
    """The id in a file, which is written if it is missing."""
    if not path.exists():
        write_text(path, uuid4().hex)
    return path.read_text()
