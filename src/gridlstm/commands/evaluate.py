"""The command ``gridlstm eval``."""

import torch
from rich.console import Console
from rich.table import Table

from gridlstm.commands.load import load
from gridlstm.commands.options import Eval
from gridlstm.provenance import environment
from gridlstm.training.reporter import say
from gridlstm.training.rundir import RunDir

__all__ = ["run"]


def run(options: Eval) -> None:
    """Measures a network, tells it and writes it into the run's ``evaluation.json``."""
    run = RunDir.open(options.run)
    trained = load(run, options.data)
    with torch.no_grad():
        measures = trained.problem.test(trained.network, options.samples, options.streams)
    found = {"run": run.path.name, "streams": options.streams, **measures}
    run.note("evaluation.json", {**found, "environment": environment()})
    console = Console()
    if not console.is_terminal:
        say(found)
        return
    table = Table(show_header=False)
    for name, value in found.items():
        table.add_row(name, f"{value:.4f}" if isinstance(value, float) else str(value))
    console.print(table)
