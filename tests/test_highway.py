"""The Highway Network against its equation in NumPy, and tied against untied."""

import copy

import numpy as np
import pytest
import torch

from gridlstm.models.highway import Highway

ALPHA = {"tanh": np.tanh, "relu": lambda a: np.maximum(a, 0), torch.sin: np.sin}


def make(tied: bool, **options) -> Highway:
    net = Highway(3, 4, 5, tied=tied, dtype=torch.float64, **options)
    # Most biases start from 0; anything else shows whether they are used.
    for name, parameter in net.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(parameter)
    return net


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("activation", ALPHA)
def test_equals_the_equation(activation: object, tied: bool) -> None:
    net = make(tied, activation=activation)
    p = {name: value.numpy() for name, value in net.state_dict().items()}
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    h = x.numpy() @ p["projection.weight"].T + p["projection.bias"]
    for layer in range(5):
        k = 0 if tied else layer
        W_H, W_T, b_H, b_T = *np.split(p["weight"][k], 2), *np.split(p["bias"][k], 2)
        T = 1 / (1 + np.exp(-(h @ W_T.T + b_T)))
        h = T * ALPHA[activation](h @ W_H.T + b_H) + (1 - T) * h
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
    net = make(tied, activation="tanh")
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    names, parameters = zip(*net.named_parameters(), strict=True)

    def call(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(call, (x, *parameters))


@pytest.mark.parametrize(("activation", "gain"), [("tanh", 1.0), ("relu", 2**0.5)])
def test_start(activation: str, gain: float) -> None:
    net = Highway(30, 40, 2, activation=activation, transform_bias=-3)
    glorot = (6 / 80) ** 0.5
    assert 0.95 * (6 / 70) ** 0.5 < net.projection.weight.abs().max() <= (6 / 70) ** 0.5
    for weight in net.weight:
        assert 0.95 * gain * glorot < weight[:40].abs().max() <= gain * glorot
        assert 0.95 * glorot < weight[40:].abs().max() <= glorot
    assert net.bias.tolist() == [[0.0] * 40 + [-3.0] * 40] * 2
    assert not net.projection.bias.any()


def test_closed_gates_pass_the_projected_input_on() -> None:
    net = Highway(3, 4, 50, transform_bias=-100.0, dtype=torch.float64)
    x = torch.randn(2, 3, dtype=torch.float64)
    torch.testing.assert_close(net(x), net.projection(x))


def test_reset_copy_and_state_dict() -> None:
    net, x = make(False), torch.randn(2, 3, dtype=torch.float64)
    twin = copy.deepcopy(net)
    torch.testing.assert_close(twin(x), net(x))
    twin.reset_parameters()
    assert not torch.equal(twin(x), net(x))
    twin.load_state_dict(net.state_dict())
    torch.testing.assert_close(twin(x), net(x))


def test_sizes_and_repr() -> None:
    net = Highway(3, 4, 5, tied=True)
    assert net.output_size == 4
    assert net.extra_repr() == "3, 4, num_layers=5, activation='relu', tied=True, transform_bias=-1.0"
    assert sum(p.numel() for p in net.parameters()) == 3 * 4 + 4 + 2 * (4 * 4 + 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"input_size": 0}, ValueError, "^input_size: expected at least 1, got 0$"),
        ({"hidden_size": None}, TypeError, "^hidden_size: expected an integer, got None$"),
        ({"num_layers": 0}, ValueError, "^num_layers: expected at least 1, got 0$"),
        (
            {"activation": "lstm"},
            ValueError,
            "^activation: expected one of tanh, relu or a callable, got 'lstm'$",
        ),
        ({"activation": None}, TypeError, "^activation: expected a string or a callable, got None$"),
        ({"transform_bias": None}, TypeError, "^transform_bias: expected a number, got None$"),
    ],
)
def test_bad_arguments(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Highway(**{"input_size": 3, "hidden_size": 4, "num_layers": 5} | arguments)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(2, 4), ValueError, r"^x: expected \[..., 3\], got \[2, 4\]$"),
        (torch.zeros(2, 3).half(), TypeError, "^x: expected dtype torch.float32, got torch.float16$"),
    ],
)
def test_bad_calls(x: torch.Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Highway(3, 4, 5)(x)
