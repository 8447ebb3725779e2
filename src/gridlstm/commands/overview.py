"""The commands ``gridlstm list`` and ``gridlstm collect``. No PyTorch here, so that they are fast."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridlstm.commands.options import CollectOptions, ListOptions
from gridlstm.errors import one_line
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.experiments.results import collect_run
from gridlstm.files import write_json
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["collect", "list_all"]


class Terminal(Console):
    """Standard output. Lines are not wrapped unless it is a terminal."""

    def __init__(self) -> None:
        super().__init__(highlight=False)
        if not self.is_terminal:
            self.width = 10_000

    def on_broken_pipe(self) -> None:
        """Leaves the exception to :func:`~gridlstm.commands.exit_codes.exit_on_error`."""
        raise


def list_all(options: ListOptions) -> None:
    """Prints the experiments with their presets, then the runs."""
    console = Terminal()
    for name, experiment in EXPERIMENTS.items():
        console.print(f"[bold]{name}[/bold]: {experiment.about}")
        for preset, preset_options in experiment.presets.items():
            samples = f"at most {preset_options.training.samples:,} samples"
            console.print(f"  {preset:7} {experiment.describe(preset_options)}, {samples}")
    paths = sorted(path.parent for path in options.folder.rglob("config.json"))
    if not paths:
        console.print(Text(f"No runs below {one_line(options.folder)} yet."))
        return
    table = Table(title=Text(f"Runs below {one_line(options.folder)}"), title_justify="left")
    for title in ("run", "experiment", "state", "samples", "measured"):
        right = title in ("samples", "measured")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for path in paths:
        cells = (path.relative_to(options.folder), *_state(RunDir(path)))
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    console.print(table)


def _state(run: RunDir) -> tuple[str, str, str, str]:
    try:
        config, rows, summary = run.config(), run.metrics(), run.summary()
    except RunError as error:
        return "", str(error), "", ""
    last = rows[-1] if rows else {}
    experiment = EXPERIMENTS.get(config["experiment"])
    measure = "" if experiment is None else experiment.measure.name
    state = "not ended" if summary is None else str(summary.get("reason"))
    return (
        config["experiment"],
        state,
        f"{last.get('samples', 0):,}",
        f"{measure} {last[measure]:.4f}" if measure in last else "",
    )


def collect(options: CollectOptions) -> None:
    """Writes what is worth keeping of runs into one file."""
    runs = [collect_run(RunDir.open(path)) for path in options.runs]
    write_json(options.out, {"kind": "runs", "runs": runs})
    Terminal().print(Text(f"{one_line(options.out)}: {len(runs)} runs"))
