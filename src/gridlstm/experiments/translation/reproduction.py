"""The runs of Figure 8. No PyTorch here."""

from dataclasses import replace

from gridlstm.experiments.record import PaperFigure, RunPlan
from gridlstm.experiments.translation.options import PRESETS

__all__ = ["FIGURES"]

_smoke, _laptop, _paper = (PRESETS[name] for name in ("smoke", "laptop", "paper"))
_muon = replace(
    _laptop,
    chinese="jieba",
    word_size=256,
    training=replace(
        _laptop.training,
        optimizer="muon",
        rate=5e-3,
        warmup=3200,
        samples=208_000,
        evaluate_every=26_000,
    ),
)
_reencoder = {
    "network": ("reencoder",),
    "forget_bias": (3.0,),
    "dropout": (0.1,),
    "side_dropout": (0.3,),
    "seed": (0, 1, 2),
}
_brief = replace(_smoke, validated=20, training=replace(_smoke.training, samples=32, evaluate_every=16))

FIGURES = {
    "8": PaperFigure(
        about="Translation from Chinese to English: the Reencoder and a network with attention",
        draw="gridlstm.experiments.curve:draw_runs",
        plans={
            "smoke": RunPlan(_brief, [{"network": ("reencoder", "attention")}]),
            "laptop": RunPlan(
                _muon,
                [
                    _reencoder,
                    {**_reencoder, "encoder": (True,)},  # Beyond the paper.
                    {"network": ("attention",), "layers": (1,), "seed": (0, 1, 2)},
                ],
            ),
            "paper": RunPlan(_paper, [{"network": ("reencoder",), "seed": tuple(range(7))}]),
        },
    )
}
