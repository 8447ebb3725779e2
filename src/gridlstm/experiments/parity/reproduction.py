"""The runs of Figures 9 and 10. No PyTorch here."""

from dataclasses import replace

from gridlstm.experiments.parity.options import PRESETS
from gridlstm.experiments.record import PaperFigure, RunPlan

__all__ = ["FIGURES"]

FORWARD = ("tied-tanh", "untied-tanh", "tied-relu", "untied-relu")
BITS = (*range(20, 241, 20), 250)

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))
_brief = replace(_smoke, training=replace(_smoke.training, samples=400, evaluate_every=200))
_bounded = replace(_laptop, training=replace(_laptop.training, samples=400_000, minutes=None))

FIGURES = {
    "9": PaperFigure(
        about="Parity: which networks solve how many bits",
        draw="gridlstm.experiments.parity.solutions:draw_runs",
        plans={
            "smoke": RunPlan(_brief, [{"layers": (1, 2), "bits": (8, 10)}]),
            "laptop": RunPlan(
                _bounded,
                [
                    {"layers": (12,), "bits": BITS, "seed": (0, 1, 2)},
                    {"layers": (50, 100, 150), "bits": BITS[::2]},
                    {"layers": (1, 3, 6, 25), "bits": BITS},
                ],
            ),
            "paper": RunPlan(
                _paper,
                [
                    {
                        "hidden": (500, 1500),
                        "layers": (1, *range(5, 151, 5)),
                        "bits": tuple(range(20, 251, 10)),
                    }
                ],
            ),
        },
    ),
    "10": PaperFigure(
        about="Parity: the best networks, and the counting neurons of one of 25 layers",
        draw="gridlstm.experiments.parity.memories:draw_runs",
        plans={
            "smoke": RunPlan(
                _brief,
                [{"network": ("tied-grid",)}, {"network": FORWARD, "start": ("signs", "random")}],
            ),
            "laptop": RunPlan(
                _bounded,
                [
                    {"bits": (50,), "layers": (25,), "seed": (0, 1, 2)},
                    {
                        "network": FORWARD,
                        "layers": (5,),
                        "rate": (0.06,),
                        "bits": (20, 30, 40),
                        "start": ("signs", "random"),
                    },
                ],
            ),
            "paper": RunPlan(
                _paper,
                [
                    {"bits": (50,), "layers": (25,)},
                    {"bits": (250,), "layers": (148,)},
                    {"bits": (220,), "layers": (72,), "hidden": (1500,)},
                    {
                        "network": FORWARD,
                        "layers": (5,),
                        "hidden": (1500,),
                        "bits": (20, 25, 30, 35),
                        "start": ("signs", "random"),
                    },
                ],
            ),
        },
    ),
}
