"""What legends call runs: the network, and what else distinguishes it from the others."""

from collections.abc import Sequence
from typing import Any, Protocol

from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import flat
from gridlstm.experiments.results import compared_options, describe_value

__all__ = ["LabelledRun", "label_runs"]

_WORDS = {"hidden": "d"}
_MOST = 2
"""The most options that a label names."""


class LabelledRun(Protocol):
    """What a label is made from: the experiment and the options of a run."""

    @property
    def experiment(self) -> Experiment[Any]:
        """Its experiment."""

    @property
    def options(self) -> Any:
        """Its options."""


def label_runs(runs: Sequence[LabelledRun]) -> list[str]:
    """A label for each run, as ``"tied 2-LSTM, 16 layers, rate 0.003"``.

    It says which network it is; where several runs have the same network, also the options in which
    they differ, and the seed. Runs that these do not distinguish are numbered.
    """
    words: list[list[str]] = []
    for run in runs:
        layers = run.options.layers
        title = run.experiment.network_title(run.options.network)
        words.append([f"{title}, {layers} layer{'s' * (layers != 1)}"])
    alike = [[j for j, other in enumerate(words) if other == mine] for mine in words]
    for mine, run, group in zip(words, runs, alike, strict=True):
        options = compared_options(flat(run.options))
        others = [flat(runs[j].options) for j in group]
        varying = [
            name for name in options if any(other.get(name) != options[name] for other in others)
        ]
        for name in varying[:_MOST]:
            mine.append(f"{_WORDS.get(name, name.replace('_', ' '))} {describe_value(options[name])}")
    labels = [", ".join(mine) for mine in words]
    for k, count in enumerate(map(labels.count, [*labels])):
        if count > 1:
            words[k].append(f"seed {runs[k].options.training.seed}")
    labels = [", ".join(mine) for mine in words]
    return [
        f"{label}, run {labels[: k + 1].count(label)}" if labels.count(label) > 1 else label
        for k, label in enumerate(labels)
    ]
