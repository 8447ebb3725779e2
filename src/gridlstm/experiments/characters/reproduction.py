"""The runs of Figure 6. No PyTorch here."""

from dataclasses import replace

from gridlstm.experiments.characters.options import PRESETS
from gridlstm.experiments.record import PaperFigure, RunPlan

__all__ = ["FIGURES"]

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))
_long = replace(_laptop, training=replace(_laptop.training, batch=50, samples=600_000, minutes=None))
_brief = replace(
    _smoke, validated=500, training=replace(_smoke.training, samples=32, evaluate_every=16)
)

FIGURES = {
    "6": PaperFigure(
        about="Wikipedia: bits per character of networks with equally many parameters",
        draw="gridlstm.experiments.curve:draw_runs",
        plans={
            "smoke": RunPlan(_brief, [{"network": ("tied-grid", "untied-stacked")}]),
            "laptop": RunPlan(
                _long,
                [
                    {"network": ("tied-grid",)},
                    {"network": ("untied-stacked",), "layers": (3,), "hidden": (226,)},
                ],
            ),
            "paper": RunPlan(_paper, [{"network": ("tied-grid",)}]),
        },
    )
}
