"""The table of commands: the options of each, and the function that runs it. No PyTorch here."""

from collections.abc import Mapping

from gridlstm.bench.table import BENCHMARKS
from gridlstm.command import Command
from gridlstm.commands.options import (
    CollectOptions,
    Eval,
    ExportOptions,
    GalleryOptions,
    ListOptions,
    Train,
)
from gridlstm.commands.report_options import ReportOptions, WatchOptions
from gridlstm.commands.reproduce_options import ReproduceOptions
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.figures.options import CurveOptions
from gridlstm.pages.demo.options import DemoOptions
from gridlstm.sweeps.options import Sweep

__all__ = ["COMMANDS"]

_FIGURES = {
    "curve": Command(CurveOptions, "gridlstm.experiments.curve:plot"),
    **{kind: figure for record in EXPERIMENTS.values() for kind, figure in record.figures.items()},
}

COMMANDS: Mapping[str, Command | Mapping[str, Command]] = {
    "train": Command(Train, "gridlstm.commands.train:run"),
    "sweep": Command(Sweep, "gridlstm.commands.sweep:run"),
    "reproduce": Command(ReproduceOptions, "gridlstm.commands.reproduce:run"),
    "eval": Command(Eval, "gridlstm.commands.evaluate:run"),
    **{name: command for record in EXPERIMENTS.values() for name, command in record.commands.items()},
    "report": Command(ReportOptions, "gridlstm.commands.report:run"),
    "watch": Command(WatchOptions, "gridlstm.commands.watch:run"),
    "export": Command(ExportOptions, "gridlstm.commands.export_network:run"),
    "demo": Command(DemoOptions, "gridlstm.pages.demo.demo_page:write_demo"),
    "plot": _FIGURES,
    "list": Command(ListOptions, "gridlstm.commands.overview:list_all"),
    "collect": Command(CollectOptions, "gridlstm.commands.overview:collect"),
    "gallery": Command(GalleryOptions, "gridlstm.commands.gallery:run"),
    "bench": BENCHMARKS,
}
"""Commands by name; ``plot`` and ``bench`` are groups of commands."""
