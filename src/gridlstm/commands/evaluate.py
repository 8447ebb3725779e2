"""The command ``gridlstm eval``."""

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridlstm.commands import translation
from gridlstm.commands.load import load
from gridlstm.commands.options import Eval
from gridlstm.errors import one_line
from gridlstm.pipes import print_json
from gridlstm.provenance import environment
from gridlstm.training.rundir import RunDir

__all__ = ["run"]


def run(options: Eval) -> None:
    """Measures a network, tells it and writes it into the run's ``evaluation.json``.

    That of an ensemble is written into ``ensemble.json``.
    """
    run = RunDir.open(options.run)
    trained = load(run, options.data)
    network, further = trained.network, [RunDir.open(path).path.name for path in options.ensemble]
    if further or options.beam is not None:
        network = translation.adapt(trained, options)
    with torch.no_grad():
        measures = trained.problem.test(network, options.samples, options.streams)
    found = {"run": run.path.name, "streams": options.streams, **measures}
    name = "evaluation.json"
    if further:
        name, found["ensemble"] = "ensemble.json", further
    run.write_result(name, {**found, "environment": environment()})
    found = {name: value for name, value in found.items() if not isinstance(value, list)}
    console = Console()
    if not console.is_terminal:
        print_json(found)
        return
    table = Table(show_header=False)
    for name, value in found.items():
        table.add_row(name, f"{value:.4f}" if isinstance(value, float) else Text(one_line(value)))
    console.print(table)
