"""The runs of Figures 9 and 10. No PyTorch here."""

from collections.abc import Sequence
from dataclasses import replace

from gridlstm.experiments.parity.options import PRESETS, ParityOptions
from gridlstm.experiments.record import PaperFigure, RunPlan

__all__ = ["FIGURES"]

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))
_brief = replace(_smoke, training=replace(_smoke.training, samples=400, evaluate_every=200))
_bits = (*range(20, 241, 20), 250)
FORWARD = ("tied-tanh", "untied-tanh", "tied-relu", "untied-relu")


def _with(options: ParityOptions, layers: int, rate: float, samples: int) -> ParityOptions:
    training = replace(options.training, rate=rate, samples=samples, minutes=None)
    return replace(options, layers=layers, training=training)


def _depths(options: ParityOptions, samples: int, depths: dict[float, Sequence[int]]) -> list[RunPlan]:
    """Deep networks need small rates."""
    return [
        RunPlan(_with(options, layers[0], rate, samples), {"layers": tuple(layers), "bits": _bits})
        for rate, layers in depths.items()
    ]


FIGURES = {
    "9": PaperFigure(
        about="Parity: which networks solve how many bits",
        draw="gridlstm.experiments.parity.solutions:draw_runs",
        plans={
            "smoke": [RunPlan(_brief, {"layers": (1, 2), "bits": (8, 10)})],
            "laptop": _depths(_laptop, 400_000, {0.06: (1, 2, 3, 6), 0.03: (12, 25), 0.015: (50, 100)}),
            "paper": [
                RunPlan(
                    _with(_paper, 1, 0.06, 10_000_000),
                    {
                        "hidden": (500, 1500),
                        "layers": (1, *range(5, 151, 5)),
                        "bits": tuple(range(20, 251, 10)),
                    },
                )
            ],
        },
    ),
    "10": PaperFigure(
        about="Parity: the best networks, and the counting neurons of one of 25 layers",
        draw="gridlstm.experiments.parity.memories:draw_runs",
        plans={
            "smoke": [
                RunPlan(_brief),
                RunPlan(_brief, {"network": FORWARD, "start": ("signs", "random")}),
            ],
            "laptop": [
                RunPlan(replace(_with(_laptop, 25, 0.03, 400_000), bits=50), {"seed": (0, 1, 2)}),
                RunPlan(
                    _with(_laptop, 5, 0.06, 400_000),
                    {"network": FORWARD, "bits": (20, 30, 40), "start": ("signs", "random")},
                ),
            ],
            "paper": [
                RunPlan(_paper),
                RunPlan(replace(_paper, bits=250, layers=148)),
                RunPlan(replace(_paper, bits=220, layers=72, hidden=1500)),
                RunPlan(
                    replace(_paper, layers=5, hidden=1500),
                    {"network": FORWARD, "bits": (20, 25, 30, 35), "start": ("signs", "random")},
                ),
            ],
        },
    ),
}
