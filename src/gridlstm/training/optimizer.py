"""The optimisers by name, and their state as it is in a checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gridlstm.training.muon import Muon
from gridlstm.training.settings import Training

__all__ = ["make_optimizer", "restore_optimizer", "state_of"]

PREFIX = "optimizer."


def make_optimizer(
    settings: Training, network: nn.Module, outer: Sequence[str] = ()
) -> torch.optim.Optimizer:
    """The optimiser that the settings name; for ``outer`` see :class:`Muon`."""
    if settings.optimizer == "muon":
        return Muon(network, settings.rate, outer=outer, momentum=settings.momentum)
    if settings.optimizer == "adagrad":
        return torch.optim.Adagrad(network.parameters(), settings.rate)
    if settings.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), settings.rate)
    return torch.optim.Adam(network.parameters(), settings.rate)


def state_of(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What an optimiser has gathered: tensors, and the rest, by the parameter's number and a name."""
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for number, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"{PREFIX}{number}.{name}"] = value
            else:
                scalars[f"{number}.{name}"] = value
    return tensors, scalars


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]
) -> None:
    """Takes back what :func:`state_of` gave, among other tensors.

    Raises:
        ValueError: if it is not of this optimiser.
    """
    own = {name.removeprefix(PREFIX): t for name, t in tensors.items() if name.startswith(PREFIX)}
    parameters = (p for group in optimizer.param_groups for p in group["params"])
    shapes = {str(number): parameter.shape for number, parameter in enumerate(parameters)}
    states: dict[int, dict[str, Any]] = {}
    for place, value in {**own, **scalars}.items():
        number, _, name = place.partition(".")
        fits = not isinstance(value, Tensor) or not value.dim() or value.shape == shapes.get(number)
        if number not in shapes or not fits:
            raise ValueError(f"optimizer: expected a state for each parameter, got {place}")
        states.setdefault(int(number), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
