"""Muon: orthogonalised updates of matrices, so rare directions are learned as fast as common ones."""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

__all__ = ["Muon", "orthogonalise"]

COEFFICIENTS = (
    (8.4268, -24.9361, 18.4925),
    (4.1116, -3.0591, 0.5750),
    (3.7146, -2.7781, 0.5429),
    (2.7820, -2.0749, 0.4635),
)
"""Of x, x³ and x⁵, one row per iteration: singular values from 0.002 to 1 end up between 0.68 and 1.32.

Each row is the best quintic for where the rows before it leave them (Amsel et al., 2025)."""
MARGIN = 1.02
"""Beyond 1, each iteration enlarges a singular value. That of a vector is its norm, so it is kept below
1 by this factor: rounded to bfloat16, it would otherwise become 16 or more."""
VECTOR_PREFIXES = ("bias", "gain", "memory_", "peephole")
"""Names of vectors start with these. With one vector per untied position they have two axes."""


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) for matrices between hidden vectors, Adam for the rest.

    Matrices are updated by Nesterov momentum with all singular values set to about 1. Biases and other
    vectors, and parameters that match ``adam_parameters``, are updated by Adam. Matrices that read or
    write symbols belong there: an orthogonal update would give each symbol an equal share of its size,
    so the symbols of the current batch would be learned too slowly. The update of a matrix has the size
    that Adam's would have (0.2 per weight), so the learning rate means the same for both.

    The gates of an LSTM are separate matrices in the equations but one parameter in a network. With
    ``rows``, each is orthogonalised on its own, which is also less work. A learning rate that suits
    whole matrices suits gates, too.

    PyTorch has had a Muon since 2.9. Unlike it, this one supports stacked matrices (gates, and weights
    that are untied along a dimension); stays in float32 unless told otherwise, because bfloat16 is slow
    on many processors; and includes Adam.

    Args:
        network: the network to train.
        lr: the learning rate.
        adam_parameters: shell-style patterns of names of parameters that Adam updates.
        rows: a parameter with a multiple of this many rows consists of matrices with this many rows.
            Default: every parameter is one matrix.
        product: the dtype of the products that orthogonalise. Default: that of the parameters.
        momentum: the share of the last direction that remains.
        betas: the shares of Adam's averages that remain.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float = 3e-3,
        *,
        adam_parameters: Sequence[str] = (),
        rows: int | None = None,
        product: torch.dtype | None = None,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.rows = rows
        self.product = product
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
        # load_state_dict puts the steps where a fused Adam expects them if the groups say so.
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas, "fused": True})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Updates all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if group["matrices"]:
                self._update_matrices(parameters, group)
            elif parameters:
                self._update_by_adam(parameters, group)

    def _update_matrices(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Orthogonalises all matrices of the same shape together."""
        directions: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for weight in parameters:
            grad, state = weight.grad, self.state[weight]
            assert grad is not None, "step selects parameters with a gradient"
            if not state:
                state["average"] = torch.zeros_like(weight)
            average = state["average"].mul_(group["momentum"]).add_(grad)
            direction = self._split(grad.add(average, alpha=group["momentum"]))
            directions.setdefault(direction.shape[-2:], []).append((weight, direction))
        for (rows, _), members in directions.items():
            stacked = torch.cat([direction for _, direction in members])
            parts = orthogonalise(stacked, self.product).split([len(part) for _, part in members])
            for (weight, _), part in zip(members, parts, strict=True):
                # In no direction do all gates together change more than a whole matrix would.
                gates = weight.shape[-2] // rows
                size = 0.2 * math.sqrt(max(weight.shape[-2:]) / gates)
                weight.add_(part.reshape(weight.shape), alpha=-group["lr"] * size)

    def _split(self, parameter: Tensor) -> Tensor:
        """The matrices of a parameter, ``[matrices, rows, columns]``."""
        *_, rows, columns = parameter.shape
        if self.rows and rows % self.rows == 0:
            rows = self.rows
        return parameter.reshape(-1, rows, columns)

    def _update_by_adam(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state["average"], state["square"] = (torch.zeros_like(parameter) for _ in range(2))
                state["step"] = torch.zeros((), device=parameter.device)
        states = [self.state[parameter] for parameter in parameters]
        beta1, beta2 = group["betas"]
        adam(
            parameters,
            [p.grad for p in parameters if p.grad is not None],
            [state["average"] for state in states],
            [state["square"] for state in states],
            [],
            [state["step"] for state in states],
            fused=group["fused"],
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


def orthogonalise(matrices: Tensor, product: torch.dtype | None = None) -> Tensor:
    """The matrices ``[count, rows, columns]`` with all singular values about 1 (Newton-Schulz).

    Args:
        matrices: any but the smallest singular values, relative to the norm, end up close to 1.
        product: the dtype of the products. Default: that of the matrices.
    """
    x: Tensor = matrices / (MARGIN * torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    x = (x.mT if tall else x).to(product or x.dtype).contiguous()
    for linear, cubic, quintic in COEFFICIENTS:
        square = torch.bmm(x, x.mT)
        factor = torch.baddbmm(square, square, square, beta=cubic, alpha=quintic)
        x = torch.baddbmm(x, factor, x, beta=linear)
    return (x.mT if tall else x).to(matrices.dtype)
