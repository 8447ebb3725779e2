"""The command ``gridlstm eval``."""

from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridlstm.errors import one_line
from gridlstm.experiments.trained import load, record_and_options
from gridlstm.pipes import print_json
from gridlstm.provenance import environment
from gridlstm.training.rundir import RunDir

__all__ = ["run"]


def run(options: Any) -> None:
    """Tests a network, prints the measurements and writes them to the run's directory.

    The file is ``evaluation.json``, or ``ensemble.json`` for an ensemble. It also has the
    example that ``train`` keeps, which older runs lack.
    """
    run = RunDir.open(options.run)
    test_options = options.options_for(record_and_options(run)[0])
    _, problem, network = load(run, options.data)
    with torch.no_grad():
        measures = problem.test(network, options.samples, test_options)
        shown = list(problem.demonstrate(network))
    measures = {"run": run.path.name, **measures, "demonstration": shown}
    run.write_result(f"{test_options.result}.json", {**measures, "environment": environment()})
    measures = {name: value for name, value in measures.items() if not isinstance(value, list)}
    console = Console()
    if not console.is_terminal:
        print_json(measures)
        return
    table = Table(show_header=False)
    for name, value in measures.items():
        table.add_row(name, f"{value:.4f}" if isinstance(value, float) else Text(one_line(value)))
    console.print(table)
