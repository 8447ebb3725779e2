"""The runs of Figure 12. No PyTorch here."""

from dataclasses import replace

from gridlstm.experiments.images.options import PRESETS
from gridlstm.experiments.record import PaperFigure, RunPlan

__all__ = ["FIGURES"]

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))
_long = replace(
    _laptop,
    retrain=True,
    training=replace(
        _laptop.training,
        samples=1_000_000,
        rate=4e-3,
        warmup=6400,
        minutes=None,
        evaluate_every=250_000,
    ),
)
_brief = replace(_smoke, training=replace(_smoke.training, samples=100, evaluate_every=50))

FIGURES = {
    "12": PaperFigure(
        about="MNIST: test error with cells and with ReLUs along depth",
        draw="gridlstm.experiments.curve:draw_runs",
        plans={
            "smoke": RunPlan(_brief, [{"network": ("untied-grid", "untied-relu-grid")}]),
            "laptop": RunPlan(
                _long,
                [
                    {"network": ("untied-grid",), "patch": (2,)},
                    {"network": ("untied-relu-grid",), "patch": (3,)},
                ],
            ),
            "paper": RunPlan(
                replace(_paper, retrain=True),
                [
                    {"network": ("untied-grid",), "patch": (2,), "relu": (4096,)},
                    {"network": ("untied-relu-grid",), "patch": (3,), "relu": (2048,)},
                ],
            ),
        },
    )
}
