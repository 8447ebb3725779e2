"""Transfer functions given as callables: pure ones are welcome, all others refused by name."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gridlstm import Dim, GridLSTM, State

ORTHOGONAL = torch.linalg.qr(torch.randn(33, 33))[0]


def with_a_parameter() -> Callable[[Tensor], Tensor]:
    scale = torch.ones(4, requires_grad=True)
    return lambda y: y * scale


def prelu_in_a_closure() -> Callable[[Tensor], Tensor]:
    prelu = nn.PReLU()
    return lambda y: prelu(y)


def with_a_memory() -> Callable[[Tensor], Tensor]:
    calls: list[int] = []

    def transfer(y: Tensor) -> Tensor:
        calls.append(1)
        return y * (1 + 1e-3 * len(calls))

    return transfer


def into_one_place() -> Callable[[Tensor], Tensor]:
    place = torch.zeros(2, 4)
    return lambda y: torch.tanh(y, out=place.resize_(y.shape))


class Doubling(nn.Module):
    """Twice as much in training."""

    def forward(self, y: Tensor) -> Tensor:
        return 2 * y if self.training else y


RANDOM = "draws random numbers"
MIXES = "mixes vectors, or depends on how many there are"
IMPURE = {
    "dropout": (nn.Dropout(), RANDOM),
    "rare dropout": (nn.Dropout(1e-4), RANDOM),
    "dropout in evaluation mode": (nn.Dropout().eval(), RANDOM),
    "dropout of a sequence": (nn.Sequential(nn.ReLU(), nn.Dropout()), RANDOM),
    "dropout as a method": (nn.Dropout().forward, RANDOM),
    "RReLU": (nn.RReLU(), RANDOM),
    "RReLU in evaluation mode": (nn.RReLU().eval(), RANDOM),
    "functional": (partial(nn.functional.rrelu, training=True), RANDOM),
    "noise": (lambda y: y + torch.randn_like(y), RANDOM),
    "noise of another generator": (
        lambda y: y * float(np.random.default_rng().random()),
        "returns something else when called again",
    ),
    "parameter": (with_a_parameter(), "depends on a tensor with gradients"),
    "module in a closure": (prelu_in_a_closure(), "depends on a tensor with gradients"),
    "memory": (with_a_memory(), "returns something else when called again"),
    "output in one place": (into_one_place(), "overwrites what an earlier call returned"),
    "mode": (Doubling(), "differs in training and evaluation mode"),
    "batch norm": (nn.BatchNorm1d(4, affine=False, track_running_stats=False), MIXES),
    "batch norm in a closure": (
        lambda y: nn.functional.batch_norm(y, None, None, training=True),
        MIXES,
    ),
    "softmax over the batch": (nn.Softmax(0), MIXES),
    "softmax over an axis that moves": (nn.Softmax(1), MIXES),
    "running sum": (lambda y: y.cumsum(0), MIXES),
    "mean over all": (lambda y: y - y.mean(), MIXES),
    "number of vectors": (lambda y: y / len(y), MIXES),
}


@pytest.mark.parametrize(("transform", "why"), IMPURE.values(), ids=IMPURE.keys())
@pytest.mark.parametrize("gradients", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_a_transfer_function_that_is_not_pure(transform: Any, why: str, gradients: Any) -> None:
    name = getattr(transform, "__name__", None) or (
        type(transform).__name__ if isinstance(transform, nn.Module) else repr(transform)
    )
    modes = [m.training for m in transform.modules()] if isinstance(transform, nn.Module) else []
    where = 'dimension "b": transform: '
    expected = f"{where}expected a pure function of each vector, got {name}, which {why}"
    with (
        gradients(),
        pytest.raises(ValueError, match=f"^{re.escape(expected)}$"),
    ):
        GridLSTM(["a", Dim("b", transform)], 4)
    if modes:
        assert [m.training for m in transform.modules()] == modes


def test_a_transfer_function_that_fails() -> None:
    with pytest.raises(
        ValueError, match=r"transform: expected a function of vectors \[2, 4\], got Value"
    ):
        GridLSTM(["a", Dim("b", nn.BatchNorm2d(4, affine=False, track_running_stats=False))], 4)
    with pytest.raises(
        ValueError, match=r"expected a function of vectors \[1, 2, 4\], got RuntimeError: "
    ):
        GridLSTM(["a", Dim("b", lambda y: y.mm(torch.eye(4)))], 4)


@pytest.mark.parametrize(
    "transform",
    [
        torch.sin,
        torch.sqrt,  # NaN on half of the line
        torch.exp,
        torch.Tensor.tanh_,
        torch.ones_like,
        lambda y: y @ ORTHOGONAL.to(y),
        lambda y: nn.functional.layer_norm(y, y.shape[-1:]),
        partial(nn.functional.elu, alpha=0.5),
        partial(nn.functional.dropout, training=False),
        nn.Identity(),
        nn.ReLU(inplace=True),
        nn.Dropout(0.0),
        nn.GELU().eval(),
        nn.Sequential(nn.Hardtanh(), nn.Softplus()),
        nn.LayerNorm(33, elementwise_affine=False),
        nn.Softmax(-1),
    ],
    ids=lambda given: re.sub(
        r" (at|of type object at) 0x\w+", "", repr(given)
    ),  # the same in every process
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_pure_transfer_functions_are_welcome(transform: Any, dtype: torch.dtype, device: str) -> None:
    state = torch.get_rng_state()
    x = torch.zeros(2, 3, 33, dtype=dtype, device=device)
    grid = GridLSTM(["a", Dim("b", transform)], 33, dtype=dtype, device=device, init=nn.init.zeros_)
    assert torch.equal(torch.get_rng_state(), state)
    if device == "cpu" and dtype != torch.bfloat16:
        grid({"a": State(x[:, :1]), "b": State(x)})
