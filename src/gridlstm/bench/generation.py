"""``gridlstm bench generation``: how fast text is generated, one character at a time, on one thread."""

import math
import statistics
import time
from itertools import islice
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from gridlstm.bench.measure import set_threads
from gridlstm.bench.options import GenerationBench
from gridlstm.data.locate import embedded
from gridlstm.engines.native.build import library
from gridlstm.experiments.trained import load_network, open_run
from gridlstm.files import write_json
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import draw_after
from gridlstm.models.grid_arrays import GridArrays
from gridlstm.models.native_stepper import NativeStepper
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.models.stepper import GridStepper, ModelStepper, Stepper, make_stepper
from gridlstm.provenance import environment

__all__ = ["measure_bits", "run"]

SIZES = ((4, 128), (6, 256))
"""Layers and hidden size; the first is that of the network that comes with the package."""
SYMBOLS = 65


def _steppers(model: CharacterModel) -> dict[str, Stepper]:
    """The ways to run a 2-LSTM one character at a time, the fastest first."""
    arrays, kernel = GridArrays.of(model), library()
    assert arrays is not None, "a 2-LSTM"
    steppers: dict[str, Stepper] = {}
    if kernel is not None:
        steppers = {
            "C": NativeStepper(kernel, arrays),
            "C, int8": NativeStepper(kernel, arrays, int8=True),
        }
    return {**steppers, "stepper": GridStepper(arrays), "model": ModelStepper(model)}


def run(options: GenerationBench) -> None:
    """Measures characters per second of each stepper, and what int8 loses. Prints and writes it."""
    characters = 50 if options.quick else 500
    with set_threads(1):
        sizes = [_measure(*size, characters, options.rounds) for size in SIZES]
        bits = measure_bits(500 if options.quick else 20_000)
    results = {"kind": "generation", "environment": environment(), "sizes": sizes, "bits": bits}
    write_json(options.out, results)
    console = Console()
    console.print(_table(sizes))
    console.out(
        f"Bits per character of {bits['characters']:,} characters of Shakespeare, with the network of "
        f"the package: {bits['float32']:.4f}, with int8 weights {bits['int8']:.4f}",
        highlight=False,
    )
    console.out(options.out, highlight=False)


def _measure(layers: int, hidden: int, characters: int, rounds: int) -> dict[str, Any]:
    """Median characters per second of a network, by stepper."""
    torch.manual_seed(0)
    body = SequenceGridLSTM(SYMBOLS, hidden, layers, readout="both", batch_first=True)
    model = CharacterModel(bytes(range(SYMBOLS)), body).eval()
    texts = {
        name: draw_after(stepper, 0, 1.0, None, np.random.default_rng(0))
        for name, stepper in _steppers(model).items()
    }
    speeds: dict[str, list[float]] = {name: [] for name in texts}
    for turn in range(rounds + 1):
        for name, text in texts.items():
            start = time.perf_counter()
            for _ in islice(text, characters):
                pass
            if turn > 0:  # The first round warms up.
                speeds[name].append(characters / (time.perf_counter() - start))
    medians = {name: statistics.median(measured) for name, measured in speeds.items()}
    return {"layers": layers, "hidden": hidden, "characters a second": medians}


def measure_bits(characters: int) -> dict[str, float]:
    """Bits per character of a text that the network in the package has not seen, read by steppers."""
    run = open_run(None, "characters")
    model = load_network(run)
    assert isinstance(model, CharacterModel), "the network of characters"
    text = np.frombuffer(embedded("tinyshakespeare.txt", run.config()["data"]["text"]), np.uint8)
    unseen = text[len(text) * 95 // 100 :][: characters + 1]
    symbols = np.searchsorted(model.alphabet.numpy(), unseen).tolist()
    bits: dict[str, float] = {"characters": len(symbols) - 1}
    for name, int8 in (("float32", False), ("int8", True)):
        step = make_stepper(model, int8=int8)
        scores = np.stack([step(symbol) for symbol in symbols[:-1]]).astype(np.float64)
        logs = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(scores)), symbols[1:]]
        bits[name] = float(logs.mean() / math.log(2))
    return bits


def _table(sizes: list[dict[str, Any]]) -> Table:
    names = list(sizes[0]["characters a second"])
    table = Table(title="Characters per second, one thread")
    for title in ("layers", "hidden", *names, "ratio"):
        table.add_column(title, justify="right")
    for size in sizes:
        speeds = list(size["characters a second"].values())
        ratio = f"{speeds[0] / speeds[-1]:.1f} x"
        numbers = (f"{speed:,.0f}" for speed in speeds)
        table.add_row(str(size["layers"]), str(size["hidden"]), *numbers, ratio)
    return table
