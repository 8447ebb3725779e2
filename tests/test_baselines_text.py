"""The multiplicative RNN and the gated-feedback LSTM against their equations in NumPy."""

import copy

import numpy as np
import pytest
import torch

from gridlstm.models.gated_feedback import GatedFeedbackLSTM
from gridlstm.models.multiplicative import MultiplicativeRNN
from gridlstm.models.sequence_network import SequenceNetwork
from gridlstm.state import State

NETWORKS = {
    "multiplicative": lambda **options: MultiplicativeRNN(5, 6, factor_size=4, **options),
    "feedback": lambda **options: GatedFeedbackLSTM(5, 6, 3, **options),
    "feedback, all": lambda **options: GatedFeedbackLSTM(5, 6, 3, readout="all", **options),
}
each_network = pytest.mark.parametrize("name", NETWORKS)


def make(name: str, **options) -> SequenceNetwork:
    return NETWORKS[name](**{"dtype": torch.float64} | options)


def inputs() -> torch.Tensor:
    return torch.randn(7, 4, 5, dtype=torch.float64)


def start(net: SequenceNetwork) -> State:
    hidden, memory = torch.randn(2, net.num_layers, 4, 6, dtype=torch.float64)
    return State(hidden, None if isinstance(net, MultiplicativeRNN) else memory)


def tensors(output: torch.Tensor, end: State) -> list[torch.Tensor]:
    return [t for t in (output, *end) if t is not None]


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def arrays(net: SequenceNetwork) -> dict[str, np.ndarray]:
    return {name: p.detach().numpy() for name, p in net.named_parameters()}


def multiplicative(net: MultiplicativeRNN, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sample by sample, each step with the transition matrix of its input."""
    p, F = arrays(net), net.factor_size
    W_fx, W_hx = p["weight_input"][:F], p["weight_input"][F:]
    output, end = np.empty((*x.shape[:2], net.hidden_size)), h.copy()
    for b in range(x.shape[1]):
        for t in range(len(x)):
            transition = p["weight_hidden"] @ np.diag(W_fx @ x[t, b]) @ p["weight_factor"]
            end[0, b] = np.tanh(transition @ end[0, b] + W_hx @ x[t, b] + p.get("bias", 0))
            output[t, b] = end[0, b]
    return output, end


def feedback(
    net: GatedFeedbackLSTM, x: np.ndarray, h: np.ndarray, m: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Sample by sample, layer by layer, one reset gate after the other."""
    p, L, d = arrays(net), net.num_layers, net.hidden_size
    h, m, output = h.copy(), m.copy(), np.empty((*x.shape[:2], L * d))
    for b in range(x.shape[1]):
        for t in range(len(x)):
            before, below = h[:, b].copy(), x[t, b]
            for j in range(L):
                W, w = p[f"weight_input.{j}"][:-1], p[f"weight_input.{j}"][-1]
                W_u, W_f, W_o, W_c = np.split(W, 4)
                U_u, U_f, U_o = np.split(p["weight_hidden"][j], 3)
                b_u, b_f, b_o, b_c = np.split(p.get("bias", np.zeros((L, 4 * d)))[j], 4)
                g_u = sigmoid(W_u @ below + U_u @ before[j] + b_u)
                g_f = sigmoid(W_f @ below + U_f @ before[j] + b_f)
                g_o = sigmoid(W_o @ below + U_o @ before[j] + b_o)
                content = W_c @ below + b_c
                for i in range(L):
                    g = sigmoid(w @ below + p["weight_reset"][j, i] @ np.concatenate(before))
                    content += g * (p["weight_feedback"][i, j] @ before[i])
                m[j, b] = g_f * m[j, b] + g_u * np.tanh(content)
                below = h[j, b] = g_o * np.tanh(m[j, b])
            output[t, b] = h[:, b].flatten()
    return output if net.readout == "all" else output[..., -d:], h, m


@pytest.mark.parametrize("bias", [True, False])
@each_network
def test_equals_the_equations(name: str, bias: bool) -> None:
    net, x = make(name, bias=bias), inputs()
    given = start(net)
    if net.bias is not None:
        torch.nn.init.normal_(net.bias)
    loop = multiplicative if isinstance(net, MultiplicativeRNN) else feedback
    expected = loop(net, x.numpy(), *(t.numpy() for t in given if t is not None))
    for got, want in zip(tensors(*net(x, given)), expected, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "net",
    [
        MultiplicativeRNN(2, 3, factor_size=2, dtype=torch.float64),
        GatedFeedbackLSTM(2, 3, 2, readout="all", dtype=torch.float64),
    ],
    ids=["multiplicative", "feedback"],
)
def test_gradients(net: SequenceNetwork) -> None:
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    given = start(net).map(lambda t: t[:, :2, :3].requires_grad_())
    state = [t for t in given if t is not None]
    names = [name for name, _ in net.named_parameters()]

    def run(x: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parameters = dict(zip(names, rest[len(state) :], strict=True))
        return tuple(
            tensors(*torch.func.functional_call(net, parameters, (x, State(*rest[: len(state)]))))
        )

    assert torch.autograd.gradcheck(run, (x, *state, *net.parameters()))


@each_network
def test_chunks_equal_one_pass(name: str) -> None:
    net, x = make(name), inputs()
    given = start(net)
    outputs, carried = [], given
    for chunk in x.split([3, 1, 3]):
        output, carried = net(chunk, carried)
        outputs.append(output)
    torch.testing.assert_close(
        tensors(torch.cat(outputs), carried), tensors(*net(x, given)), rtol=0, atol=1e-14
    )


@each_network
def test_starts_from_zero_unless_given(name: str) -> None:
    net, x = make(name), inputs()
    zero = torch.zeros_like(start(net).hidden)
    for given in (State(zero), (zero, None), [zero, None]):
        torch.testing.assert_close(tensors(*net(x, given)), tensors(*net(x)), rtol=0, atol=0)


@each_network
def test_batch_first_only_swaps_axes(name: str) -> None:
    net, x = make(name), inputs()
    given = start(net)
    swapped = copy.deepcopy(net)
    swapped.batch_first = True
    output, end = swapped(x.transpose(0, 1), given)
    torch.testing.assert_close(tensors(output.transpose(0, 1), end), tensors(*net(x, given)))


@pytest.mark.parametrize("batch_first", [False, True])
@each_network
def test_a_single_sequence_has_no_batch_axis(name: str, batch_first: bool) -> None:
    net, x = make(name, batch_first=batch_first), inputs()[:, :1]
    batch = 0 if batch_first else 1
    one = start(net).map(lambda t: t[:, :1])
    for given in (None, one):
        output, end = net(x.transpose(1, batch), given)
        alone = net(x.squeeze(1), given and given.map(lambda t: t.squeeze(1)))
        assert alone[0].shape == (7, net.output_size)
        expected = tensors(output.squeeze(batch), end.map(lambda t: t.squeeze(1)))
        torch.testing.assert_close(tensors(*alone), expected)


@each_network
def test_an_empty_batch(name: str) -> None:
    net = make(name)
    output, end = net(torch.zeros(7, 0, 5, dtype=torch.float64))
    assert output.shape == (7, 0, net.output_size)
    assert end.hidden.shape == (net.num_layers, 0, 6)


@each_network
def test_autocast_agrees_roughly(name: str) -> None:
    net, x = make(name, dtype=torch.float32), inputs().float()
    expected, _ = net(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, end = net(x)
        net(x.bfloat16(), end)
    torch.testing.assert_close(output.float(), expected, rtol=0.05, atol=0.05)
    output.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("bias", [True, False])
def test_number_of_parameters(bias: bool) -> None:
    n, d, F, L = 5, 6, 4, 3
    count = [sum(p.numel() for p in make(name, bias=bias).parameters()) for name in NETWORKS]
    assert count[0] == n * (F + d) + 2 * F * d + bias * d
    below = (4 * d + 1) * (n + (L - 1) * d)
    assert count[1] == count[2] == below + L * 3 * d * d + L**2 * d * d + L**3 * d + bias * 4 * L * d


def test_the_start_of_the_multiplicative_rnn() -> None:
    net = MultiplicativeRNN(50, 60, factor_size=40)
    to_factors, to_hidden = net.weight_input.split([40, 60])
    assert abs(to_factors.var() - 1) < 0.1
    for weight in (to_hidden, net.weight_factor, net.weight_hidden):
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.9 * bound < weight.abs().max() <= bound
    assert not net.bias.any()


def test_forget_bias_sets_the_start() -> None:
    net = GatedFeedbackLSTM(50, 20, 3, forget_bias=2.0)
    for j, weight in enumerate(net.weight_input):
        gates, content = weight.split([60, 21])
        for fan_in, weights in (
            (weight.shape[1] + 20, (gates, net.weight_hidden[j])),
            (weight.shape[1] + 60, (content, net.weight_feedback[:, j], net.weight_reset[j])),
        ):
            bound = (6 / (20 + fan_in)) ** 0.5
            assert all(0.9 * bound < part.abs().max() <= bound for part in weights)
    expected = torch.zeros(3, 80)
    expected[:, 20:40] = 2
    assert torch.equal(net.bias, expected)
    # One step in which all else is silenced: the memory is multiplied by σ(2).
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name != "bias":
                parameter.zero_()
    memory = torch.randn(3, 4, 20)
    _, end = net(torch.randn(1, 4, 50), (torch.randn(3, 4, 20), memory))
    torch.testing.assert_close(end.memory, memory * torch.sigmoid(torch.tensor(2.0)))


def test_without_forget_bias_starts_like_torch() -> None:
    for parameter in GatedFeedbackLSTM(50, 20, 3).parameters():
        assert 0.9 * 20**-0.5 < parameter.abs().max() <= 20**-0.5


@pytest.mark.parametrize("options", [{}, {"forget_bias": 1.0}, {"bias": False}])
@each_network
def test_reset_copy_and_state_dict(name: str, options: dict) -> None:
    if name == "multiplicative":
        options = {key: value for key, value in options.items() if key == "bias"}
    net, x = make(name, **options), inputs()
    twin = copy.deepcopy(net)
    twin.reset_parameters()
    assert all(
        not torch.equal(a, b)
        for (key, a), b in zip(net.named_parameters(), twin.parameters(), strict=True)
        if key != "bias"
    )
    twin.load_state_dict(net.state_dict())
    torch.testing.assert_close(tensors(*twin(x)), tensors(*net(x)), rtol=0, atol=0)


def test_sizes_and_repr() -> None:
    assert (make("multiplicative").output_size, make("multiplicative").num_layers) == (6, 1)
    assert (make("feedback").output_size, make("feedback, all").output_size) == (6, 18)
    assert MultiplicativeRNN(5, 6).factor_size == 6
    assert repr(MultiplicativeRNN(5, 6)) == "MultiplicativeRNN(5, 6)"
    shown = "MultiplicativeRNN(5, 6, factor_size=4, bias=False, batch_first=True)"
    assert repr(make("multiplicative", bias=False, batch_first=True)) == shown
    shown = '5, 6, num_layers=3, readout="all", forget_bias=1.0, batch_first=True'
    assert make("feedback, all", forget_bias=1.0, batch_first=True).extra_repr() == shown


@pytest.mark.parametrize(
    ("network", "arguments", "error", "message"),
    [
        (MultiplicativeRNN, {"input_size": 0}, ValueError, "^input_size: expected at least 1, got 0$"),
        (
            MultiplicativeRNN,
            {"factor_size": 0},
            ValueError,
            "^factor_size: expected at least 1, got 0$",
        ),
        (
            GatedFeedbackLSTM,
            {"hidden_size": 2.5},
            TypeError,
            "^hidden_size: expected an integer, got 2.5$",
        ),
        (GatedFeedbackLSTM, {"num_layers": 0}, ValueError, "^num_layers: expected at least 1, got 0$"),
        (
            GatedFeedbackLSTM,
            {"readout": "both"},
            ValueError,
            "^readout: expected one of top, all, got 'both'$",
        ),
        (
            GatedFeedbackLSTM,
            {"forget_bias": 1.0, "bias": False},
            ValueError,
            "^forget_bias: expected None because bias is False, got 1.0$",
        ),
    ],
)
def test_bad_arguments(
    network: type[SequenceNetwork], arguments: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        network(**{"input_size": 5, "hidden_size": 6} | arguments)


X, H = torch.zeros(7, 3, 5), torch.zeros(1, 3, 6)


@pytest.mark.parametrize("network", [MultiplicativeRNN, GatedFeedbackLSTM])
@pytest.mark.parametrize(
    ("x", "state", "error", "message"),
    [
        (X[..., 1:], None, ValueError, r"^x: expected \[time, batch, 5\], got \[7, 3, 4\]$"),
        (X[:, 0, 1:], None, ValueError, r"^x: expected \[time, 5\], got \[7, 4\]$"),
        (X[:0], None, ValueError, "^x: expected at least 1 time step, got 0$"),
        (X[:0, 0], None, ValueError, "^x: expected at least 1 time step, got 0$"),
        (X.double(), None, TypeError, "^x: expected dtype torch.float32, got torch.float64$"),
        ([[1.0]], None, TypeError, "^x: expected a tensor, got list$"),
        (X, H, TypeError, r"^state: expected a pair \(hidden, memory\), got Tensor$"),
        (X, (H, H, H), TypeError, r"^state: expected a pair \(hidden, memory\), got tuple$"),
        (X, State(H[:, 1:]), ValueError, r"^state hidden: expected \[1, 3, 6\], got \[1, 2, 6\]$"),
        (X[:, 0], State(H), ValueError, r"^state hidden: expected \[1, 6\], got \[1, 3, 6\]$"),
        (X, (H, H[1:]), ValueError, r"^state memory: expected \[1, 3, 6\], got \[0, 3, 6\]$"),
        (X, (None, H), TypeError, "^state hidden: expected a tensor, got NoneType$"),
    ],
)
def test_bad_calls(
    network: type[SequenceNetwork], x: object, state: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        network(5, 6)(x, state)


def test_the_multiplicative_rnn_has_no_memory() -> None:
    message = "^state memory: expected None because the network has no memory, got a tensor$"
    with pytest.raises(ValueError, match=message):
        MultiplicativeRNN(5, 6)(X, (H, H))
