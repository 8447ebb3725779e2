"""``gridlstm bench all``: one file from one run, with the targets and what was reached."""

from typing import Any

from rich.console import Console

from gridlstm.bench.beam_search_speed import search_section, search_table
from gridlstm.bench.engine import engine_tables, measure_engine
from gridlstm.bench.generation import generation_section, generation_table
from gridlstm.bench.options import AllBench, EngineBench, GenerationBench, SearchBench, TrainBench
from gridlstm.bench.rates_figure import draw_rates
from gridlstm.bench.targets import OPTIMISER_HIDDEN, judge, target_table
from gridlstm.bench.training_steps import StepChoice, choose_steps, find_data, measure_training
from gridlstm.bench.training_table import train_tables
from gridlstm.figures.save import save_figure
from gridlstm.files import write_json
from gridlstm.provenance import environment

__all__ = ["run"]

QUICK_CASES = ("parity", "decoding-8")
"""The cases of a quick run."""
QUICK_EXPERIMENTS = ("addition", "parity")


def run(options: AllBench) -> None:
    """Runs the benchmarks, prints their tables and the targets, and writes a file and a figure.

    Raises:
        ValueError: if data is missing.
        DisagreementError: if a contender disagrees with the reference.
    """
    console = Console()
    common: dict[str, Any] = {
        "rounds": min(2, options.rounds) if options.quick else options.rounds,
        "quick": options.quick,
        "out": options.out,
    }
    timed = {**common, "threads": options.threads, "patience": options.patience}
    engine = EngineBench(**timed, cases=options.cases or (QUICK_CASES if options.quick else ()))
    experiments = QUICK_EXPERIMENTS if options.quick else ()
    train = TrainBench(**timed, experiments=experiments, data=options.data)
    search = SearchBench(**{**timed, "threads": options.threads[:1]})
    results: dict[str, Any] = {
        "kind": "all",
        "environment": environment(),
        "options": {"rounds": common["rounds"], "patience": options.patience, "quick": options.quick},
    }

    def save(section: str, found: dict[str, Any]) -> None:
        results[section] = found
        write_json(options.out, results)  # If a later benchmark fails, these results are kept.

    choices = _steps(train)
    with console.status("looking for data") as status:
        find_data(choices, train)  # It would be a pity to miss it after ten minutes.
        tell = status.update
        save("engine", measure_engine(engine, tell, lambda found: save("engine", found)))
        save("train", measure_training(train, choices, tell, lambda found: save("train", found)))
        save("search", search_section(search, tell))
        save("generation", generation_section(GenerationBench(**common), tell))
    results["targets"] = judge(results)
    write_json(options.out, results)
    save_figure(draw_rates(results["engine"]["cases"]), options.out)
    tables = [*engine_tables(results["engine"]), *train_tables(results["train"])]
    tables += [search_table(results["search"]), generation_table(results["generation"])]
    for table in (*tables, target_table(results["targets"])):
        console.print(table)
    console.out(f"{options.out}, with a figure beside it", highlight=False)


def _steps(options: TrainBench) -> list[StepChoice]:
    """Each step with its preset's optimiser and with Muon, and the one that Muon is judged by."""
    choices = []
    for choice in choose_steps(options):
        choices.append(choice)
        if choice.preset_options.training.optimizer != "muon":
            choices.append(choice._replace(optimizer="muon"))
    preset = "smoke" if options.quick else "paper"
    return [*choices, StepChoice("addition", preset, "muon", OPTIMISER_HIDDEN)]
