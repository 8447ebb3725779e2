"""``gridlstm bench generation``: how fast text is generated, one character at a time, on one thread."""

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from gridlstm.bench.limits import limit_flops, make_limits, share_of_limit
from gridlstm.bench.options import GenerationBench
from gridlstm.bench.summary import summarise, with_spread
from gridlstm.bench.timing import set_threads, time_in_turn
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

__all__ = ["generation_section", "generation_table", "measure_bits", "run"]

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
    section = generation_section(options)
    write_json(options.out, {"kind": "generation", "environment": environment(), **section})
    console = Console()
    console.print(generation_table(section))
    bits = section["bits"]
    console.out(
        f"Bits per character of {bits['characters']:,} characters of Shakespeare, with the network of "
        f"the package: {bits['float32']:.4f}, with int8 weights {bits['int8']:.4f}",
        highlight=False,
    )
    console.out(options.out, highlight=False)


def generation_section(
    options: GenerationBench, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The speed of all sizes, and what int8 loses, as in a result file."""
    sizes = [_measure(*size, options, progress) for size in SIZES]
    with set_threads(1):
        bits = measure_bits(500 if options.quick else 20_000)
    return {"limit flops": limit_flops(quick=options.quick), "sizes": sizes, "bits": bits}


def _measure(
    layers: int, hidden: int, options: GenerationBench, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Characters per second of a network, by stepper, from the median of the rounds."""
    characters = 50 if options.quick else 500
    torch.manual_seed(0)
    body = SequenceGridLSTM(SYMBOLS, hidden, layers, readout="both", batch_first=True)
    model = CharacterModel(bytes(range(SYMBOLS)), body).eval()
    texts = {
        name: draw_after(stepper, 0, 1.0, None, np.random.default_rng(0))
        for name, stepper in _steppers(model).items()
    }

    def write(name: str) -> None:
        deque(islice(texts[name], characters), maxlen=0)

    works = {name: partial(write, name) for name in texts}
    for work in works.values():
        work()  # Warms up.
    limits = make_limits(bfloat16=False, quick=options.quick)
    summary = summarise(
        time_in_turn({**limits, **works}, [1], options.rounds, single=works, progress=progress)["1"]
    )
    # The products of the grid; the network has few others.
    flops, median = 2 * layers * 8 * hidden * 2 * hidden * characters, summary["median"]
    return {
        "layers": layers,
        "hidden": hidden,
        "characters": characters,
        "characters a second": {name: characters / median[name] for name in texts},
        "flops": flops,
        "share of limit": {
            name: share_of_limit(flops, median, name, quick=options.quick) for name in texts
        },
        **summary,
    }


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


def generation_table(section: dict[str, Any]) -> Table:
    """Characters per second, and the share of the limit that the first way reaches."""
    sizes = section["sizes"]
    names = list(sizes[0]["characters a second"])
    table = Table(
        title="Characters per second, one thread",
        caption="n: rounds. ±: half their range, in percent. peak: the rate of the first way over that "
        "of a large product. ratio: of the first way and the last.",
    )
    for title in ("layers", "hidden", "n", *names, "peak", "ratio"):
        table.add_column(title, justify="right")
    for size in sizes:
        speeds = size["characters a second"]
        numbers = (
            with_spread(f"{speed:,.0f}", size["seconds"][name]) for name, speed in speeds.items()
        )
        share = size["share of limit"][names[0]]
        table.add_row(
            str(size["layers"]),
            str(size["hidden"]),
            str(size["rounds"][names[0]]),
            *numbers,
            "" if share is None else f"{share:.2f}",
            f"{speeds[names[0]] / speeds[names[-1]]:.1f} x",
        )
    return table
