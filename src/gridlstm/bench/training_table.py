"""The tables of ``gridlstm bench train``. No PyTorch here."""

from typing import Any

from rich.table import Table

from gridlstm.bench.plain_table import fill, make_plain_table
from gridlstm.bench.summary import UNDERCUT, floor_text, ratio_text, spread_text

__all__ = ["PARTS", "step_name", "train_tables"]

PARTS = {"forward": "fwd", "backward": "bwd", "clipping": "clip", "optimiser": "opt"}
"""The parts of an update in the trainer, and short names. Making the samples belongs to ``forward``."""


def step_name(step: dict[str, Any]) -> str:
    """What tells a training step from others, except for the number of threads."""
    bfloat16 = ", bfloat16" if step["bfloat16"] else ""
    return f"{step['experiment']}, {step['preset']}, {step['optimizer']}{bfloat16}"


def train_tables(results: dict[str, Any]) -> list[Table]:
    """For each step: its time beside the limits, and the shares of its parts."""
    limits = make_plain_table(
        title="A training step",
        caption="n: rounds. ±: half their range, in percent. peak: rate over that of a large product. "
        "prod.: time over that of its matrix products alone. engine: share of the step that is spent "
        "in the engine, which is the rate of the step over that of the engine. + prod.: share of the "
        "engine and of the network's other products (1*: all of it, as far as can be measured). "
        + UNDERCUT,
    )
    parts = make_plain_table(
        title="The parts of a training step, as shares of it",
        caption="eval: the share of evaluations in the time of a run. ±: in percent.",
    )
    first, second = [], []
    for step in results["steps"]:
        seconds, share, both = step["seconds"], step["share of limit"], step["engine and products"]
        row = {"step": step_name(step), "thr": str(step["threads"])}
        update = seconds["update"]
        first.append(
            {
                **row,
                "n": str(len(update)),
                "ms": f"{1e3 * step['median']['update']:.0f}",
                "±": spread_text(update),
                "peak": "" if share is None else f"{share:.2f}",
                "prod.": floor_text(update, seconds["products"]),
                "engine": ratio_text(seconds["engine"], update) if step["engine"] else "",
                "+ prod.": "1*" if both > 1 else f"{both:.2f}",
            }
        )
        shares = {short: ratio_text(seconds[part], update) for part, short in PARTS.items()}
        second.append({**row, **shares, "eval": f"{step['evaluation share']:.2f}"})
    return [fill(limits, first, left=("step",)), fill(parts, second, left=("step",))]
