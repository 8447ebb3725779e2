"""A Stacked LSTM is a grid: weights from and to ``torch.nn.LSTM``, an oracle nobody here wrote."""

import pytest
import torch
from torch import nn

from gridlstm import SequenceGridLSTM, from_torch, to_torch

FLOAT64 = {"rtol": 1e-9, "atol": 1e-11}
SHAPES = [(5, 8, 1), (8, 8, 2), (3, 7, 3), (11, 4, 4)]


def make(inputs: int, hidden: int, layers: int, **options: object) -> nn.LSTM:
    return nn.LSTM(inputs, hidden, layers, dtype=torch.float64, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["reference", "wavefront"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "hidden", "layers"), SHAPES)
def test_outputs_states_and_gradients_agree(inputs, hidden, layers, bias, engine) -> None:
    lstm = make(inputs, hidden, layers, bias=bias)
    net = from_torch(lstm)
    net.grid.engine = engine
    x = torch.randn(6, 3, inputs, dtype=torch.float64, requires_grad=True)
    state = tuple(
        torch.randn(layers, 3, hidden, dtype=torch.float64, requires_grad=True) for _ in range(2)
    )
    weight, bias_time = net.grid.weights_of("time")
    results = []
    for module in (lstm, net):
        output, (h, c) = module(x, state)
        torch.manual_seed(3)
        loss = sum((t * torch.randn_like(t)).sum() for t in (output, h, c))
        parameters = [p for p in module.parameters() if p.requires_grad]
        results.append((output, h, c, *torch.autograd.grad(loss, (x, *state), retain_graph=True)))
        grads = torch.autograd.grad(loss, parameters)
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, **FLOAT64)
    # PyTorch's gates are i, f, g, o; the paper's u, f, o, c are i, f, o, g.
    i, f, g, o = range(4)
    for layer in range(layers):
        weight_ih, weight_hh, *biases = lstm.all_weights[layer]
        want = torch.cat([weight_hh.grad, weight_ih.grad], -1).chunk(4)
        got = weight.grad[layer, :, : hidden + weight_ih.shape[1]]
        torch.testing.assert_close(got, torch.cat([want[k] for k in (i, f, o, g)]), **FLOAT64)
        if biases:
            want = biases[0].grad.chunk(4)
            torch.testing.assert_close(
                bias_time.grad[layer], torch.cat([want[k] for k in (i, f, o, g)]), **FLOAT64
            )


@pytest.mark.parametrize(("inputs", "hidden", "layers"), SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_there_and_back(inputs, hidden, layers, bias) -> None:
    lstm = make(inputs, hidden, layers, bias=bias, batch_first=True).eval()
    back = to_torch(from_torch(lstm))
    assert (back.batch_first, back.training) == (True, False)
    x = torch.randn(3, 6, inputs, dtype=torch.float64)
    for want, got in zip(lstm(x)[1], back(x)[1], strict=True):
        torch.testing.assert_close(got, want, **FLOAT64)


def test_training_keeps_it_a_stacked_lstm() -> None:
    net = from_torch(make(9, 4, 2))
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.5)
    x = torch.randn(6, 3, 9, dtype=torch.float64)
    for _ in range(3):
        optimizer.zero_grad()
        net(x)[0].square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(to_torch(net)(x)[0], net(x)[0], **FLOAT64)


def test_what_is_frozen_stays_frozen() -> None:
    assert not any(
        p.requires_grad for p in from_torch(make(3, 4, 1).requires_grad_(False)).parameters()
    )


def test_any_linear_projection_and_tied_weights_convert() -> None:
    net = SequenceGridLSTM(
        5, 6, 3, depth="identity", priority=True, output="standard", dtype=torch.float64
    )
    with torch.no_grad():
        net.projection.linear.bias.normal_()
        V, _ = net.grid.weights_of("depth")
        V.copy_(torch.eye(6, 12))
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    torch.testing.assert_close(to_torch(net)(x)[0], net(x)[0], **FLOAT64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proj_size": 3}, "lstm: expected proj_size=0, got proj_size=3"),
        ({"bidirectional": True}, "lstm: expected bidirectional=False, got bidirectional=True"),
        (
            {"dropout": 1.0, "num_layers": 2},
            "lstm: dropout: expected at least 0 and below 1, got 1.0",
        ),
    ],
)
def test_what_has_no_counterpart_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        from_torch(nn.LSTM(4, 8, **options))


@pytest.mark.parametrize("layers", [1, 3])
def test_dropout_between_layers_survives(layers: int) -> None:
    """With one layer it has no effect, here as there."""
    lstm = nn.LSTM(4, 8, layers, dtype=torch.float64)
    lstm.dropout = 0.5  # Without the warning for one layer.
    net, x = from_torch(lstm), torch.randn(5, 2, 4, dtype=torch.float64)
    assert net.dropout == 0.5
    assert torch.equal(net(x)[0], net(x)[0]) == (layers == 1)
    torch.testing.assert_close(net.eval()(x)[0], lstm.eval()(x)[0], **FLOAT64)
    assert to_torch(net).dropout == (0.5 if layers > 1 else 0)


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^lstm: expected a torch.nn.LSTM, got GRU$"):
        from_torch(nn.GRU(4, 8))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^net: expected a SequenceGridLSTM, got LSTM$"):
        to_torch(nn.LSTM(4, 8))  # type: ignore[arg-type]


STACKED = {"depth": "identity", "priority": True, "output": "standard"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bidirectional": True}, "net: expected bidirectional=False for a Stacked LSTM, got bidir"),
        ({}, "net: expected depth='identity' for a Stacked LSTM, got depth='lstm'"),
        ({"depth": "identity"}, "net: expected priority=True for a Stacked LSTM, got priority=False"),
        ({"depth": "identity", "priority": True}, "net: expected output='standard' for a Stacked LSTM"),
        ({**STACKED}, "got a V that reads depth"),
        ({**STACKED, "dropout": 0.5}, "net: expected dropout=0 for a Stacked LSTM, got dropout=0.5"),
        (
            {**STACKED, "zoneout": 0.1},
            "net: expected zoneout=False for a Stacked LSTM, got zoneout=0.1",
        ),
        ({**STACKED, "layer_norm": True}, "net: expected layer_norm=False for a Stacked LSTM, got lay"),
        (
            {**STACKED, "dropout": 0.5, "dropout_between": ["depth"], "dropout_tied": ["time"]},
            "net: expected dropout=0 for a Stacked LSTM, got dropout=0.5",
        ),
    ],
)
def test_what_is_no_stacked_lstm_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        to_torch(SequenceGridLSTM(4, 8, 2, **options))


def test_another_v_at_the_top_is_refused() -> None:
    net = from_torch(nn.LSTM(4, 8, 2))
    V, _ = net.grid.weights_of("depth")
    with torch.no_grad():
        V[-1, 0, 0] = 2
    with pytest.raises(ValueError, match=r"expected V = \[I 0\] and no bias at the top"):
        to_torch(net)
