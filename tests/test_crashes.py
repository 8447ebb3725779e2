"""Runs that are killed at every file-system event lose nothing, and end bit for bit the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and the names of open files")
def test_a_kill_at_every_event_of_a_run(tmp_path: Path) -> None:
    """At every one, also with a file that lacks its end, and at random moments."""
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(HERE / "crash_points.py"), str(tmp_path), "10"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["best"] == [8, 24]  # Not the last networks, which are those of 16 and 32 samples.
    assert found["random"] >= 10
    points = found["points"]
    for scenario in ("first", "longer", "again", "overwrite"):
        for event in ("open", "fsync", "torn fsync", "fsync folder", "os.rename"):
            assert points[f"{scenario}: {event}"] >= 2, (scenario, event)
    assert sum(points.values()) > 200
