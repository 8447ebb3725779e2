"""Muon: orthogonal updates of matrices; rare directions are learnt as fast as common ones."""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

__all__ = ["Muon", "orthogonalise"]

Q, R, S = 3.4445, -4.7750, 2.0315
"""The iteration's coefficients of x, x³ and x⁵: singular values end up between about 0.7 and 1.2."""
VECTORS = ("bias", "peephole")
"""What the names of vectors begin with: with one set for each untied position they have two axes."""


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) for matrices between hidden vectors, Adam for the rest.

    Matrices take Nesterov momentum with all singular values set to about 1. Biases and other vectors,
    and what ``outer`` names, are updated by Adam. Orthogonal updates of matrices that read or write
    symbols would give each symbol an equal share of the update's size, so those of the text at hand
    would be learnt too slowly. An update of a matrix has the size that one of Adam would have (0.2 per
    weight), so the learning rate means the same for both.

    PyTorch has had a Muon since 2.9. This one takes untied weights, which are matrices one behind the
    other; stays in float32, because bfloat16 is slow on most processors; and needs no second optimiser.

    Args:
        network: whose parameters to update.
        lr: the learning rate.
        outer: patterns of the names of weights that read or write data, as in a shell.
        momentum: how much of the last direction remains.
        betas: how much of Adam's averages remains.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float = 3e-3,
        *,
        outer: Sequence[str] = (),
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        inner: list[nn.Parameter] = []
        rest: list[nn.Parameter] = []
        for name, parameter in network.named_parameters():
            vector = parameter.dim() < 2 or name.rpartition(".")[2].startswith(VECTORS)
            outside = any(fnmatchcase(name, pattern) for pattern in outer)
            (rest if vector or outside else inner).append(parameter)
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
            found = [p for p in group["params"] if p.grad is not None]
            if group["matrices"]:
                for weight in found:
                    self._update(weight, group)
            elif found:
                self._adam(found, group)

    def _update(self, weight: Tensor, group: dict[str, Any]) -> None:
        grad, state = weight.grad, self.state[weight]
        assert grad is not None, "only those with a gradient"
        if not state:
            state["average"] = torch.zeros_like(weight)
        average = state["average"].mul_(group["momentum"]).add_(grad)
        direction = orthogonalise(grad.add(average, alpha=group["momentum"]))
        size = 0.2 * math.sqrt(max(weight.shape[-2:]))
        weight.add_(direction, alpha=-group["lr"] * size)

    def _adam(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state["average"], state["square"] = (torch.zeros_like(parameter) for _ in range(2))
                state["step"] = torch.zeros((), device="cpu")
        states = [self.state[parameter] for parameter in parameters]
        first, second = group["betas"]
        adam(
            parameters,
            [p.grad for p in parameters if p.grad is not None],
            [state["average"] for state in states],
            [state["square"] for state in states],
            [],
            [state["step"] for state in states],
            foreach=True,
            amsgrad=False,
            beta1=first,
            beta2=second,
            lr=group["lr"],
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


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
