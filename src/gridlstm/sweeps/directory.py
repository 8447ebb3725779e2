"""The directory of a sweep. No PyTorch here.

- ``plan.json``: what is run. It never changes.
- ``runs/CELL/``: the run directory of a cell.
- ``claims/CELL/``: who works, or worked, on a cell.
- ``logs/CELL.log``: what its processes printed.
- ``failed/CELL.json``: why it failed.
- ``sweep.json``, ``sweep.png``, ``sweep.svg``: how all cells ended.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridlstm.errors import ExpectedError, one_line
from gridlstm.experiments.registry import find_experiment, from_flat
from gridlstm.files import make_folder, read_json, write_json
from gridlstm.sweeps.plan import SweepPlan
from gridlstm.training.json_checks import check_object
from gridlstm.training.rundir import RunDir

__all__ = ["PLAN", "SweepDir", "SweepError"]

PLAN = "plan.json"
FORMAT = "gridlstm sweep 1"


class SweepError(ExpectedError):
    """A sweep cannot be started or continued as asked."""


class SweepDir:
    """The files of a sweep.

    Args:
        path: the directory.
        plan: that of the sweep.
    """

    def __init__(self, path: Path, plan: SweepPlan) -> None:
        self.path = path.absolute()  # Workers may start elsewhere.
        self.plan = plan

    @classmethod
    def open(cls, path: Path) -> "SweepDir":
        """Opens an existing sweep.

        Raises:
            SweepError: if there is none, or this version cannot run it.
        """
        file = path / PLAN
        try:
            described = check_object(read_json(file.read_text()), "plan")
            if described.get("format") != FORMAT:
                raise ValueError(f"expected a {FORMAT!r}, got something else")
            experiment = find_experiment(described.get("experiment"))
            options = from_flat(experiment, described.get("options", {}))
            return cls(
                path, SweepPlan(experiment, options, described["over"], described["test_samples"])
            )
        except FileNotFoundError:
            raise SweepError(f"{path}: not the directory of a sweep (no {PLAN})") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SweepError(f"{file}: {error}") from error

    @classmethod
    def create(cls, path: Path, plan: SweepPlan) -> "SweepDir":
        """Starts a sweep, or opens it if it exists.

        Raises:
            SweepError: if the directory holds another sweep or anything else.
        """
        file = path / PLAN
        if not file.exists():
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise SweepError(f"{path}: not the directory of a sweep (no {PLAN}), and not empty")
            try:
                write_json(file, {"format": FORMAT, **plan.described()})
            except OSError as error:
                raise SweepError(f"cannot write {path}: {error}") from error
        there = cls.open(path).plan.described()
        differences = _differences(there, plan.described())
        if differences:
            raise SweepError(f"{path}: cannot be continued with another plan: {'; '.join(differences)}")
        return cls(path, plan)

    def run(self, cell: str) -> RunDir:
        """The run of a cell."""
        return RunDir(self.path / "runs" / cell)

    def claims(self, cell: str) -> Path:
        """The folder of the claims of a cell."""
        return self.path / "claims" / cell

    def log(self, cell: str) -> Path:
        """What the processes of a cell printed."""
        folder = self.path / "logs"
        make_folder(folder)
        return folder / f"{cell}.log"

    def last_line(self, cell: str) -> str:
        """The last line that a process of a cell printed; empty if there is none."""
        try:
            lines = self.log(cell).read_bytes()[-4096:].decode(errors="replace").split("\n")
        except OSError:
            return ""
        return one_line(next((line for line in reversed(lines) if line.strip()), ""))

    def record_failure(self, cell: str, code: int, line: str) -> None:
        """Notes that a cell failed: it is not tried again until :meth:`forget_failures`."""
        write_json(self._failed(cell), {"code": code, "line": line})

    def failure(self, cell: str) -> dict[str, Any] | None:
        """Exit code and last line of a cell that failed."""
        try:
            return check_object(read_json(self._failed(cell).read_text()), "failure")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return {"code": 1, "line": f"{self._failed(cell)}: {error}"}

    def forget_failures(self) -> None:
        """Lets the cells that failed be tried again."""
        for cell in self.plan.cells:
            self._failed(cell).unlink(missing_ok=True)

    def _failed(self, cell: str) -> Path:
        return self.path / "failed" / f"{cell}.json"


def _differences(there: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """In which parts two plans differ, in words."""
    differences: list[str] = []
    for part, before in there.items():
        now = asked[part]
        if part == "options" and isinstance(before, dict):
            names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
            differences += (f"{name} was {before.get(name)}, now {now.get(name)}" for name in names)
        elif before != now:
            differences.append(f"{part} was {before}, now {now}")
    return differences
