"""Optimisers by name, and their state in a checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gridlstm.processor import has_bfloat16
from gridlstm.training.muon import Muon
from gridlstm.training.settings import Training

__all__ = ["make_optimizer", "optimizer_state", "restore_optimizer"]

PREFIX = "optimizer."


def make_optimizer(
    settings: Training,
    network: nn.Module,
    adam_parameters: Sequence[str] = (),
    rows: int | None = None,
) -> torch.optim.Optimizer:
    """The optimiser that the settings name; for ``adam_parameters`` and ``rows`` see :class:`Muon`."""
    if settings.optimizer == "muon":
        return Muon(
            network,
            settings.rate,
            adam_parameters=adam_parameters,
            rows=rows,
            product=torch.bfloat16 if settings.bfloat16 or _multiplies_bfloat16(network) else None,
            momentum=settings.momentum,
        )
    # Fused: one call for all parameters, not a loop over them. PyTorch has no fused Adagrad for GPUs.
    parameters = list(network.parameters())
    if settings.optimizer == "adagrad":
        on_cpu = all(p.device.type == "cpu" for p in parameters)
        return torch.optim.Adagrad(parameters, settings.rate, fused=on_cpu)
    kind = torch.optim.SGD if settings.optimizer == "sgd" else torch.optim.Adam
    return kind(parameters, settings.rate, fused=True)


def _multiplies_bfloat16(network: nn.Module) -> bool:
    """Whether the processor has units for bfloat16, whose precision Muon was made for."""
    return has_bfloat16() and all(p.device.type == "cpu" for p in network.parameters())


def optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of an optimiser: tensors and other values, named by parameter number and state name."""
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"{PREFIX}{number}.{name}"] = value
            else:
                scalars[f"{number}.{name}"] = value
    return tensors, scalars


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]
) -> None:
    """Restores what :func:`optimizer_state` returned. Other tensors are ignored.

    Raises:
        ValueError: if the state is not one of this optimiser.
    """
    values: dict[str, Any] = {
        name.removeprefix(PREFIX): t for name, t in tensors.items() if name.startswith(PREFIX)
    }
    parameters = (p for group in optimizer.param_groups for p in group["params"])
    shapes = {str(number): parameter.shape for number, parameter in enumerate(parameters)}
    states: dict[int, dict[str, Any]] = {}
    for key, value in {**values, **scalars}.items():
        number, _, name = key.partition(".")
        fits = not isinstance(value, Tensor) or not value.dim() or value.shape == shapes.get(number)
        if number not in shapes or not fits:
            raise ValueError(f"optimizer: expected a state for each parameter, got {key}")
        states.setdefault(int(number), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
