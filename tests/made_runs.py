"""Directories of runs and sweeps with files as training writes them, made in a moment."""

import json
from pathlib import Path
from typing import Any

from gridlstm.experiments.registry import EXPERIMENTS, flat
from gridlstm.sweeps.directory import SweepDir
from gridlstm.sweeps.plan import SweepPlan
from gridlstm.training.rundir import RunDir

ROWS = [
    {
        "samples": 1500 * k,
        "step": 100 * k,
        "seconds": 30.0 * k,
        "loss": 0.7 / k,
        "accuracy": 1 - 0.4 / k,
    }
    for k in range(1, 6)
]
MACHINE = {"processor": "Abacus 3000", "cores": 2, "memory_gib": 23.5, "system": "Linux x86_64"}
SESSION = {
    "step": 0,
    "threads": 1,
    "processes": 1,
    "time": "2026-11-18T01:25:12+00:00",
    "commit": "0123456789ab",
    "machine": MACHINE,
    "python": "3.11.7",
    "versions": {"gridlstm": "0.1.0", "torch": "2.13.0"},
}


def make_run(
    path: Path,
    rows: list[dict[str, float]] = ROWS,
    *,
    experiment: str = "parity",
    reason: str | None = "samples",
    accuracy: float | None = 0.875,
    lines: list[str] | None = None,
    commit: str = "0123456789ab",
    **options: Any,
) -> RunDir:
    """Makes a run.

    Args:
        path: its directory.
        rows: of ``metrics.jsonl``.
        experiment: the name of its experiment.
        reason: why it ended; ``None`` if it has not.
        accuracy: of its test; ``None`` if it has not been tested.
        lines: what its network does with a sample.
        commit: that it was trained with.
        options: those that differ from the preset ``smoke``.
    """
    known = flat(EXPERIMENTS[experiment].presets["smoke"])
    config = {"experiment": experiment, "options": {**known, **options}, "data": {}}
    run = RunDir.prepare(path, config, resume=False)
    with run.lock():
        run.begin_session(0)
    (path / "sessions.json").write_text(json.dumps([{**SESSION, "commit": commit}]))
    for row in rows:
        run.append_metrics(row)
    if reason is not None:
        last = rows[-1]
        measures = {"accuracy": last.get("accuracy", 0.0)}
        summary = {"reason": reason, "samples": last["samples"], "seconds": last["seconds"]}
        run.finish_session({**summary, "measures": measures, "best": {}, "parameters": 1442}, "0")
    if accuracy is not None:
        test = {"samples": 1000, "accuracy": accuracy, "environment": {**SESSION, "commit": commit}}
        run.write_result("evaluation.json", test)
    if lines:
        run.write_result("demonstration.json", {"lines": lines})
    return run


def make_sweep(path: Path, **over: list[Any]) -> SweepDir:
    """Makes a sweep of parity in which no cell has begun."""
    parity = EXPERIMENTS["parity"]
    return SweepDir.create(path, SweepPlan(parity, parity.presets["smoke"], [over]))


def fill_sweep(sweep: SweepDir) -> None:
    """Makes the runs of all cells of a sweep."""
    for number, (name, cell) in enumerate(sweep.plan.cells.items()):
        rows = [{**row, "accuracy": row["accuracy"] - 0.05 * number} for row in ROWS]
        lines = ["input   0 1 1 0 1 0 0 1", "output  0"]
        make_run(sweep.run(name).path, rows, lines=lines, **cell.varied)
