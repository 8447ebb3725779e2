"""``gridlstm bench train``: a whole training step as users run it, split into its parts.

Two ratios say how much of the engine's speed is left in a step:

- *engine*: the seconds that a step spends in the engine, forward and backward, over those of the whole
  step. Counting the operations of the grids alone, this is the rate of the step over the rate of the
  engine on the same grids: both divide the same operations by their time.
- *engine and products*: the same, with the time of all other matrix products of the forward and
  backward pass added to that of the engine. Where the softmax over words or ReLU layers have many of
  the operations, the network itself asks for that time. The products of the optimiser are not added.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console

from gridlstm.bench.engine_watch import watch_engine
from gridlstm.bench.limits import limit_flops, make_limits, share_of_limit
from gridlstm.bench.measure import LARGE
from gridlstm.bench.options import TrainBench
from gridlstm.bench.recorded import Product, Recorder, replay
from gridlstm.bench.summary import summarise
from gridlstm.bench.timing import LEAST, set_threads, time_in_turn, time_once
from gridlstm.bench.training_table import PARTS, train_tables
from gridlstm.engines.native.build import library
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.files import write_json
from gridlstm.processor import has_bfloat16
from gridlstm.provenance import environment
from gridlstm.training.trainer import Trainer

__all__ = ["StepChoice", "choose_steps", "find_data", "measure_training", "run"]

EVALUATED = 20
"""Evaluations are timed on this fraction of the validation data, if an option says how much it is."""


class StepChoice(NamedTuple):
    """A training step to measure.

    Attributes:
        experiment: its name.
        preset: the name of its preset.
        optimizer: the optimiser; ``None`` for that of the preset.
        hidden: the hidden size; ``None`` for that of the preset.
    """

    experiment: str
    preset: str
    optimizer: str | None = None
    hidden: int | None = None

    @property
    def preset_options(self) -> Any:
        """The options of the preset."""
        return EXPERIMENTS[self.experiment].presets[self.preset]


def run(options: TrainBench) -> None:
    """Times training steps, prints a table, and writes a result file.

    Raises:
        ValueError: if an experiment is unknown, or its data is missing.
    """
    console, head = Console(), {"kind": "train", "environment": environment()}
    choices = choose_steps(options)
    with console.status("") as status:
        results = measure_training(
            options, choices, status.update, lambda found: write_json(options.out, {**head, **found})
        )
    for table in train_tables(results):
        console.print(table)
    console.out(options.out, highlight=False)


def choose_steps(options: TrainBench) -> list[StepChoice]:
    """The steps of all experiments, presets and optimisers.

    Raises:
        ValueError: if an experiment is unknown.
    """
    unknown = [name for name in options.experiments if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"--experiments: expected some of {', '.join(EXPERIMENTS)}, got {', '.join(unknown)}"
        )
    return [
        StepChoice(name, preset, optimizer, options.hidden)
        for name in options.experiments or EXPERIMENTS
        for preset in (("smoke",) if options.quick else options.presets)
        for optimizer in options.optimizers or (None,)
    ]


def find_data(choices: Sequence[StepChoice], options: TrainBench) -> None:
    """Makes sure that there is the data of all experiments, before anything is measured.

    Raises:
        ValueError: if it is missing.
    """
    for choice in {choice.experiment: choice for choice in reversed(choices)}.values():
        EXPERIMENTS[choice.experiment].make_problem(choice.preset_options, options.data)


def measure_training(
    options: TrainBench,
    choices: Sequence[StepChoice],
    progress: Callable[[str], None],
    save: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """The times of these steps. ``save`` is given the results so far, after every step.

    Raises:
        ValueError: if the data of an experiment is missing.
    """
    rounds = min(2, options.rounds) if options.quick else options.rounds
    results: dict[str, Any] = {
        "kernel compiled": library() is not None,
        "options": {"rounds": rounds, "patience": options.patience, "quick": options.quick},
        "limit flops": limit_flops(quick=options.quick),
        "steps": [],
    }
    for choice in choices:
        progress(f"{choice.experiment}, {choice.preset}")
        results["steps"] += _measure(choice, options, rounds, progress)
        save(results)  # If a later one fails, these are kept.
    return results


class _Stopwatch:
    """Adds up the seconds of each part of an update."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((*PARTS, "engine"), 0.0)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


def _measure(
    choice: StepChoice, options: TrainBench, rounds: int, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The steps of one choice, for each number of threads."""
    chosen, scale = _chosen_options(choice, options)
    settings = chosen.training
    problem = EXPERIMENTS[choice.experiment].make_problem(chosen, options.data)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(problem, settings, Path(folder), fresh=True)
    products = _record(trainer)
    parts = {
        part: sum(product.flops for product in products if product.part == part)
        for part in ("engine", *PARTS)
    }
    others = [product for product in products if product.part in ("forward", "backward")]
    replays = {"products": replay(products), **({"others": replay(others)} if others else {})}
    with set_threads(max(options.threads)):
        long = time_once(trainer.update) > LARGE * options.patience
    steps = []
    for count in [max(options.threads)] if long else options.threads:
        seconds = _time_rounds(trainer, replays, count, rounds, options, progress)
        with set_threads(count):
            evaluation = scale * time_once(lambda: _evaluate(trainer))
        summary = summarise(seconds)
        median = summary["median"]
        between = settings.evaluate_every / settings.batch * median["update"]
        engine, flops = median["engine"], sum(parts.values())
        steps.append(
            {
                "experiment": choice.experiment,
                "preset": choice.preset + (f", d {choice.hidden}" if choice.hidden else ""),
                "hidden": chosen.hidden,
                "network": f"{chosen.network}, {chosen.layers} x {chosen.hidden}",
                "batch": settings.batch,
                "optimizer": settings.optimizer,
                "bfloat16": settings.bfloat16,
                "threads": count,
                "flops": flops,
                "flops of parts": parts,
                "products": len(products),
                **summary,
                "share of limit": share_of_limit(
                    flops, median, "update", bfloat16=settings.bfloat16, quick=options.quick
                ),
                "shares": {part: median[part] / median["update"] for part in PARTS},
                "engine": engine / median["update"],
                "engine and products": (engine + median.get("others", 0.0)) / median["update"],
                "evaluation share": evaluation / (between + evaluation),
            }
        )
    return steps


def _chosen_options(choice: StepChoice, options: TrainBench) -> tuple[Any, float]:
    """The options of the experiment, and how much longer an evaluation would take without them."""
    chosen = choice.preset_options
    settings = replace(
        chosen.training,
        optimizer=choice.optimizer or chosen.training.optimizer,
        bfloat16=options.bfloat16 or chosen.training.bfloat16,
    )
    chosen = replace(chosen, training=settings, hidden=choice.hidden or chosen.hidden)
    validated = getattr(chosen, "validated", None)
    if validated is None:
        return chosen, 1.0
    fewer = max(1, validated // EVALUATED)
    return replace(chosen, validated=fewer), validated / fewer


def _record(trainer: Trainer) -> list[Product]:
    """The products of an update, each with the part that computes it: the engine is one."""
    recorder = Recorder()
    with recorder.listen(), watch_engine(recorder.watch):
        trainer.watch = recorder.watch
        trainer.update()
    return recorder.products


def _time_rounds(
    trainer: Trainer,
    replays: dict[str, Callable[[], None]],
    threads: int,
    rounds: int,
    options: TrainBench,
    progress: Callable[[str], None],
) -> dict[str, list[float]]:
    """Seconds of each round: of a whole update, of its parts, of its products, and of the limit.

    Short updates are repeated, as in training. After other work, the caches do not have their memory.
    """
    parts: dict[str, list[float]] = {part: [] for part in (*PARTS, "engine", "update")}

    def update() -> None:
        trainer.watch = watch = _Stopwatch()
        first = trainer.step

        def step() -> None:
            trainer.update()
            trainer.step += 1

        with watch_engine(watch):
            parts["update"].append(time_once(step, LEAST))
        for part, spent in watch.seconds.items():
            parts[part].append(spent / (trainer.step - first))

    limits = make_limits(bfloat16=trainer.settings.bfloat16 and has_bfloat16(), quick=options.quick)
    with set_threads(threads):
        for alone in replays.values():
            alone()
    works = {**limits, "update": update, **replays}
    measured = time_in_turn(
        works, [threads], rounds, options.patience, single=["update"], progress=progress
    )
    return {**measured[str(threads)], **parts}


def _evaluate(trainer: Trainer) -> None:
    trainer.network.eval()
    with torch.no_grad():
        trainer.problem.evaluate(trainer.network, 1)
    trainer.network.train()
