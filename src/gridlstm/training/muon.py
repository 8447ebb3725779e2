"""Muon: orthogonalised updates of matrices, so rare directions are learned as fast as common ones."""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

__all__ = ["Muon", "orthogonalise"]

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of x, x³ and x⁵ in the iteration: singular values end up between about 0.7 and 1.2."""
VECTOR_PREFIXES = ("bias", "peephole")
"""Names of vectors start with these. With one vector per untied position they have two axes."""


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) for matrices between hidden vectors, Adam for the rest.

    Matrices are updated by Nesterov momentum with all singular values set to about 1. Biases and other
    vectors, and parameters that match ``adam_parameters``, are updated by Adam. Matrices that read or
    write symbols belong there: an orthogonal update would give each symbol an equal share of its size,
    so the symbols of the current batch would be learned too slowly. The update of a matrix has the size
    that Adam's would have (0.2 per weight), so the learning rate means the same for both.

    PyTorch has had a Muon since 2.9. Unlike it, this one supports untied weights, which are stacked
    matrices; stays in float32, because bfloat16 is slow on most processors; and includes Adam.

    Args:
        network: the network to train.
        lr: the learning rate.
        adam_parameters: shell-style patterns of names of parameters that Adam updates.
        momentum: the share of the last direction that remains.
        betas: the shares of Adam's averages that remain.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float = 3e-3,
        *,
        adam_parameters: Sequence[str] = (),
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in network.named_parameters():
            vector = parameter.dim() < 2 or name.rpartition(".")[2].startswith(VECTOR_PREFIXES)
            listed = any(fnmatchcase(name, pattern) for pattern in adam_parameters)
            (others if vector or listed else matrices).append(parameter)
        groups: list[dict[str, Any]] = [
            {"params": params, "matrices": orthogonal}
            for params, orthogonal in ((matrices, True), (others, False))
            if params
        ]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Updates all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if group["matrices"]:
                for weight in parameters:
                    self._update_matrix(weight, group)
            elif parameters:
                self._update_by_adam(parameters, group)

    def _update_matrix(self, weight: Tensor, group: dict[str, Any]) -> None:
        grad, state = weight.grad, self.state[weight]
        assert grad is not None, "step selects parameters with a gradient"
        if not state:
            state["average"] = torch.zeros_like(weight)
        average = state["average"].mul_(group["momentum"]).add_(grad)
        direction = orthogonalise(grad.add(average, alpha=group["momentum"]))
        size = 0.2 * math.sqrt(max(weight.shape[-2:]))
        weight.add_(direction, alpha=-group["lr"] * size)

    def _update_by_adam(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state["average"], state["square"] = (torch.zeros_like(parameter) for _ in range(2))
                state["step"] = torch.zeros((), device="cpu")
        states = [self.state[parameter] for parameter in parameters]
        beta1, beta2 = group["betas"]
        adam(
            parameters,
            [p.grad for p in parameters if p.grad is not None],
            [state["average"] for state in states],
            [state["square"] for state in states],
            [],
            [state["step"] for state in states],
            foreach=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


def orthogonalise(matrices: Tensor, steps: int = 5) -> Tensor:
    """The matrices ``[..., rows, columns]`` with all singular values about 1 (Newton-Schulz)."""
    linear, cubic, quintic = COEFFICIENTS
    x: Tensor = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    for _ in range(steps):
        square = x @ x.mT
        x = linear * x + (cubic * square + quintic * square @ square) @ x
    return x.mT if tall else x
