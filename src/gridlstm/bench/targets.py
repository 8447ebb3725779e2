"""What the measurements should reach, and whether those in a result file do. No PyTorch here."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rich.table import Table

from gridlstm.bench.plain_table import fill, make_plain_table
from gridlstm.bench.training_table import step_name

__all__ = ["OPTIMISER_HIDDEN", "judge", "target_table"]

OPTIMISER_BATCH, OPTIMISER_HIDDEN = 15, 256
"""Batch and hidden size of the steps in which the share of Muon is judged."""


class Measured(NamedTuple):
    """A figure of a result file, and the case and number of threads that it belongs to."""

    value: float
    where: str


class Target(NamedTuple):
    """What one figure, the worst of all cases, should reach.

    Attributes:
        name: what it is.
        wanted: the bound.
        least: whether it is a lower bound.
        find: finds all its figures in the sections of a result file.
    """

    name: str
    wanted: float
    least: bool
    find: Callable[[dict[str, Any]], Iterator[Measured]]


def judge(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The targets, with the worst figure that was measured for each, and where.

    Args:
        results: has the sections ``engine``, ``train``, ``search`` and ``generation``.
    """
    steps = dict.fromkeys((s["experiment"], s["optimizer"]) for s in results["train"]["steps"])
    judged = []
    for target in (*TARGETS, *(_step_target(*chosen) for chosen in steps)):
        worst = (min if target.least else max)(target.find(results), default=None)
        met = None
        if worst is not None:
            met = worst.value >= target.wanted if target.least else worst.value <= target.wanted
        judged.append(
            {
                "target": target.name,
                "wanted": f"{'>=' if target.least else '<='} {target.wanted:g}",
                "reached": None if worst is None else worst.value,
                "met": met,
                "where": None if worst is None else worst.where,
            }
        )
    return judged


def target_table(judged: list[dict[str, Any]]) -> Table:
    """All targets; the caption tells how many are not met."""
    missed = sum(target["met"] is False for target in judged)
    unknown = sum(target["met"] is None for target in judged)
    met = len(judged) - missed - unknown
    caption = f"{met} of {len(judged)} targets are met, {missed} are NOT met"
    caption += f", {unknown} were not measured." if unknown else "."
    words = {True: "yes", False: "NO", None: "-"}
    rows = [
        {
            "target": target["target"],
            "wanted": target["wanted"],
            "reached": _shown(target["reached"]),
            "met": words[target["met"]],
            "worst case": target["where"] or "",
        }
        for target in judged
    ]
    table = fill(make_plain_table("Targets", caption), rows, left=("target", "worst case"))
    for column in (table.columns[0], table.columns[-1]):
        column.no_wrap = False
    return table


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratios(case: str, upper: str, lower: str) -> Callable[[dict[str, Any]], Iterator[Measured]]:
    """Ratios of two contenders, in cases whose names begin so; without a name, in training cases."""

    def find(results: dict[str, Any]) -> Iterator[Measured]:
        for measured in results["engine"]["cases"]:
            if measured["name"].startswith(case) if case else measured["train"]:
                for threads, median in measured["median"].items():
                    if upper in median and lower in median:
                        yield Measured(median[upper] / median[lower], _where(measured["name"], threads))

    return find


def _untied(results: dict[str, Any]) -> Iterator[Measured]:
    single = _ratios("memorization-untied", "torch.nn.LSTM", "wavefront")(results)
    return (found for found in single if found.where.endswith(", 1 thread"))


def _memory(what: str) -> Callable[[dict[str, Any]], Iterator[Measured]]:
    """Ratios of memory: with recomputed gates over with kept ones."""

    def find(results: dict[str, Any]) -> Iterator[Measured]:
        for case in results["engine"]["cases"]:
            if case["memory"] and case["memory"][what]["keep"]:
                measured = case["memory"][what]
                yield Measured(measured["recompute"] / measured["keep"], case["name"])

    return find


def _optimiser(results: dict[str, Any]) -> Iterator[Measured]:
    wanted = ("muon", OPTIMISER_BATCH, OPTIMISER_HIDDEN)
    for step in results["train"]["steps"]:
        if (step["optimizer"], step["batch"], step["hidden"]) == wanted:
            yield Measured(step["shares"]["optimiser"], _where(step_name(step), step["threads"]))


def _step_target(experiment: str, optimizer: str) -> Target:
    def find(results: dict[str, Any]) -> Iterator[Measured]:
        for step in results["train"]["steps"]:
            if (step["experiment"], step["optimizer"]) == (experiment, optimizer):
                yield Measured(step["engine and products"], _where(step_name(step), step["threads"]))

    name = f"{experiment}, {optimizer}: share of engine and products in a step"
    return Target(name, 0.85, True, find)


def _generation(layers: int, hidden: int) -> Callable[[dict[str, Any]], Iterator[Measured]]:
    """The fastest way to generate at this size that gives the characters of the module."""

    def find(results: dict[str, Any]) -> Iterator[Measured]:
        for size in results["generation"]["sizes"]:
            if (size["layers"], size["hidden"]) == (layers, hidden):
                exact = {k: v for k, v in size["characters a second"].items() if "int8" not in k}
                name, speed = max(exact.items(), key=lambda item: item[1])
                yield Measured(speed, f"{name}, 1 thread")

    return find


def _where(name: str, threads: int | str) -> str:
    return f"{name}, {threads} thread{'s' if int(threads) > 1 else ''}"


TARGETS = (
    Target("optimiser: share of a step at batch 15, d 256", 0.08, False, _optimiser),
    Target("decoding: plain loop over engine", 1.15, True, _ratios("decoding", "loop", "wavefront")),
    Target("untied memorization: nn.LSTM over engine", 1.0, True, _untied),
    Target("generation, 4 x 128: characters per second", 8000, True, _generation(4, 128)),
    Target("generation, 6 x 256: characters per second", 1500, True, _generation(6, 256)),
    Target(
        "recompute: memory between the passes over that of kept gates", 0.45, False, _memory("held")
    ),
    Target("recompute: peak memory over that of kept gates", 0.45, False, _memory("peak")),
    Target(
        "recompute: time over that of kept gates",
        1.35,
        False,
        _ratios("", "wavefront, recompute", "wavefront"),
    ),
)
"""In addition, for each experiment and optimiser: how much of a step the engine and products take."""
