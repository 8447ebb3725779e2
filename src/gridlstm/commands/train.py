"""The command ``gridlstm train``."""

import logging
import shlex
import shutil
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import nn

from gridlstm.commands.options import RunOptions, Train
from gridlstm.engines.native import kernel_name
from gridlstm.errors import one_line
from gridlstm.experiments.memory import check_memory
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import experiment_of, flat, from_flat
from gridlstm.pipes import best_effort_stdout, print_json
from gridlstm.training.problem import Problem
from gridlstm.training.processes import Processes, check_device
from gridlstm.training.reporter import Reporter
from gridlstm.training.rundir import DEMONSTRATION, RunDir, RunError
from gridlstm.training.stop import StopRequest, stop_on_signals
from gridlstm.training.trackers import check_tracker
from gridlstm.training.trainer import Outcome, Trainer, TrainingError
from gridlstm.training.weights import make_on_meta, save_weights

__all__ = ["run"]

_log = logging.getLogger("gridlstm")


def run(options: Train[Any]) -> None:
    """Trains a network, or prints samples.

    Raises:
        ValueError: if an option is impossible here, or the data is missing or damaged.
        ExpectedError: if the run cannot be started or resumed, or fails.
        SystemExit: 128 plus its number if a signal stops it.
    """
    settings, run_options = options.experiment, options.run
    experiment = experiment_of(settings)
    if run_options.preset not in experiment.presets:
        expected = ", ".join(experiment.presets)
        raise ValueError(f"preset: expected one of {expected}, got {run_options.preset}")
    check_tracker(run_options.track)
    problem = experiment.make_problem(settings, run_options.data)
    if run_options.show:
        check_memory(settings, run_options.show)
        _print_samples(problem, run_options.show)
        return
    check_device(run_options.device)
    check_memory(settings, settings.training.batch, make_on_meta(problem.network))
    if run_options.threads is not None:
        torch.set_num_threads(run_options.threads)
    path = run_options.out or Path("runs") / experiment.run_name(settings)
    processes = Processes.join(run_options.device)
    try:
        if settings.training.batch % processes.count:
            message = f"batch: expected a multiple of the {processes.count} processes, got"
            raise RunError(f"{message} {settings.training.batch}")
        with stop_on_signals() as stop:
            _train(experiment, settings, problem, path, run_options, processes, stop)
    finally:
        processes.leave()
    if stop.signal is not None:
        raise SystemExit(128 + stop.signal)


def _train(
    experiment: Experiment[Any],
    settings: Any,
    problem: Problem,
    path: Path,
    run_options: RunOptions,
    processes: Processes,
    stop: StopRequest,
) -> None:
    config = {"experiment": experiment.name, "options": flat(settings), "data": problem.data()}
    with RunDir(path).lock() if processes.first else nullcontext():
        run = RunDir.prepare(
            path,
            config,
            resume=run_options.resume,
            overwrite=run_options.overwrite,
            defaults=flat(from_flat(experiment, {})),
        )
        trainer = Trainer(
            problem,
            settings.training,
            run.checkpoints,
            processes,
            fingerprint=run.fingerprint(),
            fresh=not run_options.resume,
        )
        trainer.load_old_best(run.old_best, run.model)
        if processes.first:
            _begin_session(run, trainer, processes.count)
        try:
            reported = run if processes.first else None
            with Reporter(reported, trainer, stop, run_options.track) as reporter:
                outcome = trainer.run(reporter)
                if processes.first:  # Before a tracker ends, which may wait for a network.
                    trainer.use_best()
                    summary = {"run": path.name, **asdict(outcome), **_sizes(trainer.network)}
                    run.finish_session(summary, save_weights(trainer.network, run.model))
                    shown = _demonstrate(trainer) if outcome.reason != "interrupted" else []
                    if shown:
                        run.write_result(DEMONSTRATION, {"lines": shown})
        except RunError as error:  # While running, an error of writing has another exit code.
            raise TrainingError(str(error)) from error
        if processes.first:
            _print_summary(summary, outcome, path)
            if Console().is_terminal and outcome.reason != "interrupted":
                _print_next(experiment, shown, path)


def _begin_session(run: RunDir, trainer: Trainer, count: int) -> None:
    """Records a session, and warns if it differs from the one before."""
    details = {"threads": torch.get_num_threads(), "processes": count, "kernel": kernel_name()}
    for session in run.sessions()[-1:] if trainer.step else []:
        changed = [name for name, value in details.items() if session.get(name, value) != value]
        if changed:
            _log.warning("not bit for bit: %s differ from the last session", " and ".join(changed))
    run.begin_session(trainer.step, **details)


def _sizes(network: nn.Module) -> dict[str, int]:
    return {"parameters": sum(p.numel() for p in network.parameters())}


def _print_summary(summary: dict[str, Any], outcome: Outcome, path: Path) -> None:
    console = Console(file=best_effort_stdout())
    if not console.is_terminal:
        print_json({"end": summary}, best_effort_stdout())
        return
    table = Table(show_header=False)
    table.add_row("ended", outcome.reason)
    table.add_row("samples", f"{outcome.samples:,}")
    table.add_row("time", f"{outcome.seconds / 60:.1f} minutes")
    for name, value in outcome.measures.items():
        best = f" (best {outcome.best[name]:.4f})" if outcome.best else ""
        table.add_row(name, f"{value:.4f}{best}")
    table.add_row("parameters", f"{summary['parameters']:,}")
    table.add_row("run", Text(one_line(path)))
    console.print(table)
    if outcome.reason in ("interrupted", "minutes"):
        arguments = [a for a in sys.argv[1:] if a not in ("--resume", "--overwrite")]
        line = one_line(f"Continue it with: {_program()} {shlex.join(arguments)} --resume")
        console.print(Text(line), soft_wrap=True)


@torch.no_grad()
def _demonstrate(trainer: Trainer) -> list[str]:
    """Lines that show what the network does with a sample that it has never seen."""
    return list(trainer.problem.demonstrate(trainer.network.cpu().eval()))


def _print_next(experiment: Experiment[Any], shown: list[str], path: Path) -> None:
    """Prints an example of what the network does, and commands to try next."""
    lines = ["", "What it does with an unseen sample:", "", *(f"  {line}" for line in shown)]
    lines += ["", "Try next:", ""]
    program, run = _program(), one_line(shlex.quote(str(path)))
    suggestions = (
        "eval {run}  # measure it on test data",
        "report {run}  # its curves, samples and options as a page for a browser",
        experiment.next_command,
    )
    commands = [f"{program} {arguments.format(run=run)}".split("  # ") for arguments in suggestions]
    width = max(len(command) for command, _ in commands)
    lines += (f"  {command:{width}}  # {about}" for command, about in commands)
    console = Console(file=best_effort_stdout(), highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


def _program() -> str:
    """How to call this program from a shell in the same directory."""
    called = Path(sys.argv[0])
    if called.stem == "__main__":
        return f"{shlex.quote(sys.executable)} -m gridlstm"
    installed = shutil.which("gridlstm")
    if not called.exists() or (installed is not None and called.samefile(installed)):
        return "gridlstm"
    return shlex.quote(str(called))


def _print_samples(problem: Problem, count: int) -> None:
    console = Console(highlight=False)
    for line in problem.show(count):
        console.print(line, soft_wrap=True, markup=False)
