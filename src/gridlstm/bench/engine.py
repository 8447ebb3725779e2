"""``gridlstm bench engine``: a step of the wavefront engine, and of others next to it."""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from gridlstm.bench.accuracy import kernel_errors
from gridlstm.bench.cases import CASES
from gridlstm.bench.contenders import CONTENDERS
from gridlstm.bench.limits import limit_flops
from gridlstm.bench.measure import check, describe, measure, measure_memory
from gridlstm.bench.options import EngineBench
from gridlstm.bench.plain_table import fill, make_plain_table
from gridlstm.bench.rates_figure import draw_rates
from gridlstm.bench.summary import UNDERCUT, floor_text, ratio_text, spread_text
from gridlstm.engines.native.build import library
from gridlstm.figures.save import save_figure
from gridlstm.files import write_json
from gridlstm.processor import has_bfloat16
from gridlstm.provenance import environment

__all__ = ["engine_tables", "measure_engine", "run"]

OTHERS = {
    "loop": "loop",
    "gates": "gate by gate",
    "lay.": "layer by layer",
    "LSTM": "torch.nn.LSTM",
    "comp.": "torch.nn.LSTM, torch.compile",
    "bf16": "wavefront, bfloat16",
}
"""Contenders whose time is divided by that of the engine, by the titles of their columns."""

Save = Callable[[dict[str, Any]], None]


def run(options: EngineBench) -> None:
    """Times the cases, prints a table, and writes a result file and a figure.

    Raises:
        ValueError: if a case is unknown.
        DisagreementError: if a contender disagrees with the reference.
    """
    console, head = Console(), {"kind": "bench", "environment": environment()}
    with console.status("") as status:
        results = measure_engine(
            options, status.update, lambda section: write_json(options.out, {**head, **section})
        )
    save_figure(draw_rates(results["cases"]), options.out)
    for table in engine_tables(results):
        console.print(table)
    console.out(f"{options.out}, with a figure beside it", highlight=False)


def measure_engine(
    options: EngineBench, progress: Callable[[str], None], save: Save = lambda _: None
) -> dict[str, Any]:
    """The times of all cases.

    Args:
        options: which cases, and how.
        progress: is told what is measured.
        save: is given the results so far, after every case.

    Raises:
        ValueError: if a case is unknown.
        DisagreementError: if a contender disagrees with the reference.
    """
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        raise ValueError(f"--cases: expected some of {', '.join(CASES)}, got {', '.join(unknown)}")
    cases = [CASES[name] for name in options.cases or CASES]
    names = [
        name for name in CONTENDERS if "bfloat16" not in name or options.bfloat16 or has_bfloat16()
    ]
    rounds = min(3, options.rounds) if options.quick else options.rounds
    results: dict[str, Any] = {
        "kernel compiled": library() is not None,
        "kernel errors": kernel_errors(),
        "options": {
            "rounds": options.rounds,
            "patience": options.patience,
            "quick": options.quick,
            "threads": options.threads,
        },
        "limit flops": limit_flops(quick=options.quick),
        "cases": [],
    }
    errors = {}
    for case in cases:
        progress(f"{case.name}: comparing with the reference")
        errors[case.name] = check(case, CONTENDERS)
    for case in cases:
        timed = case.smaller() if options.quick else case
        seconds = measure(
            timed,
            names,
            options.threads,
            rounds,
            options.patience,
            quick=options.quick,
            progress=progress,
        )
        progress(f"{case.name}: memory")
        memory = measure_memory(timed) if case.train else None
        described = describe(timed, errors[case.name], seconds, memory, quick=options.quick)
        results["cases"].append(described)
        save(results)  # If a later case fails, these results are kept.
    return results


def engine_tables(results: dict[str, Any]) -> list[Table]:
    """The engine beside the limits, and others beside the engine."""
    limits = make_plain_table(
        title="A step of the wavefront engine",
        caption="n: rounds. ±: half the range of the rounds, in percent. peak: rate over that of a "
        "large product. prod.: time over that of its matrix products alone. recompute: time and peak "
        "memory with recomputed gates over those with kept ones. " + UNDERCUT,
    )
    others = make_plain_table(
        title="The time of others over that of the wavefront engine",
        caption="n: rounds of the engine, and of a loop. loop: over blocks. gates: a product per gate. "
        "lay.: layer by layer. LSTM: torch.nn.LSTM of equal FLOPs. comp.: that with torch.compile. "
        "bf16: the engine in bfloat16. ±: in percent. The file has more.",
    )
    first, second = [], []
    for case in results["cases"]:
        for threads, seconds in case["seconds"].items():
            median, engine = case["median"][threads]["wavefront"], seconds["wavefront"]
            milliseconds = f"{median * 1e3:.3g}" if median < 0.1 else f"{median * 1e3:.0f}"
            share, memory = case["share of limit"][threads]["wavefront"], case["memory"]
            again = seconds["wavefront, recompute"]
            row = {"case": case["name"], "thr": threads}
            first.append(
                {
                    **row,
                    "n": str(len(engine)),
                    "ms": milliseconds,
                    "±": spread_text(engine),
                    "GF/s": f"{case['flops'] / median / 1e9:.0f}",
                    "peak": "" if share is None else f"{share:.2f}",
                    "prod.": floor_text(engine, seconds["products"]),
                    "recompute": ratio_text(again, engine) if case["train"] else "",
                    "mem.": f"{memory['ratio']:.2f}" if memory and memory["ratio"] else "",
                }
            )
            columns = {
                title: ratio_text(seconds[name], engine) if name in seconds else ""
                for title, name in OTHERS.items()
            }
            counts = f"{len(engine)}, {len(seconds['loop'])}" if "loop" in seconds else str(len(engine))
            second.append({**row, "n": counts, **columns})
    return [fill(limits, first, left=("case",)), fill(others, second, left=("case",))]
