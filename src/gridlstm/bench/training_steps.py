"""``gridlstm bench train``: a whole training step as users run it, split into its parts."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from gridlstm.bench.contenders import has_bfloat16
from gridlstm.bench.limits import measure_limits
from gridlstm.bench.measure import set_threads, time_once
from gridlstm.bench.options import TrainBench
from gridlstm.bench.plain_table import make_plain_table
from gridlstm.bench.recorded import record_products, replay
from gridlstm.engines.native.build import library
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.files import write_json
from gridlstm.provenance import environment
from gridlstm.training.trainer import Trainer

__all__ = ["run"]

PARTS = ("forward", "backward", "clipping", "optimiser")
"""The parts of an update in the trainer. Making the samples belongs to ``forward``."""


def run(options: TrainBench) -> None:
    """Times training steps, prints a table, and writes a result file.

    Raises:
        ValueError: if an experiment is unknown, or its data is missing.
    """
    unknown = [name for name in options.experiments if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"--experiments: expected some of {', '.join(EXPERIMENTS)}, got {', '.join(unknown)}"
        )
    rounds = min(2, options.rounds) if options.quick else options.rounds
    console = Console()
    with console.status("the limit of the machine") as status:
        limits = measure_limits(options.threads, bfloat16=has_bfloat16(), quick=options.quick)
        results: dict[str, Any] = {
            "kind": "train",
            "environment": environment(),
            "kernel compiled": library() is not None,
            "options": {"rounds": rounds, "patience": options.patience, "quick": options.quick},
            "limits": limits,
            "steps": [],
        }
        for name in options.experiments or EXPERIMENTS:
            for preset in ("smoke",) if options.quick else options.presets:
                for optimizer in options.optimizers or (None,):
                    status.update(f"{name}, {preset}")
                    measured = _measure(name, preset, optimizer, options, rounds)
                    results["steps"] += measured
                    write_json(options.out, results)  # If a later one fails, these are kept.
    console.print(_table(results))
    console.out(options.out, highlight=False)


class _Stopwatch:
    """Adds up the seconds of each part of an update."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


def _measure(
    name: str, preset: str, optimizer: str | None, options: TrainBench, rounds: int
) -> list[dict[str, Any]]:
    """The steps of one experiment, for each number of threads."""
    chosen = EXPERIMENTS[name].presets[preset]
    settings = chosen.training
    if optimizer is not None:
        settings = replace(settings, optimizer=optimizer)
    if options.bfloat16:
        settings = replace(settings, bfloat16=True)
    chosen = replace(chosen, training=settings)
    problem = EXPERIMENTS[name].make_problem(chosen, options.data)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(problem, settings, Path(folder), fresh=True)
    products = record_products(trainer.update)
    alone = replay(products)
    steps = []
    for count in options.threads:
        with set_threads(count):
            seconds = _time_rounds(trainer, alone, rounds, options.patience)
            start = time.perf_counter()
            trainer.network.eval()
            with torch.no_grad():
                problem.evaluate(trainer.network, 1)
            trainer.network.train()
            evaluation = time.perf_counter() - start
        between = settings.evaluate_every / settings.batch * statistics.median(seconds["update"])
        steps.append(
            {
                "experiment": name,
                "preset": preset,
                "network": f"{chosen.network}, {chosen.layers} x {chosen.hidden}",
                "batch": settings.batch,
                "optimizer": settings.optimizer,
                "bfloat16": settings.bfloat16,
                "threads": count,
                "flops": sum(product.flops for product in products),
                "products": len(products),
                "rounds": len(seconds["update"]),
                "median": {part: statistics.median(times) for part, times in seconds.items()},
                "seconds": seconds,
                "evaluation share": evaluation / (between + evaluation),
            }
        )
    return steps


def _time_rounds(
    trainer: Trainer, alone: Callable[[], None], rounds: int, patience: float
) -> dict[str, list[float]]:
    """Seconds of each round: of a whole update, of its parts, and of its products alone."""
    seconds: dict[str, list[float]] = {part: [] for part in ("update", *PARTS, "products")}
    alone()
    started = time.perf_counter()
    for turn in range(rounds):
        if turn >= 2 and time.perf_counter() - started > patience:
            break
        trainer.watch = watch = _Stopwatch()
        seconds["update"].append(time_once(trainer.update))
        for part, spent in watch.seconds.items():
            seconds[part].append(spent)
        seconds["products"].append(time_once(alone))
    return seconds


def _table(results: dict[str, Any]) -> Table:
    """For each step: its time, its rate as a share of the limits, and the shares of its parts."""
    table = make_plain_table(
        title="A training step",
        caption="prod.: share of the step that its matrix products alone would take. peak: its "
        "rate over that of a large product. ±: half the range of the rounds, in percent of the step. "
        "Then, in percent, the shares of the parts, and of evaluations in the time of a run.",
    )
    titles = ("experiment", "with", "thr", "ms", "±", "prod.", "peak")
    for title in (*titles, "fwd", "bwd", "clip", "opt", "eval"):
        left = title in titles[:2]
        table.add_column(title, justify="left" if left else "right", no_wrap=True)
    for step in results["steps"]:
        median, times = step["median"], step["seconds"]["update"]
        dtype = "bfloat16" if step["bfloat16"] else "float32"
        rate = step["flops"] / median["update"] / 1e9
        limit = results["limits"].get(dtype, {}).get(str(step["threads"]))
        table.add_row(
            f"{step['experiment']}, {step['preset']}",
            step["optimizer"] + (" bf16" if step["bfloat16"] else ""),
            str(step["threads"]),
            f"{1e3 * median['update']:.0f}",
            f"{50 * (max(times) - min(times)) / median['update']:.0f}",
            f"{median['products'] / median['update']:.2f}",
            "" if limit is None else f"{rate / limit:.2f}",
            *(f"{100 * median[part] / median['update']:.0f}" for part in PARTS),
            f"{100 * step['evaluation share']:.0f}",
        )
    return table
