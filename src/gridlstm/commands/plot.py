"""The command ``gridlstm plot``."""

import sys

from gridlstm.commands import translation
from gridlstm.commands.images import PICTURES, draw_picture
from gridlstm.commands.load import experiment_of, load
from gridlstm.commands.options import Plot
from gridlstm.errors import one_line
from gridlstm.experiments.algorithms import Judge
from gridlstm.experiments.options import Characters, Parity
from gridlstm.figures.curves import Curve, draw_curves, draw_depth, draw_solutions
from gridlstm.figures.memories import draw_memories
from gridlstm.figures.save import save_figure
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["run"]


def run(options: Plot) -> None:
    """Draws a figure from directories of runs alone."""
    runs = [RunDir.open(path) for path in options.runs]
    if options.kind in (*PICTURES, "memories", "alignment") and len(runs) > 1:
        raise RunError(f"--kind {options.kind}: expected one run, got {len(runs)}")
    if options.kind in PICTURES:
        figure = draw_picture(runs[0], options)
    elif options.kind == "memories":
        figure = draw_memories(*_judge(runs[0]), options.input, options.neurons)
    elif options.kind == "alignment":
        figure = translation.alignment(runs[0], options)
    else:
        curves = [_curve(run) for run in runs]
        if options.kind == "curve":
            figure = draw_curves(curves)
        elif options.kind == "depth":
            figure = draw_depth(curves, options.thresholds)
        else:
            figure = draw_solutions(curves)
    out = options.out or options.runs[0] / options.kind
    for path in save_figure(figure, out):
        sys.stdout.write(f"{one_line(path)}\n")


def _curve(run: RunDir) -> Curve:
    experiment, rows = experiment_of(run), run.metrics()
    if not rows:
        raise RunError(f"{run.path}: expected a run with an evaluation, got one without")
    for name in ("samples", experiment.measure):
        if any(name not in row for row in rows):
            raise RunError(f"{run.path / 'metrics.jsonl'}: expected {name} in every row")
    return Curve(
        name=one_line(run.path.name),
        experiment=experiment.name,
        network=experiment.network,
        layers=experiment.layers,
        hidden=experiment.hidden,
        bits=experiment.bits if isinstance(experiment, Parity) else None,
        start=experiment.start if isinstance(experiment, Parity) else None,
        samples=[row["samples"] for row in rows],
        measure=experiment.measure,
        values=[row[experiment.measure] for row in rows],
        characters=experiment.chunk if isinstance(experiment, Characters) else None,
    )


def _judge(run: RunDir) -> tuple[Judge, int]:
    experiment, _, network = load(run)
    if isinstance(network, Judge) and isinstance(network.body, DeepGridLSTM):
        assert isinstance(experiment, Parity), "only parity is judged"
        return network, experiment.bits
    raise RunError(f"{run.path}: expected a 1-LSTM trained on parity, got something else")
