"""The runs of Figure 5. No PyTorch here."""

from dataclasses import replace

from gridlstm.experiments.memorization.options import PRESETS
from gridlstm.experiments.record import PaperFigure, RunPlan

__all__ = ["FIGURES"]

NETWORKS = ("tied-grid", "untied-grid", "tied-stacked", "untied-stacked")

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))

FIGURES = {
    "5": PaperFigure(
        about="Memorization: samples to reach an accuracy, against layers",
        draw="gridlstm.experiments.algorithmic.depth:draw_runs",
        plans={
            "smoke": RunPlan(
                replace(_smoke, training=replace(_smoke.training, samples=150, evaluate_every=75)),
                [{"network": NETWORKS, "layers": (1, 2)}],
            ),
            "laptop": RunPlan(
                replace(_laptop, training=replace(_laptop.training, samples=60_000, minutes=None)),
                [{"network": NETWORKS, "layers": (1, 4, 8, 16, 28, 43)}],
            ),
            "paper": RunPlan(_paper, [{"network": NETWORKS, "layers": tuple(range(1, 51, 3))}]),
        },
    )
}
