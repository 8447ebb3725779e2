"""The benchmarks by name: the subcommands of ``gridlstm bench``. No PyTorch here."""

from gridlstm.bench import options
from gridlstm.command import Command

__all__ = ["BENCHMARKS"]

BENCHMARKS = {
    "all": Command(options.AllBench, "gridlstm.bench.everything:run"),
    "engine": Command(options.EngineBench, "gridlstm.bench.engine:run"),
    "train": Command(options.TrainBench, "gridlstm.bench.training_steps:run"),
    "growth": Command(options.GrowthBench, "gridlstm.bench.growth:run"),
    "generation": Command(options.GenerationBench, "gridlstm.bench.generation:run"),
    "search": Command(options.SearchBench, "gridlstm.bench.beam_search_speed:run"),
    "compare": Command(options.CompareBench, "gridlstm.bench.compare:run"),
}
