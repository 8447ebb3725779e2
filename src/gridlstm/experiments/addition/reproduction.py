"""The runs of Figure 4. No PyTorch here."""

from dataclasses import replace

from gridlstm.experiments.addition.options import PRESETS
from gridlstm.experiments.record import PaperFigure, RunPlan
from gridlstm.training.settings import Training

__all__ = ["FIGURES"]

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))
_filling = replace(
    _laptop,
    digits=15,
    fill=200_000,
    training=Training(
        samples=400_000,
        optimizer="muon",
        rate=4e-3,
        momentum=0.9,
        schedule="trapezoid",
        evaluate_every=6000,
    ),
)
"""Unlike in the paper: smaller, with Muon, and with second numbers that are mostly zeros at first."""

FIGURES = {
    "4": PaperFigure(
        about="Addition of two 15-digit numbers: accuracy against samples",
        draw="gridlstm.experiments.curve:draw_runs",
        plans={
            "smoke": RunPlan(
                replace(_smoke, training=replace(_smoke.training, samples=150, evaluate_every=75)),
                [{"network": ("tied-grid", "untied-grid", "untied-stacked")}],
            ),
            "laptop": RunPlan(
                _filling,
                [
                    {"network": ("tied-grid",), "seed": (0, 1, 2)},
                    {"network": ("untied-grid",), "layers": (5,)},
                    {"network": ("untied-stacked",), "layers": (1,), "hidden": (400,)},
                ],
            ),
            "paper": RunPlan(
                _paper,
                [
                    {"network": ("tied-grid",)},
                    {"network": ("untied-grid",), "layers": (5,)},
                    {"network": ("untied-stacked",), "layers": (1,)},
                ],
            ),
        },
    )
}
