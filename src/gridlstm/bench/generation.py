"""How fast text is generated, one character at a time, on one thread."""

import statistics
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from gridlstm.bench.options import Bench
from gridlstm.files import write_json
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import draw_after
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stepper import GridStepper, ModelStepper
from gridlstm.provenance import environment

__all__ = ["run_generation"]

SIZES = ((4, 128), (6, 256))
"""Layers and hidden size; the first is that of the network that comes with the package."""
SYMBOLS = 65
STEPPERS: dict[str, type[GridStepper] | type[ModelStepper]] = {
    "stepper": GridStepper,
    "model": ModelStepper,
}


def run_generation(options: Bench, console: Console) -> None:
    """Measures, tells and writes characters a second, with and without the stepper."""
    out = options.out or Path("runs/bench-generation.json")
    count = 50 if options.quick else 500
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        sizes = [_measure(*size, count, options.rounds) for size in SIZES]
    finally:
        torch.set_num_threads(before)
    results = {"kind": "generation", "environment": environment(), "sizes": sizes}
    write_json(out, results)
    console.print(_table(sizes))
    console.print(str(out))


def _measure(layers: int, hidden: int, count: int, rounds: int) -> dict[str, Any]:
    torch.manual_seed(0)
    body = SequenceGridLSTM(SYMBOLS, hidden, layers, readout="both", batch_first=True)
    model = CharacterModel(bytes(range(SYMBOLS)), body).eval()
    found: dict[str, list[float]] = {name: [] for name in STEPPERS}
    texts = {
        name: draw_after(stepper(model), 0, 1.0, None, np.random.default_rng(0))
        for name, stepper in STEPPERS.items()
    }
    for turn in range(rounds + 1):
        for name, text in texts.items():
            start = time.perf_counter()
            for _ in islice(text, count):
                pass
            if turn > 0:  # The first round warms up.
                found[name].append(count / (time.perf_counter() - start))
    speeds = {name: statistics.median(speed) for name, speed in found.items()}
    return {"layers": layers, "hidden": hidden, "characters a second": speeds}


def _table(sizes: list[dict[str, Any]]) -> Table:
    table = Table(title="Characters a second, one thread")
    for title in ("layers", "hidden", "stepper", "model", "ratio"):
        table.add_column(title, justify="right")
    for size in sizes:
        fast, slow = size["characters a second"].values()
        row = (str(size["layers"]), str(size["hidden"]), f"{fast:,.0f}", f"{slow:,.0f}")
        table.add_row(*row, f"{fast / slow:.1f} x")
    return table
