"""Muon: orthogonal updates of matrices; rare directions are learnt as fast as common ones."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from gridlstm.models.hidden import HiddenLinear

__all__ = ["Muon", "orthogonalise"]

Q, R, S = 3.4445, -4.7750, 2.0315
"""The iteration's coefficients of x, x³ and x⁵: singular values end up between about 0.7 and 1.2."""


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) for what recurs, Adam for the rest.

    The weights of blocks and layers take Nesterov momentum with all singular values set to about 1.
    Biases, and matrices that read or write symbols, are updated by Adam: those of ``nn.Embedding`` and
    ``nn.Linear`` (not of ``HiddenLinear``, which stands between hidden vectors), and those whose names
    a module lists as ``input_weights``. Orthogonal updates of these would give each symbol an equal
    share of the update's size, so those of the text at hand would be learnt too slowly.
    An update of a matrix has the size that one of Adam would have (0.2 a weight), so the learning rate
    means the same for both.

    PyTorch has had a Muon since 2.9. This one takes untied weights, which are matrices one behind the
    other; stays in float32, because bfloat16 is slow on most processors; and needs no second optimiser.

    Args:
        network: whose parameters to update.
        lr: the learning rate.
        momentum: how much of the last direction remains.
        betas: how much of Adam's averages remains.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float = 3e-3,
        *,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        outer = {
            id(parameter)
            for module in network.modules()
            if isinstance(module, nn.Linear | nn.Embedding) and not isinstance(module, HiddenLinear)
            for parameter in module.parameters(recurse=False)
        } | {
            id(module.get_parameter(name))
            for module in network.modules()
            for name in getattr(module, "input_weights", ())
        }
        inner = [
            p
            for name, p in network.named_parameters()
            if p.dim() >= 2 and id(p) not in outer and "bias" not in name.rpartition(".")[2]
        ]
        chosen = {id(p) for p in inner}
        rest = [p for p in network.parameters() if id(p) not in chosen]
        groups: list[dict[str, Any]] = [
            {"params": params, "matrices": matrices}
            for params, matrices in ((inner, True), (rest, False))
            if params
        ]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Updates all parameters that have a gradient."""
        for group in self.param_groups:
            update = self._matrix if group["matrices"] else self._adam
            for parameter in group["params"]:
                if parameter.grad is not None:
                    update(parameter, parameter.grad, self.state[parameter], group)

    def _matrix(self, weight: Tensor, grad: Tensor, state: dict[str, Tensor], group: Any) -> None:
        if not state:
            state["average"] = torch.zeros_like(weight)
        average = state["average"].mul_(group["momentum"]).add_(grad)
        direction = orthogonalise(grad.add(average, alpha=group["momentum"]))
        size = 0.2 * math.sqrt(max(weight.shape[-2:]))
        weight.add_(direction, alpha=-group["lr"] * size)

    def _adam(self, weight: Tensor, grad: Tensor, state: dict[str, Tensor], group: Any) -> None:
        if not state:
            state["average"], state["square"] = torch.zeros_like(weight), torch.zeros_like(weight)
            state["step"] = torch.zeros(())
        first, second = group["betas"]
        state["step"] += 1
        steps = state["step"].item()
        state["average"].lerp_(grad, 1 - first)
        state["square"].lerp_(grad.square(), 1 - second)
        scale = state["square"].div(1 - second**steps).sqrt_().add_(1e-8)
        weight.addcdiv_(state["average"], scale, value=-group["lr"] / (1 - first**steps))


def orthogonalise(matrices: Tensor, steps: int = 5) -> Tensor:
    """The matrices ``[..., rows, columns]`` with all singular values about 1 (Newton-Schulz)."""
    x: Tensor = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    for _ in range(steps):
        square = x @ x.mT
        x = Q * x + (R * square + S * square @ square) @ x
    return x.mT if tall else x
