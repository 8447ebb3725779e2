"""The feed-forward network against its equation in NumPy, and tied against untied."""

import copy

import numpy as np
import pytest
import torch

from gridlstm.models.feedforward import FeedForward

ALPHA = {"tanh": np.tanh, "relu": lambda a: np.maximum(a, 0), torch.sin: np.sin}


def make(tied: bool, **options) -> FeedForward:
    net = FeedForward(3, 4, 5, tied=tied, dtype=torch.float64, **options)
    # Biases start from 0; anything else shows whether they are used.
    for name, parameter in net.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(parameter)
    return net


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("activation", ALPHA)
def test_equals_the_equation(activation: object, tied: bool, bias: bool) -> None:
    net = make(tied, bias=bias, activation=activation)
    p = {name: value.numpy() for name, value in net.state_dict().items()}
    assert len(p["weight"]) == (1 if tied else 5)
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    h = x.numpy() @ p["projection.weight"].T + p.get("projection.bias", 0)
    for layer in range(5):
        k = 0 if tied else layer
        h = ALPHA[activation](h @ p["weight"][k].T + (p["bias"][k] if bias else 0))
    np.testing.assert_allclose(net(x).detach(), h, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(net(x[0, 0]).detach(), h[0, 0], rtol=1e-12, atol=1e-12)


def test_tied_equals_untied_with_copied_weights() -> None:
    tied, untied = make(True), make(False)
    untied.load_state_dict(
        {
            name: value if "projection" in name else value.expand(5, *value.shape[1:])
            for name, value in tied.state_dict().items()
        }
    )
    x = torch.randn(6, 3, dtype=torch.float64)
    torch.testing.assert_close(tied(x), untied(x))
    upstream = torch.randn(6, 4, dtype=torch.float64)
    tied(x).backward(upstream)
    untied(x).backward(upstream)
    for name, parameter in tied.named_parameters():
        gradient = untied.get_parameter(name).grad
        if "projection" not in name:
            gradient = gradient.sum(0, keepdim=True)
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("tied", [True, False])
def test_gradients(tied: bool) -> None:
    net = make(tied)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    names, parameters = zip(*net.named_parameters(), strict=True)

    def call(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(call, (x, *parameters))


@pytest.mark.parametrize(("activation", "gain"), [("tanh", 1.0), ("relu", 2**0.5), (torch.sin, 1.0)])
def test_start(activation: object, gain: float) -> None:
    net = FeedForward(30, 40, 2, activation=activation)
    # Uniform up to √3 standard deviations: √(2 / (fan in + fan out)), and √(2 / fan in) before a ReLU.
    for weight, bound in (
        (net.projection.weight, (6 / 70) ** 0.5),
        (net.weight[0], gain * (6 / 80) ** 0.5),
        (net.weight[1], gain * (6 / 80) ** 0.5),
    ):
        assert 0.95 * bound < weight.abs().max() <= bound
    assert not net.bias.any()
    assert not net.projection.bias.any()
    assert not torch.equal(net.weight[0], net.weight[1])


def test_reset_copy_and_state_dict() -> None:
    net, x = make(False), torch.randn(2, 3, dtype=torch.float64)
    twin = copy.deepcopy(net)
    torch.testing.assert_close(twin(x), net(x))
    twin.reset_parameters()
    assert not torch.equal(twin(x), net(x))
    twin.load_state_dict(net.state_dict())
    torch.testing.assert_close(twin(x), net(x))


def test_sizes_and_repr() -> None:
    net = FeedForward(3, 4, 5, tied=True, bias=False)
    assert net.output_size == 4
    assert net.extra_repr() == "3, 4, num_layers=5, activation='tanh', tied=True, bias=False"
    assert sum(p.numel() for p in net.parameters()) == 3 * 4 + 4 * 4


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"input_size": 0}, ValueError, "^input_size: expected at least 1, got 0$"),
        ({"hidden_size": 1.0}, TypeError, "^hidden_size: expected an integer, got 1.0$"),
        ({"num_layers": 0}, ValueError, "^num_layers: expected at least 1, got 0$"),
        (
            {"activation": "gelu"},
            ValueError,
            "^activation: expected one of tanh, relu or a callable, got 'gelu'$",
        ),
        ({"activation": 1}, TypeError, "^activation: expected a string or a callable, got 1$"),
    ],
)
def test_bad_arguments(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FeedForward(**{"input_size": 3, "hidden_size": 4, "num_layers": 5} | arguments)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(2, 4), ValueError, r"^x: expected \[..., 3\], got \[2, 4\]$"),
        (torch.zeros(()), ValueError, r"^x: expected \[..., 3\], got \[\]$"),
        (torch.zeros(2, 3).double(), TypeError, "^x: expected dtype torch.float32, got torch.float64$"),
    ],
)
def test_bad_calls(x: torch.Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FeedForward(3, 4, 5)(x)
