"""Which networks solved how many bits, as a table (Figure 9). No PyTorch here."""

from collections.abc import Sequence

from gridlstm.experiments.results import CollectedRun, Table, span

__all__ = ["solutions_table"]


def solutions_table(runs: Sequence[CollectedRun]) -> Table:
    """Thousands of samples until a parity was solved: one row per network, one column per size.

    A cell also says how many of its runs did not solve the task. Runs in a row differ in nothing but
    size and seed.
    """
    sizes = sorted({run["options"]["bits"] for run in runs})
    rows: dict[tuple[int, str, str], dict[int, list[CollectedRun]]] = {}
    for run in sorted(runs, key=_order):
        options = run["options"]
        network = f"{options['network'].replace('-', ' ')}, {options['layers']} x {options['hidden']}"
        key = (options["layers"], network, f"{options['rate']:g}, start {options['start']}")
        rows.setdefault(key, {}).setdefault(options["bits"], []).append(run)
    cells = [
        [network, settings, *(_cell(by_size.get(size, [])) for size in sizes)]
        for (_, network, settings), by_size in rows.items()
    ]
    titles = ["network, layers x d", "rate", *(f"{size} bits" for size in sizes)]
    return Table(titles, cells, note=_accuracy(runs))


def _order(run: CollectedRun) -> tuple[bool, int]:
    """Grids first, then by layers."""
    return "grid" not in run["options"]["network"], run["options"]["layers"]


def _accuracy(runs: Sequence[CollectedRun]) -> str:
    """How accurate the networks are that solved the task, on further strings."""
    solved = [run for run in runs if run["summary"]["reason"] == "solved" and run["evaluation"]]
    accuracies = [100 * run["evaluation"]["accuracy"] for run in solved]
    strings = span([run["evaluation"]["samples"] for run in solved], ",d")
    values = span(accuracies, ".1f", " %")
    return f"Accuracy of the networks that solved it, on {strings} further strings: {values}."


def _cell(runs: Sequence[CollectedRun]) -> str:
    summaries = [run["summary"] for run in runs]
    solved = [summary["samples"] / 1000 for summary in summaries if summary["reason"] == "solved"]
    failed = len(runs) - len(solved)
    words = [span(solved, ".0f")] if solved else []
    return ", ".join([*words, *([f"{failed} not"] if failed else [])])
