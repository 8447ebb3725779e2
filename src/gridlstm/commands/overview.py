"""The commands ``gridlstm list`` and ``gridlstm collect``. No PyTorch here: they start at once."""

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
    """Standard output: as wide as it is, or as lines need where there is no terminal."""

    def __init__(self) -> None:
        super().__init__(highlight=False)
        if not self.is_terminal:
            self.width = 10_000

    def on_broken_pipe(self) -> None:
        """Leaves it to the door."""
        raise


def list_all(options: ListOptions) -> None:
    """Experiments with their presets, then runs."""
    console = Terminal()
    for name, experiment in EXPERIMENTS.items():
        console.print(f"[bold]{name}[/bold]: {experiment.about}")
        for preset, chosen in experiment.presets.items():
            samples = f"at most {chosen.training.samples:,} samples"
            console.print(f"  {preset:7} {experiment.describe(chosen)}, {samples}")
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
    known = EXPERIMENTS.get(config["experiment"])
    measure = "" if known is None else known.measure.name
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
