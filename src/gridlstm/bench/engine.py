"""``gridlstm bench engine``: a step of the wavefront engine, and of others next to it."""

from typing import Any

from rich.console import Console
from rich.table import Table

from gridlstm.bench.accuracy import kernel_errors
from gridlstm.bench.cases import CASES
from gridlstm.bench.contenders import CONTENDERS, has_bfloat16
from gridlstm.bench.measure import check, describe, measure
from gridlstm.bench.options import EngineBench
from gridlstm.bench.plain_table import make_plain_table
from gridlstm.bench.rates_figure import draw_rates
from gridlstm.engines.native.build import library
from gridlstm.figures.save import save_figure
from gridlstm.files import write_json
from gridlstm.provenance import environment

__all__ = ["run"]

# Column title, and the two contenders whose times it divides.
RATIOS = (
    ("prod.", "wavefront", "products"),
    ("rec.", "wavefront, recompute", "wavefront"),
    ("bf16", "wavefront, bfloat16", "wavefront"),
    ("loop", "loop", "wavefront"),
    ("gates", "gate by gate", "wavefront"),
    ("lay.", "layer by layer", "wavefront"),
    ("LSTM", "torch.nn.LSTM", "wavefront"),
)
TITLES = ["case", "thr", "ms", "GF/s", *(title for title, _, _ in RATIOS)]


def run(options: EngineBench) -> None:
    """Times the cases, prints a table, and writes a result file and a figure.

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
    console = Console()
    with console.status("") as status:
        errors = {}
        for case in cases:
            status.update(f"{case.name}: comparing with the reference")
            errors[case.name] = check(case, CONTENDERS)
        for case in cases:
            timed = case.smaller() if options.quick else case
            seconds = measure(timed, names, options.threads, rounds, options.patience, status.update)
            results["cases"].append(describe(timed, errors[case.name], seconds))
            write_json(options.out, results)  # If a later case fails, these results are kept.
    save_figure(draw_rates(results["cases"]), options.out)
    console.print(_table(results))
    console.out(f"{options.out}, with a figure beside it", highlight=False)


def _table(results: dict[str, Any]) -> Table:
    """For each case and number of threads: milliseconds, GFLOP/s, and the ratios."""
    table = make_plain_table(
        title="A step of the wavefront engine, compared with others",
        caption="prod.: time of wavefront over that of its matrix products alone. To the right, the "
        "time of others over that of wavefront: recomputing, in bfloat16, a plain loop over blocks, a "
        "product per gate, layer by layer, torch.nn.LSTM of equal FLOPs. The file has more.",
    )
    rows = []
    for case in results["cases"]:
        for threads, median in case["median"].items():
            seconds = median["wavefront"]
            milliseconds = f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"
            row = [case["name"], threads, milliseconds, f"{case['flops'] / seconds / 1e9:.0f}"]
            for _, upper, lower in RATIOS:
                ratio = median[upper] / median[lower] if upper in median else None
                row.append("" if ratio is None else f"{ratio:.3g}" if ratio > 10 else f"{ratio:.2f}")
            rows.append(row)
    columns = [k for k in range(len(TITLES)) if any(row[k] for row in rows)]
    for k in columns:
        table.add_column(TITLES[k], justify="left" if k == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[k] for k in columns))
    return table
