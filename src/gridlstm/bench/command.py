"""The command ``gridlstm bench``."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from gridlstm.bench.accuracy import kernel_errors
from gridlstm.bench.cases import CASES
from gridlstm.bench.contenders import CONTENDERS, has_bfloat16
from gridlstm.bench.generation import run_generation
from gridlstm.bench.growth import run_growth
from gridlstm.bench.measure import check, describe, measure
from gridlstm.bench.options import Bench
from gridlstm.bench.report import compare, ratio_table, save_plot
from gridlstm.bench.search import run_search
from gridlstm.engines.native.build import library
from gridlstm.files import write_json
from gridlstm.provenance import environment

__all__ = ["run"]


def run(options: Bench) -> None:
    """Runs what was asked for.

    Raises:
        ValueError: if an option makes no sense.
        DisagreementError: if a contender disagrees with the reference.
    """
    console = Console()
    if options.compare is not None:
        console.print(compare(*(_load(path) for path in options.compare)))
        return
    if options.growth:
        run_growth(options, console)
        return
    if options.generation:
        run_generation(options, console)
        return
    if options.search:
        run_search(options, console)
        return
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        expected = ", ".join(CASES)
        raise ValueError(f"--cases: expected some of {expected}, got {', '.join(unknown)}")
    cases = [CASES[name] for name in options.cases or CASES]
    names = [
        name for name in CONTENDERS if "bfloat16" not in name or options.bfloat16 or has_bfloat16()
    ]
    out = options.out or Path("runs/bench-engine.json")
    results: dict[str, Any] = {
        "kind": "bench",
        "environment": environment(),
        "kernel compiled": library() is not None,
        "kernel errors": kernel_errors(),
        "options": {
            "rounds": options.rounds,
            "patience": options.patience,
            "quick": options.quick,
            "threads": options.threads,
        },
        "cases": [],
    }
    with console.status("") as status:
        errors = {}
        for case in cases:
            status.update(f"{case.name}: comparing with the reference")
            errors[case.name] = check(case, CONTENDERS)
        for case in cases:
            chosen = case.smaller() if options.quick else case
            rounds = min(3, options.rounds) if options.quick else options.rounds
            seconds = measure(chosen, names, options.threads, rounds, options.patience, status.update)
            results["cases"].append(describe(chosen, errors[case.name], seconds))
            write_json(out, results)  # What is done is kept, whatever comes.
    save_plot(results, out)
    console.print(ratio_table(results))
    console.print(f"{out}, with a plot beside it")


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if found["kind"] != "bench":
            raise KeyError("kind")
        compare(found, found)  # It has what will be asked for.
    except (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"--compare: expected a result file of gridlstm bench, got {path} ({error!r})"
        ) from error
    return dict(found)
