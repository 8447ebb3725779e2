"""The command ``gridlstm train``."""

import logging
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import nn

from gridlstm.commands.door import shown
from gridlstm.commands.options import Train
from gridlstm.experiments.memory import check_memory
from gridlstm.experiments.options import EXPERIMENTS, Characters, Experiment, Translation, flat
from gridlstm.experiments.problems import make_problem
from gridlstm.training.problem import Problem
from gridlstm.training.processes import Processes
from gridlstm.training.reporter import Reporter, Signals, say, signals
from gridlstm.training.rundir import RunDir, RunError
from gridlstm.training.trainer import Outcome, Trainer
from gridlstm.training.weights import load_weights, outline, save_weights

__all__ = ["run"]

_log = logging.getLogger("gridlstm")


def run(options: Train[Any]) -> None:
    """Trains, or shows samples.

    Raises:
        ValueError: if an option makes no sense here, or the data are missing or damaged.
        ExpectedError: if the run cannot be started or resumed as asked, or fails.
        SystemExit: 128 plus its number if a signal stops it.
    """
    experiment, asked = options.experiment, options.run
    presets = EXPERIMENTS[experiment.name]
    if asked.preset not in presets:
        raise ValueError(f"preset: expected one of {', '.join(presets)}, got {asked.preset}")
    problem = make_problem(experiment, asked.data)
    if asked.show:
        check_memory(experiment, asked.show)
        _show(problem, asked.show)
        return
    if asked.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: expected cpu, got cuda, which this machine does not have")
    check_memory(experiment, experiment.training.batch, outline(problem.network))
    if asked.threads is not None:
        torch.set_num_threads(asked.threads)
    path = asked.out or Path("runs") / _name(experiment)
    processes = Processes.join(asked.device)
    try:
        if experiment.training.batch % processes.count:
            message = f"batch: expected a multiple of the {processes.count} processes, got"
            raise RunError(f"{message} {experiment.training.batch}")
        with signals() as caught:
            _train(experiment, problem, path, asked.resume, processes, caught)
    finally:
        processes.leave()
    if caught.caught is not None:
        raise SystemExit(128 + caught.caught)


def _train(
    experiment: Experiment,
    problem: Problem,
    path: Path,
    resume: bool,
    processes: Processes,
    caught: Signals,
) -> None:
    config = {"experiment": experiment.name, "options": flat(experiment), "data": problem.data()}
    run = RunDir.start(path, config, resume=resume) if processes.first else RunDir(path)
    processes.most(0)  # The others read what the first has written.
    trainer = Trainer(
        problem,
        experiment.training,
        run.checkpoints,
        processes,
        origin=run.origin(),
    )
    if processes.first:
        details = {"threads": torch.get_num_threads(), "processes": processes.count}
        for session in run.sessions()[-1:]:
            other = [name for name, value in details.items() if session.get(name) != value]
            if other:
                _log.warning("not bit for bit: %s differ from those before", " and ".join(other))
        run.begin(trainer.step, **details)
    bounds = (trainer.samples, experiment.training.samples)
    with Reporter(run if processes.first else None, shown(path.name), bounds, caught) as reporter:
        outcome = trainer.run(reporter)
    if processes.first:
        _save(trainer, run)
        summary = {"run": path.name, **asdict(outcome), **_sizes(trainer.network)}
        run.finish(summary)
        _tell(summary, outcome, path)


def _save(trainer: Trainer, run: RunDir) -> None:
    """The weights that the run ends with: the best, where the best are kept."""
    if trainer.best:
        load_weights(trainer.network, run.best)
    save_weights(trainer.network, run.model)


def _sizes(network: nn.Module) -> dict[str, int]:
    return {"parameters": sum(p.numel() for p in network.parameters())}


def _tell(summary: dict[str, Any], outcome: Outcome, path: Path) -> None:
    console = Console()
    if not console.is_terminal:
        say({"end": summary})
        return
    table = Table(show_header=False)
    table.add_row("ended", outcome.reason)
    table.add_row("samples", f"{outcome.samples:,}")
    table.add_row("time", f"{outcome.seconds / 60:.1f} minutes")
    for name, value in outcome.measures.items():
        best = f" (best {outcome.best[name]:.4f})" if outcome.best else ""
        table.add_row(name, f"{value:.4f}{best}")
    table.add_row("parameters", f"{summary['parameters']:,}")
    table.add_row("run", Text(shown(path)))
    console.print(table)
    if outcome.reason in ("interrupted", "minutes"):
        again = [argument for argument in sys.argv[1:] if argument != "--resume"]
        line = shown(f"Go on with: gridlstm {shlex.join(again)} --resume")
        console.print(Text(line), soft_wrap=True)


def _name(experiment: Experiment) -> str:
    size = next(iter(flat(experiment).values()))
    if isinstance(experiment, Characters) and experiment.text is not None:
        size = Path(experiment.text).stem
    if isinstance(experiment, Translation) and experiment.train:
        size = Path(experiment.train[0]).stem
    return (
        f"{experiment.name}-{size}-{experiment.network}-{experiment.layers}x{experiment.hidden}"
        f"-seed{experiment.training.seed}"
    )


def _show(problem: Problem, count: int) -> None:
    console = Console(highlight=False)
    for line in problem.show(count):
        console.print(line, soft_wrap=True, markup=False)
