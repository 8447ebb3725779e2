"""The Stacked LSTM against its equations in NumPy, PyTorch's LSTM, and itself."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from gridlstm.models.stacked import StackedLSTM
from gridlstm.state import State

VARIANTS = [(1, False), (1, True), (3, False), (3, True)]
LENGTHS = torch.tensor([4, 7, 1, 5])


def make(layers: int, tied: bool, **options) -> StackedLSTM:
    return StackedLSTM(5, 6, layers, tied=tied, dtype=torch.float64, **options)


def inputs(batch_first: bool = False) -> torch.Tensor:
    x = torch.randn(7, 4, 5, dtype=torch.float64)
    return x.transpose(0, 1) if batch_first else x


def state(layers: int) -> State:
    return State(*torch.randn(2, layers, 4, 6, dtype=torch.float64))


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def loop(net: StackedLSTM, x: np.ndarray, h: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, ...]:
    """Equations 1 and 2 with the usual output, layer by layer and step by step."""
    h, m, below = h.copy(), m.copy(), x
    weights = [[w.detach().numpy() for w in layer] for layer in net.lstm.all_weights]
    if net.input_projection is not None:
        below = below @ net.input_projection.weight.detach().numpy().T
    for k in range(net.num_layers):
        W_x, W_h, *biases = weights[0 if net.tied else k]
        above = np.empty((*below.shape[:2], net.hidden_size))
        for t, x_t in enumerate(below):
            g_u, g_f, g_c, g_o = np.split(x_t @ W_x.T + h[k] @ W_h.T + sum(biases), 4, axis=-1)
            m[k] = sigmoid(g_f) * m[k] + sigmoid(g_u) * np.tanh(g_c)
            above[t] = h[k] = sigmoid(g_o) * np.tanh(m[k])
        below = above
    return below, h, m


def untie(tied: StackedLSTM) -> StackedLSTM:
    """Each layer a copy of the shared one, the projection multiplied into the first."""
    untied = make(tied.num_layers, False)
    shared = tied.lstm.all_weights[0]
    with torch.no_grad():
        for k, layer in enumerate(untied.lstm.all_weights):
            for target, source in zip(layer, shared, strict=True):
                is_first_input = k == 0 and target is layer[0]
                target.copy_(source @ tied.input_projection.weight if is_first_input else source)
    return untied


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
def test_equals_the_equations(layers: int, tied: bool, bias: bool) -> None:
    net, x, start = make(layers, tied, bias=bias), inputs(), state(layers)
    output, end = net(x, start)
    expected = loop(net, x.numpy(), start.hidden.numpy(), start.memory.numpy())
    for got, want in zip((output, *end), expected, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch_first", [False, True])
def test_untied_is_called_like_torch(batch_first: bool) -> None:
    net = make(2, False, batch_first=batch_first)
    lstm = nn.LSTM(5, 6, 2, batch_first=batch_first, dtype=torch.float64)
    lstm.load_state_dict(net.lstm.state_dict())
    x, start = inputs(batch_first), state(2)
    for given in (None, start, tuple(start), list(start)):
        output, (h, m) = net(x, given)
        expected, (expected_h, expected_m) = lstm(x, given if given is None else tuple(given))
        for got, want in ((output, expected), (h, expected_h), (m, expected_m)):
            torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
def test_batch_first_only_swaps_axes(layers: int, tied: bool) -> None:
    net = make(layers, tied)
    swapped = copy.deepcopy(net)
    swapped.batch_first = True
    x, start = inputs(), state(layers)
    output, end = net(x, start, lengths=LENGTHS)
    other, other_end = swapped(x.transpose(0, 1), start, lengths=LENGTHS)
    torch.testing.assert_close(other.transpose(0, 1), output)
    torch.testing.assert_close(other_end, end)


def test_tied_equals_untied_with_copied_weights() -> None:
    tied = make(3, True)
    untied = untie(tied)
    x, start = inputs(), state(3)
    (output, end), (expected, expected_end) = tied(x, start), untied(x, start)
    torch.testing.assert_close((output, *end), (expected, *expected_end))

    upstream = [torch.randn_like(t) for t in (output, *end)]
    torch.autograd.backward((output, *end), upstream)
    torch.autograd.backward((expected, *expected_end), upstream)
    projection = tied.input_projection.weight
    first, *others = untied.lstm.all_weights
    # The first layer of the untied network reads x through W I, so the gradient of W is that of W I
    # times the transpose of I.
    gradients = [first[0].grad @ projection.T, *(p.grad for p in first[1:])]
    for layer in others:
        gradients = [g + p.grad for g, p in zip(gradients, layer, strict=True)]
    for parameter, gradient in zip(tied.lstm.all_weights[0], gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    torch.testing.assert_close(projection.grad, tied.lstm.weight_ih_l0.T @ first[0].grad)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
def test_padded_equals_one_by_one(layers: int, tied: bool, dtype: torch.dtype) -> None:
    net, x, start = make(layers, tied), inputs(), state(layers)
    beyond = torch.arange(7).unsqueeze(1) >= LENGTHS
    x[beyond] = float("nan")  # Whatever the padding holds.
    output, end = net(x, start, lengths=LENGTHS.to(dtype))
    assert output.shape == (7, 4, 6)
    assert (output[beyond] == 0).all()
    upstream = torch.randn_like(output)
    (output * upstream).sum().backward()
    together = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    for b, length in enumerate(LENGTHS.tolist()):
        one = slice(b, b + 1)
        alone, alone_end = net(x[:length, one], (start.hidden[:, one], start.memory[:, one]))
        torch.testing.assert_close(output[:length, one], alone)
        torch.testing.assert_close(end.hidden[:, one], alone_end.hidden)
        torch.testing.assert_close(end.memory[:, one], alone_end.memory)
        (alone * upstream[:length, one]).sum().backward()
    torch.testing.assert_close([p.grad for p in net.parameters()], together)


@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
def test_two_halves_equal_one_pass(layers: int, tied: bool) -> None:
    net, x = make(layers, tied), inputs()
    output, end = net(x)
    first, carried = net(x[:3])
    second, last = net(x[3:], carried)
    torch.testing.assert_close(torch.cat((first, second)), output)
    torch.testing.assert_close(last, end)


def test_a_missing_memory_is_zero() -> None:
    net, x, start = make(2, True), inputs(), state(2)
    zero = torch.zeros_like(start.hidden)
    torch.testing.assert_close(net(x, State(start.hidden)), net(x, (start.hidden, zero)))


@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
def test_an_empty_batch(layers: int, tied: bool) -> None:
    net = make(layers, tied)
    x = torch.zeros(7, 0, 5, dtype=torch.float64)
    for lengths in (None, torch.zeros(0, dtype=torch.int64)):
        output, (h, m) = net(x, lengths=lengths)
        assert output.shape == (7, 0, 6)
        assert h.shape == m.shape == (layers, 0, 6)


@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_autocast_agrees_roughly(layers: int, tied: bool, lengths: torch.Tensor | None) -> None:
    net = make(layers, tied).float()
    x = inputs().float()
    expected, expected_end = net(x, lengths=lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, end = net(x, lengths=lengths)
        net(x.bfloat16(), end, lengths=lengths)
    torch.testing.assert_close(output.float(), expected, rtol=0.05, atol=0.02)
    torch.testing.assert_close(end.memory.float(), expected_end.memory, rtol=0.05, atol=0.02)
    output.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
def test_forget_bias_sets_the_start(layers: int, tied: bool) -> None:
    net = make(layers, tied, forget_bias=2.0)
    for weight_ih, weight_hh, bias_ih, bias_hh in net.lstm.all_weights:
        bound = (6 / (6 + weight_ih.shape[1] + 6)) ** 0.5
        for weight in (weight_ih, weight_hh):
            assert 0.8 * bound < weight.abs().max() <= bound
        expected = torch.zeros(24, dtype=torch.float64)
        expected[6:12] = 2
        assert torch.equal(bias_ih, expected)
        assert not bias_hh.any()
    # One step from rest: what was remembered is multiplied by σ(2) where all else is silenced.
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() > 1:
                parameter.zero_()
    _, end = net(inputs()[:1], (torch.zeros_like(state(layers).hidden), start := state(layers).memory))
    torch.testing.assert_close(
        end.memory, start * torch.sigmoid(torch.tensor(2.0, dtype=torch.float64))
    )


def test_without_forget_bias_starts_like_torch() -> None:
    net = make(2, False)
    bound = 6**-0.5
    for parameter in net.parameters():
        assert 0.8 * bound < parameter.abs().max() <= bound


@pytest.mark.parametrize(("layers", "tied"), VARIANTS)
@pytest.mark.parametrize("forget_bias", [None, 1.0])
def test_reset_copy_and_state_dict(layers: int, tied: bool, forget_bias: float | None) -> None:
    net, x = make(layers, tied, forget_bias=forget_bias), inputs()
    twin = copy.deepcopy(net)
    torch.testing.assert_close(twin(x), net(x))
    twin.reset_parameters()
    assert all(
        not torch.equal(a, b)
        for a, b in zip(net.parameters(), twin.parameters(), strict=True)
        if a.dim() > 1
    )
    twin.load_state_dict(net.state_dict())
    torch.testing.assert_close(twin(x), net(x))


def test_sizes_and_repr() -> None:
    net = StackedLSTM(5, 6, 3, tied=True, forget_bias=1.0, batch_first=True)
    assert net.output_size == 6
    shown = "StackedLSTM(\n  5, 6, num_layers=3, tied=True, forget_bias=1.0, batch_first=True\n"
    assert repr(net).startswith(shown)
    assert "bias=False" in repr(StackedLSTM(5, 6, bias=False)).splitlines()[1]
    # Tied, the number of parameters does not depend on the number of layers.
    count = [sum(p.numel() for p in make(layers, True).parameters()) for layers in (1, 4)]
    assert count[0] == count[1] == 5 * 6 + 4 * 6 * (6 + 6 + 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"input_size": 0}, ValueError, "^input_size: expected at least 1, got 0$"),
        ({"hidden_size": 2.5}, TypeError, "^hidden_size: expected an integer, got 2.5$"),
        ({"num_layers": True}, TypeError, "^num_layers: expected an integer, got True$"),
        ({"forget_bias": "1"}, TypeError, "^forget_bias: expected a number, got '1'$"),
        (
            {"forget_bias": 1.0, "bias": False},
            ValueError,
            "^forget_bias: expected None because bias is False, got 1.0$",
        ),
    ],
)
def test_bad_arguments(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        StackedLSTM(**{"input_size": 5, "hidden_size": 6} | arguments)


H = torch.zeros(1, 3, 6)


@pytest.mark.parametrize(
    ("x", "call", "error", "message"),
    [
        (torch.zeros(7, 3, 4), {}, ValueError, r"^x: expected \[time, batch, 5\], got \[7, 3, 4\]$"),
        (torch.zeros(7, 5), {}, ValueError, r"^x: expected \[time, batch, 5\], got \[7, 5\]$"),
        (torch.zeros(0, 3, 5), {}, ValueError, "^x: expected at least 1 time step, got 0$"),
        (
            torch.zeros(7, 3, 5).double(),
            {},
            TypeError,
            "^x: expected dtype torch.float32, got torch.float64$",
        ),
        (
            torch.zeros(7, 3, 5, device="meta"),
            {},
            ValueError,
            "^x: expected a tensor on cpu, got meta$",
        ),
        ([[1.0]], {}, TypeError, "^x: expected a tensor, got list$"),
        (None, {"state": H}, TypeError, r"^state: expected a pair \(hidden, memory\), got Tensor$"),
        (
            None,
            {"state": (H, H, H)},
            TypeError,
            r"^state: expected a pair \(hidden, memory\), got tuple$",
        ),
        (
            None,
            {"state": (H[:, :2], H)},
            ValueError,
            r"^state hidden: expected \[1, 3, 6\], got \[1, 2, 6\]$",
        ),
        (
            None,
            {"state": (H, H[..., 1:])},
            ValueError,
            r"^state memory: expected \[1, 3, 6\], got \[1, 3, 5\]$",
        ),
        (
            None,
            {"state": (H, H.double())},
            TypeError,
            "^state memory: expected dtype torch.float32, got torch.float64$",
        ),
        (None, {"state": (None, H)}, TypeError, "^state hidden: expected a tensor, got NoneType$"),
        (None, {"lengths": [7, 7, 7]}, TypeError, "^lengths: expected a tensor of integers, got list$"),
        (
            None,
            {"lengths": torch.ones(3)},
            TypeError,
            "^lengths: expected a tensor of integers, got torch.float32$",
        ),
        (
            None,
            {"lengths": torch.tensor([7, 7])},
            ValueError,
            r"^lengths: expected \[3\] \(batch\), got \[2\]$",
        ),
        (
            None,
            {"lengths": torch.tensor([7, 0, 1])},
            ValueError,
            r"^lengths: expected 1 to 7 \(the size\), got 0$",
        ),
        (
            None,
            {"lengths": torch.tensor([7, 8, 1])},
            ValueError,
            r"^lengths: expected 1 to 7 \(the size\), got 8$",
        ),
    ],
)
def test_bad_calls(x: object, call: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        StackedLSTM(5, 6)(torch.zeros(7, 3, 5) if x is None else x, **call)


def test_bad_calls_in_other_settings() -> None:
    with pytest.raises(ValueError, match=r"^x: expected \[batch, time, 5\], got \[3, 7, 4\]$"):
        StackedLSTM(5, 6, batch_first=True)(torch.zeros(3, 7, 4))
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(TypeError, match=r"^x: expected a floating dtype, got torch\.int64$"),
    ):
        StackedLSTM(5, 6)(torch.zeros(7, 3, 5, dtype=torch.int64))
