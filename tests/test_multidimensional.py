"""The Multidimensional LSTM against Eq. 4 in a NumPy loop, PyTorch's LSTM, and finite differences."""

import copy
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from gridlstm.models.multidimensional import MultidimensionalLSTM

SIZES = [(1,), (6,), (1, 1), (4, 3), (1, 5), (5, 1), (3, 2, 4), (2, 1, 3), (2, 2, 1, 3)]


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def loop(net: MultidimensionalLSTM, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Section 2.3, block by block: ``x`` is [*sizes, input], one sample."""
    sizes, d, N = x.shape[:-1], net.hidden_size, net.num_dims
    for layer, reverse in zip(net.layers, net.directions, strict=True):
        W = np.concatenate([layer.weight_input.detach(), layer.weight_hidden.detach()], axis=1)
        b = 0 if layer.bias is None else layer.bias.detach().numpy()
        hidden, memory = np.zeros((2, *sizes, d))
        ways = [
            range(n - 1, -1, -1) if back else range(n) for n, back in zip(sizes, reverse, strict=True)
        ]
        for position in product(*ways):
            h, m = np.zeros((2, N, d))
            for i, back in enumerate(reverse):
                before = list(position)
                before[i] += 1 if back else -1
                if 0 <= before[i] < sizes[i]:
                    h[i], m[i] = hidden[tuple(before)], memory[tuple(before)]
            gates = np.split(W @ np.concatenate([x[position], *h]) + b, N + 3)
            g_u, g_f, g_o, g_c = gates[0], gates[1 : N + 1], gates[-2], gates[-1]
            new = sum(sigmoid(g_f[i]) * m[i] for i in range(N)) + sigmoid(g_u) * np.tanh(g_c)
            memory[position] = new
            if net.output == "paper":
                hidden[position] = np.tanh(sigmoid(g_o) * new)
            else:
                hidden[position] = sigmoid(g_o) * np.tanh(new)
        x = hidden
    return hidden, memory


def some_directions(N: int) -> list[tuple[bool, ...]]:
    every = list(product((False, True), repeat=N))
    return every if N <= 2 else [every[0], every[1], every[-3], every[-1]]


@pytest.mark.parametrize("output", ["paper", "standard"])
@pytest.mark.parametrize("sizes", SIZES)
def test_equals_the_equations(sizes: tuple[int, ...], output: str) -> None:
    N = len(sizes)
    x = torch.randn(2, *sizes, 3, dtype=torch.float64)
    for reverse in some_directions(N):
        net = MultidimensionalLSTM(3, 4, N, directions=[reverse], output=output, dtype=torch.float64)
        state = net(x)
        assert state.hidden.shape == state.memory.shape == (2, *sizes, 4)
        for b in range(2):
            hidden, memory = loop(net, x[b].numpy())
            np.testing.assert_allclose(state.hidden[b].detach(), hidden, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(state.memory[b].detach(), memory, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("N", [1, 2, 3])
def test_layers_equal_the_equations(N: int, bias: bool) -> None:
    sizes = (4, 3, 2)[:N]
    directions = [(False, True, False)[:N], (True, False, False)[:N], (True, True, True)[:N]]
    net = MultidimensionalLSTM(
        3, 4, N, num_layers=3, directions=directions, bias=bias, dtype=torch.float64
    )
    x = torch.randn(1, *sizes, 3, dtype=torch.float64)
    state = net(x)
    hidden, memory = loop(net, x[0].numpy())
    np.testing.assert_allclose(state.hidden[0].detach(), hidden, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(state.memory[0].detach(), memory, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
def test_one_dimension_is_the_lstm_of_torch(layers: int) -> None:
    net = MultidimensionalLSTM(3, 4, 1, num_layers=layers, output="standard", dtype=torch.float64)
    lstm = nn.LSTM(3, 4, layers, batch_first=True, dtype=torch.float64)

    def ours(rows: torch.Tensor) -> torch.Tensor:
        u, f, c, o = rows.chunk(4)
        return torch.cat((u, f, o, c))

    with torch.no_grad():
        for layer, (weight_ih, weight_hh, bias_ih, bias_hh) in zip(
            net.layers, lstm.all_weights, strict=True
        ):
            layer.weight_input.copy_(ours(weight_ih))
            layer.weight_hidden.copy_(ours(weight_hh))
            layer.bias.copy_(ours(bias_ih + bias_hh))
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    x_torch = x.detach().clone().requires_grad_()
    state = net(x)
    expected, (_, m) = lstm(x_torch)
    torch.testing.assert_close(state.hidden, expected)
    torch.testing.assert_close(state.memory[:, -1], m[-1])

    upstream, last = torch.randn_like(expected), torch.randn_like(m[-1])
    torch.autograd.backward((state.hidden, state.memory[:, -1]), (upstream, last))
    torch.autograd.backward((expected, m[-1]), (upstream, last))
    torch.testing.assert_close(x.grad, x_torch.grad)
    for layer, (weight_ih, weight_hh, bias_ih, _) in zip(net.layers, lstm.all_weights, strict=True):
        torch.testing.assert_close(layer.weight_input.grad, ours(weight_ih.grad))
        torch.testing.assert_close(layer.weight_hidden.grad, ours(weight_hh.grad))
        torch.testing.assert_close(layer.bias.grad, ours(bias_ih.grad))


@pytest.mark.parametrize("output", ["paper", "standard"])
@pytest.mark.parametrize("sizes", [(4,), (3, 2), (2, 2, 2)])
def test_gradients(sizes: tuple[int, ...], output: str) -> None:
    N = len(sizes)
    directions = [(False,) * N, (True, False, True)[:N]]
    net = MultidimensionalLSTM(
        2, 2, N, num_layers=2, directions=directions, output=output, dtype=torch.float64
    )
    names, parameters = zip(*net.named_parameters(), strict=True)
    x = torch.randn(2, *sizes, 2, dtype=torch.float64, requires_grad=True)

    def call(x: torch.Tensor, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x,)))

    assert torch.autograd.gradcheck(call, (x, *parameters))
    assert torch.autograd.gradgradcheck(call, (x, *parameters), fast_mode=True)


@pytest.mark.parametrize("sizes", [(5,), (4, 3), (2, 3, 2)])
def test_reversing_equals_flipping_the_data(sizes: tuple[int, ...]) -> None:
    N = len(sizes)
    net = MultidimensionalLSTM(3, 4, N, dtype=torch.float64)
    x = torch.randn(2, *sizes, 3, dtype=torch.float64)
    for reverse in some_directions(N):
        other = MultidimensionalLSTM(3, 4, N, directions=[reverse], dtype=torch.float64)
        other.load_state_dict(net.state_dict())
        axes = [i + 1 for i, back in enumerate(reverse) if back]
        for got, want in zip(other(x), net(x.flip(axes)), strict=True):
            torch.testing.assert_close(got.flip(axes), want)


def test_permuting_dimensions_with_their_weights_permutes_the_result() -> None:
    net = MultidimensionalLSTM(3, 4, 2, dtype=torch.float64)
    swapped = copy.deepcopy(net)
    layer = swapped.layers[0]
    with torch.no_grad():
        for rows in (layer.weight_input, layer.weight_hidden, layer.bias):
            u, f_1, f_2, o, c = rows.clone().chunk(5)
            rows.copy_(torch.cat((u, f_2, f_1, o, c)))
        layer.weight_hidden.copy_(layer.weight_hidden.clone().roll(4, -1))
        layer.bias.add_(torch.arange(20).view(5, 4)[[0, 2, 1, 3, 4]].flatten() / 10)
        net.layers[0].bias.add_(torch.arange(20) / 10)
    x = torch.randn(2, 5, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(swapped(x.transpose(1, 2)).hidden.transpose(1, 2), net(x).hidden)


def test_any_batch() -> None:
    net = MultidimensionalLSTM(3, 4, 2, num_layers=2, dtype=torch.float64)
    x = torch.randn(3, 4, 2, 3, dtype=torch.float64)
    state = net(x)
    for b in range(3):
        torch.testing.assert_close(net(x[b : b + 1]).memory[0], state.memory[b])
    assert net(x[:0]).hidden.shape == (0, 4, 2, 4)
    # What is not contiguous counts too.
    torch.testing.assert_close(
        net(x.transpose(1, 2)).hidden, net(x.transpose(1, 2).contiguous()).hidden
    )


def test_autocast_agrees_roughly_and_keeps_memories_in_full() -> None:
    net = MultidimensionalLSTM(3, 4, 2, num_layers=2)
    x = torch.randn(2, 4, 3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = net(x)
    assert state.memory.dtype == torch.float32
    for got, want in zip(state, net(x), strict=True):
        torch.testing.assert_close(got, want, rtol=0.05, atol=0.02)


def test_start_reset_copy_and_state_dict() -> None:
    net = MultidimensionalLSTM(3, 4, 2, num_layers=2, forget_bias=0.5)
    for layer, width in zip(net.layers, (3, 4), strict=True):
        bound = (6 / (4 + width + 8)) ** 0.5
        for weight in (layer.weight_input, layer.weight_hidden):
            assert 0.8 * bound < weight.abs().max() <= bound
        assert layer.bias.tolist() == [0.0] * 4 + [0.5] * 8 + [0.0] * 8
    assert MultidimensionalLSTM(3, 4, 2).layers[0].bias.tolist() == [0.0] * 4 + [1.0] * 8 + [0.0] * 8

    x = torch.randn(2, 4, 3, 3)
    twin = copy.deepcopy(net)
    torch.testing.assert_close(twin(x), net(x))
    twin.reset_parameters()
    assert not torch.equal(twin(x).hidden, net(x).hidden)
    twin.load_state_dict(net.state_dict())
    torch.testing.assert_close(twin(x), net(x))


def test_sizes_and_repr() -> None:
    net = MultidimensionalLSTM(3, 4, 1, num_layers=2, directions=[(False,), [True]], output="standard")
    assert net.output_size == 4
    assert net.extra_repr() == (
        '3, 4, num_dims=1, num_layers=2, directions=[(False,), (True,)], output="standard"'
    )
    assert (
        MultidimensionalLSTM(3, 4, 2, forget_bias=0.0).extra_repr()
        == "3, 4, num_dims=2, forget_bias=0.0"
    )
    assert MultidimensionalLSTM(3, 4, 2, bias=False).extra_repr() == "3, 4, num_dims=2, bias=False"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"input_size": -1}, ValueError, "^input_size: expected at least 1, got -1$"),
        ({"hidden_size": 0}, ValueError, "^hidden_size: expected at least 1, got 0$"),
        ({"num_dims": 0}, ValueError, "^num_dims: expected at least 1, got 0$"),
        ({"num_layers": "2"}, TypeError, "^num_layers: expected an integer, got '2'$"),
        ({"output": "other"}, ValueError, "^output: expected one of paper, standard, got 'other'$"),
        ({"forget_bias": True}, TypeError, "^forget_bias: expected a number, got True$"),
        (
            {"forget_bias": 1, "bias": False},
            ValueError,
            "^forget_bias: expected None because bias is False, got 1$",
        ),
        *[
            (
                {"directions": bad},
                ValueError,
                "^directions: expected 2 booleans for each of 1 layers, got ",
            )
            for bad in (True, [True, False], [(True,)], [(0, 1)], [(True, True)] * 2)
        ],
    ],
)
def test_bad_arguments(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MultidimensionalLSTM(**{"input_size": 3, "hidden_size": 4, "num_dims": 2} | arguments)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            torch.zeros(2, 5, 3),
            ValueError,
            r"^x: expected \[batch, size_1, size_2, 3\], got \[2, 5, 3\]$",
        ),
        (
            torch.zeros(2, 5, 4, 2),
            ValueError,
            r"^x: expected \[batch, size_1, size_2, 3\], got \[2, 5, 4, 2\]$",
        ),
        (torch.zeros(2, 0, 4, 3), ValueError, r"^x: expected sizes of at least 1, got \[0, 4\]$"),
        (
            torch.zeros(2, 5, 4, 3).long(),
            TypeError,
            "^x: expected dtype torch.float32, got torch.int64$",
        ),
        (None, TypeError, "^x: expected a tensor, got NoneType$"),
    ],
)
def test_bad_calls(x: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MultidimensionalLSTM(3, 4, 2)(x)


def test_what_is_fixed_is_not_set_again() -> None:
    net = MultidimensionalLSTM(3, 4, 2)
    with pytest.raises(
        AttributeError,
        match=r"^output: cannot be changed to .*; create a new MultidimensionalLSTM instead$",
    ):
        net.output = "standard"
    assert copy.deepcopy(net).output == "paper"
