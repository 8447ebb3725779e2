"""What users of ``torch.nn.LSTM`` rely on: behaviours that PyTorch's own suite tests, in both engines.

The two networks are compared where they must agree: in shapes, attributes, and in what they refuse.
Elsewhere ``SequenceGridLSTM`` is compared with itself.
"""

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, parametrize, prune
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch.testing import assert_close
from torch.utils import _pytree
from torch.utils.flop_counter import FlopCounterMode

from gridlstm import SequenceGridLSTM, State, from_torch

FLOAT64 = {"rtol": 1e-9, "atol": 1e-11}
Make = Callable[..., SequenceGridLSTM]


@pytest.fixture(params=[False, True], ids=["plain", "bidirectional"])
def bidirectional(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=["reference", "wavefront"])
def make(request: pytest.FixtureRequest, bidirectional: bool) -> Make:
    """A network of 3 layers from 5 to 6 values, in each engine and with one and two directions."""

    def build(*sizes: int, **options) -> SequenceGridLSTM:
        shared = {"engine": request.param, "bidirectional": bidirectional, "dtype": torch.float64}
        return SequenceGridLSTM(*(sizes or (5, 6, 3)), **{**shared, **options})

    return build


def inputs(*shape: int) -> Tensor:
    return torch.randn(shape or (7, 2, 5), dtype=torch.float64)


def start(net: SequenceGridLSTM, *batch: int) -> State:
    """A random state of the right size."""
    layers = net.num_layers * (2 if net.bidirectional else 1)
    return State(inputs(layers, *batch, net.hidden_size), inputs(layers, *batch, net.hidden_size))


def gradients(net: SequenceGridLSTM, x: Tensor, *arguments, **options) -> list[Tensor]:
    output, state = net(x, *arguments, **options)
    loss = output.square().sum() + state.hidden.sum() + state.memory.square().sum()
    return list(torch.autograd.grad(loss, [x, *net.parameters()]))


# How it is called, and what it returns.


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["batch", "one sequence", "packed"])
def test_shapes_are_those_of_nn_lstm(make: Make, kind, batch_first) -> None:
    net = make(batch_first=batch_first)
    lstm = nn.LSTM(5, 6, 3, False, batch_first, 0.0, net.bidirectional, dtype=torch.float64)
    x = inputs(*{"one sequence": (7, 5)}.get(kind, (7, 2, 5)))
    if kind == "packed":
        x = pack_padded_sequence(x, [2, 1, 1, 1, 1, 1, 1] if batch_first else [7, 3], batch_first)
    for state in (None, start(net, *x.shape[1:-1])) if kind == "one sequence" else (None,):
        (output, end), (expected, (h, c)) = net(x, state), lstm(x, state)
        assert end.hidden.shape == h.shape
        assert end.memory.shape == c.shape
        if kind == "packed":
            assert_close(output.batch_sizes, expected.batch_sizes)
            output, expected = output.data, expected.data
        assert output.shape == expected.shape
        assert output.shape[-1] == net.output_size


def test_hx_is_another_name_for_state(make: Make) -> None:
    net, x = make(), inputs()
    state = start(net, 2)
    assert_close(net(x, hx=state), net(x, state), rtol=0, atol=0)
    assert_close(net(x, hx=tuple(state)), net(x, state), rtol=0, atol=0)
    assert_close(net(x, hx=list(state)), net(x, state), rtol=0, atol=0)
    with pytest.raises(ValueError, match=r"^hx: expected None because state is given, got both$"):
        net(x, state, hx=state)


def test_a_state_of_zeros_is_the_default(make: Make) -> None:
    net, x = make(), inputs()
    zeros = start(net, 2).map(torch.zeros_like)
    assert_close(net(x, zeros), net(x), **FLOAT64)
    assert_close(net(x, (zeros.hidden, None)), net(x), **FLOAT64)


@pytest.mark.parametrize("kind", [list, tuple])
def test_lengths_as_a_list(make: Make, kind) -> None:
    net, x = make(), inputs(7, 3, 5)
    assert_close(net(x, lengths=kind([7, 1, 4])), net(x, lengths=torch.tensor([7, 1, 4])))
    for lengths, error, message in (
        ([7, 1.0, 4], TypeError, r"lengths: expected integers, got 1\.0"),
        ([7, True, 4], TypeError, r"lengths: expected integers, got True"),
        ([7, 1], ValueError, r"lengths: expected \[3\] \(batch\), got \[2\]"),
        ([7, 8, 1], ValueError, r"lengths: expected 0 to 7 \(the size\), got 8"),
        ("714", TypeError, r"lengths: expected a tensor of integers, got str"),
    ):
        with pytest.raises(error, match=f"^{message}$"):
            net(x, lengths=lengths if isinstance(lengths, str) else kind(lengths))


def test_one_sequence_is_a_batch_of_one(make: Make) -> None:
    for batch_first in (False, True):
        net, x = make(batch_first=batch_first), inputs(7, 5)
        state, batch = start(net), 0 if batch_first else 1
        output, end = net(x, state)
        batched, batched_end = net(x.unsqueeze(batch), state.map(lambda t: t.unsqueeze(1)))
        assert_close(output, batched.squeeze(batch), **FLOAT64)
        assert_close(end, batched_end.map(lambda t: t.squeeze(1)), **FLOAT64)


def test_batch_first_swaps_the_axes_of_sequences_only(make: Make) -> None:
    net, x = make(), inputs()
    state = start(net, 2)
    output, end = net(x, state)
    net.batch_first = True
    swapped, same = net(x.transpose(0, 1), state)
    assert_close(swapped.transpose(0, 1), output, **FLOAT64)
    assert_close(same, end, **FLOAT64)


@pytest.mark.parametrize("batch_first", [False, True])
def test_packed_equals_padded_equals_one_by_one(make: Make, batch_first) -> None:
    net, lengths = make(batch_first=batch_first), [3, 7, 1]
    sequences = [inputs(length, 5) for length in lengths]
    state = start(net, 3)
    packed, end = net(pack_sequence(sequences, enforce_sorted=False), state)
    output, given = pad_packed_sequence(packed, batch_first=True)
    assert given.tolist() == lengths
    padded = nn.utils.rnn.pad_sequence(sequences, batch_first=batch_first, padding_value=9.0)
    other, other_end = net(padded, state, lengths=lengths)
    assert_close(other if batch_first else other.transpose(0, 1), output, **FLOAT64)
    assert_close(other_end, end, **FLOAT64)
    for i, sequence in enumerate(sequences):
        alone, alone_end = net(sequence, state.map(lambda t, i=i: t[:, i]))
        assert_close(output[i, : lengths[i]], alone, **FLOAT64)
        assert not output[i, lengths[i] :].any()
        assert_close(end.map(lambda t, i=i: t[:, i]), alone_end, **FLOAT64)


def test_gradients_of_padded_and_packed_sequences_agree(make: Make) -> None:
    net, lengths = make(), [7, 4, 1]
    x = inputs(7, 3, 5).requires_grad_()
    padded = gradients(net, x, lengths=lengths)
    output, state = net(pack_padded_sequence(x, lengths))
    assert isinstance(output, PackedSequence)
    loss = output.data.square().sum() + state.hidden.sum() + state.memory.square().sum()
    assert_close(list(torch.autograd.grad(loss, [x, *net.parameters()])), padded, **FLOAT64)
    assert not padded[0][4:, 1].any()


def test_a_batch_in_two_parts(make: Make) -> None:
    net, x = make(), inputs(7, 4, 5)
    state = start(net, 4)
    whole, end = net(x, state)
    parts = [net(x[:, at], state.map(lambda t, at=at: t[:, at])) for at in (slice(1), slice(1, 4))]
    assert_close(torch.cat([output for output, _ in parts], 1), whole, **FLOAT64)
    assert_close(torch.cat([part.memory for _, part in parts], 1), end.memory, **FLOAT64)


def test_a_sequence_in_two_parts(make: Make) -> None:
    """What the forward direction computes; the backward direction needs the end first."""
    net, x = make(), inputs()
    whole, end = net(x)
    first, state = net(x[:3])
    second, last = net(x[3:], state)
    step = 2 if net.bidirectional else 1
    assert_close(torch.cat([first, second])[..., :6], whole[..., :6], **FLOAT64)
    assert_close(last.memory[::step], end.memory[::step], **FLOAT64)


def test_strided_inputs(make: Make) -> None:
    net = make()
    x, state = inputs(7, 2, 5), start(net, 2)
    strided = x.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    assert not strided.is_contiguous()
    output, end = net(strided, state.map(lambda t: t.mT.contiguous().mT))
    assert_close((output, end), net(x, state), **FLOAT64)
    assert output.is_contiguous()


def test_a_batch_without_sequences(make: Make) -> None:
    net = make()
    lstm = nn.LSTM(5, 6, 3, bidirectional=net.bidirectional, dtype=torch.float64)
    output, end = net(inputs(7, 0, 5))
    expected, (h, _) = lstm(inputs(7, 0, 5))
    assert output.shape == expected.shape
    assert end.hidden.shape == end.memory.shape == h.shape


# What it refuses, as nn.LSTM does.

PAIR = (3, 2, 6), (3, 2, 6)
REFUSED = {
    "input_size": (inputs(7, 2, 4), None),
    "too many axes": (inputs(1, 7, 2, 5), None),
    "too few axes": (inputs(5), None),
    "no time steps": (inputs(0, 2, 5), None),
    "dtype": (torch.randn(7, 2, 5), None),
    "integers": (torch.zeros(7, 2, 5, dtype=torch.int64), None),
    "not a tensor": ([[1.0] * 5] * 7, None),
    "batch of the state": (inputs(7, 2, 5), ((3, 1, 6), (3, 1, 6))),
    "layers of the state": (inputs(7, 2, 5), ((4, 2, 6), (4, 2, 6))),
    "size of the hidden vectors": (inputs(7, 2, 5), ((3, 2, 5), (3, 2, 6))),
    "size of the memory": (inputs(7, 2, 5), ((3, 2, 6), (3, 2, 5))),
    "axes of the state": (inputs(7, 2, 5), ((3, 6), (3, 6))),
    "batch of states for one sequence": (inputs(7, 5), PAIR),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nn_lstm_refuses(make: Make, case) -> None:
    net, (x, shapes) = make(), REFUSED[case]
    lstm = nn.LSTM(5, 6, 3, bidirectional=net.bidirectional, dtype=torch.float64)
    directions = 2 if net.bidirectional else 1
    state = shapes and tuple(inputs(directions * layers, *rest) for layers, *rest in shapes)
    with pytest.raises((ValueError, RuntimeError, TypeError, AttributeError)):
        lstm(x, state)
    name = "state" if state else 'dimension "time"' if case == "no time steps" else "x"
    with pytest.raises((ValueError, TypeError), match=f"^{name}: expected"):
        net(x, state)


def test_states_of_another_dtype_or_device(make: Make) -> None:
    net = make()
    hidden, memory = start(net, 2)
    for state, error, message in (
        ((hidden.float(), memory), TypeError, "state hidden: expected dtype torch.float64, got"),
        ((hidden, memory.float()), TypeError, "state memory: expected dtype torch.float64, got"),
        ((hidden.to("meta"), memory), ValueError, "state hidden: expected a tensor on cpu, got meta"),
        ((hidden, memory.to("meta")), ValueError, "state memory: expected a tensor on cpu, got meta"),
    ):
        with pytest.raises(error, match=f"^{message}"):
            net(inputs(), state)
    with pytest.raises(ValueError, match=r"^x: expected a tensor on cpu, got meta$"):
        net(inputs().to("meta"))


@pytest.mark.parametrize("option", [{"dropout": 1.5}, {"dropout": -0.1}, {"dropout": "0.5"}])
def test_dropout_that_nn_lstm_refuses(make: Make, option) -> None:
    with pytest.raises((ValueError, TypeError)):
        nn.LSTM(5, 6, 3, **option)
    with pytest.raises((ValueError, TypeError), match=r"^dropout: expected"):
        make(**option)
    net = make()
    with pytest.raises((ValueError, TypeError), match=r"^dropout: expected"):
        net.dropout = option["dropout"]
    assert net.dropout == 0


def test_bidirectional_is_a_truth_value() -> None:
    with pytest.raises(TypeError, match=r"^bidirectional: expected True or False, got 2$"):
        SequenceGridLSTM(5, 6, bidirectional=2)


# Attributes and methods.


def test_attributes_are_those_of_nn_lstm(make: Make) -> None:
    names = "input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size"
    for options in ({}, {"bias": False, "batch_first": True, "dropout": 0.25}):
        net = make(**options)
        lstm = nn.LSTM(5, 6, 3, bidirectional=net.bidirectional, **options)
        for name in names.split():
            assert getattr(net, name) == getattr(lstm, name)
            assert type(getattr(net, name)) is type(getattr(lstm, name))


def test_all_weights_are_the_parameters(make: Make) -> None:
    net = make()
    assert len(net.all_weights) == (2 if net.bidirectional else 1)
    flat = [parameter for group in net.all_weights for parameter in group]
    assert [*map(id, flat)] == [*map(id, net.parameters())]


def test_flatten_parameters_changes_nothing(make: Make) -> None:
    net, x = make(), inputs()
    before = net(x)
    assert net.flatten_parameters() is None
    assert_close(net(x), before, rtol=0, atol=0)


@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"tied": False, "depth": "tanh"}, {"init": nn.init.orthogonal_}]
)
def test_reset_parameters_draws_what_the_constructor_draws(make: Make, options) -> None:
    torch.manual_seed(5)
    new = make(**options)
    after = torch.get_rng_state()
    torch.manual_seed(6)
    net = make(**options)
    before = net.state_dict(keep_vars=True)
    torch.manual_seed(5)
    net.reset_parameters()
    assert torch.equal(torch.get_rng_state(), after)
    for name, parameter in net.named_parameters():
        assert parameter is before[name]
        assert parameter.requires_grad
        assert torch.equal(parameter, new.get_parameter(name))


def test_repr(bidirectional) -> None:
    net = SequenceGridLSTM(
        5, 6, 3, readout="both", batch_first=True, bidirectional=bidirectional, dropout=0.5
    )
    shown = '5, 6, num_layers=3, readout="both", batch_first=True'
    assert net.extra_repr() == shown + (", bidirectional=True" if bidirectional else "")
    assert repr(net).count("dropout=0.5") == (2 if bidirectional else 1)  # Of each grid.


def test_meta_device_then_memory(make: Make) -> None:
    torch.manual_seed(5)
    expected = make().state_dict()
    net = make(device="meta")
    assert all(parameter.is_meta for parameter in net.parameters())
    output, state = net(inputs().to("meta"))
    assert output.shape == (7, 2, net.output_size)
    assert state.hidden.is_meta
    net.to_empty(device="cpu")
    torch.manual_seed(5)
    net.reset_parameters()
    assert_close(net.state_dict(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_to_another_dtype(make: Make, dtype) -> None:
    net = make().to(dtype)
    output, state = net(inputs().to(dtype))
    assert output.dtype == state.hidden.dtype == state.memory.dtype == dtype
    with pytest.raises(TypeError, match=r"^x: expected dtype"):
        net(inputs())


def test_copies(make: Make) -> None:
    net, x = make(dropout=0.5).eval(), inputs()
    expected = net(x)
    restored = make(dropout=0.5).eval()
    restored.load_state_dict(net.state_dict())
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for same in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), restored, loaded):
        assert_close(same(x), expected, rtol=0, atol=0)
        assert same.dropout == 0.5
        same.reset_parameters()
        assert_close(net(x), expected, rtol=0, atol=0)


def test_directions_of_a_state_dict() -> None:
    one, two = SequenceGridLSTM(5, 6, 3), SequenceGridLSTM(5, 6, 3, bidirectional=True)
    names = [*one.state_dict()]
    reverse = [name.replace(".", "_reverse.", 1) for name in names]
    assert sorted(two.state_dict()) == sorted(names + reverse)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"grid_reverse\."):
        two.load_state_dict(one.state_dict())


# Gradients and training.


def test_gradients_of_initial_states(make: Make) -> None:
    net = make(2, 3, 2)
    layers = 4 if net.bidirectional else 2
    x, h, m = (inputs(*shape).requires_grad_() for shape in ((3, 2, 2), *[(layers, 2, 3)] * 2))

    def run(x: Tensor, h: Tensor, m: Tensor) -> tuple[Tensor, ...]:
        output, state = net(x, (h, m), lengths=[3, 2])
        return output, *state

    assert torch.autograd.gradcheck(run, (x, h, m))


def test_two_backward_passes_over_one_graph(make: Make) -> None:
    net, x = make(), inputs().requires_grad_()
    loss = net(x)[0].square().sum()
    wanted = [x, *net.parameters()]
    first = torch.autograd.grad(loss, wanted, retain_graph=True)
    assert_close(torch.autograd.grad(loss, wanted), first, rtol=0, atol=0)


def test_frozen(make: Make) -> None:
    net = make().requires_grad_(False)
    assert not net(inputs())[0].requires_grad
    x = inputs().requires_grad_()
    net(x)[0].sum().backward()
    assert x.grad.any()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_without_gradients(make: Make) -> None:
    net, x = make(), inputs()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            output, state = net(x)
        assert not output.requires_grad
        assert not state.hidden.requires_grad
        assert_close(output.clone(), net(x)[0].detach(), **FLOAT64)


def test_clipped_gradients_and_a_step(make: Make) -> None:
    net, x = make(), inputs()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    loss = net(x)[0].square().sum()
    (loss * 1000).backward()
    assert all(parameter.grad.any() for name, parameter in net.named_parameters())
    assert clip_grad_norm_(net.parameters(), 0.5) > 0.5
    assert_close(torch.stack([p.grad.norm() for p in net.parameters()]).norm().item(), 0.5)
    optimizer.step()
    assert net(x)[0].square().sum() < loss


def test_parametrised_and_pruned_weights(make: Make) -> None:
    class Halved(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return weight / 2

    net, halved, x = make(), make(), inputs()
    halved.load_state_dict(net.state_dict())
    with torch.no_grad():
        for grid, projection in halved.directions:
            grid.weight_time /= 2
            projection.linear.weight /= 2
    for grid, projection in net.directions:
        parametrize.register_parametrization(grid, "weight_time", Halved())
        parametrize.register_parametrization(projection.linear, "weight", Halved())
    assert_close(net(x), halved(x), **FLOAT64)
    prune.random_unstructured(halved.grid, "weight_depth", amount=0.5)
    halved(x)[0].sum().backward()
    assert not halved.grid.weight_depth_orig.grad[halved.grid.weight_depth_mask == 0].any()


def test_a_functional_call(make: Make) -> None:
    net, other, x = make(), make(), inputs()
    assert_close(torch.func.functional_call(net, dict(other.named_parameters()), x), other(x))


def test_shared_memory(make: Make) -> None:
    net, x = make(), inputs()
    expected = net(x)
    assert all(parameter.is_shared() for parameter in net.share_memory().parameters())
    assert_close(net(x), expected)


# Dropout.


def test_dropout_can_change_and_is_for_training_only(make: Make) -> None:
    net, x = make(), inputs()
    plain = net(x)[0]
    for p in (0.0, 0.5, 0.0, 0.7):
        net.dropout = p
        assert net.dropout == p
        assert torch.equal(net.train()(x)[0], plain) == (p == 0)
        assert torch.equal(net.train()(x)[0], net.train()(x)[0]) == (p == 0)
        assert torch.equal(net.eval()(x)[0], plain)
    net.train()
    torch.manual_seed(1)
    first = net(x)
    torch.manual_seed(1)
    assert_close(net(x), first, rtol=0, atol=0)


def test_dropout_is_in_the_blocks_and_not_between_layers(make: Make) -> None:
    """With one layer, ``nn.LSTM`` drops nothing. A block also drops what it reads along time."""
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        lstm = nn.LSTM(5, 6, 1, dropout=0.5, dtype=torch.float64)
    x = inputs()
    assert torch.equal(lstm(x)[0], lstm(x)[0])
    net = make(5, 6, 1, dropout=0.5)
    assert not torch.equal(net(x)[0], net(x)[0])
    silent = torch.zeros_like(x)  # Without biases nothing enters along depth: only time is read.
    net = make(5, 6, 1, dropout=0.5, bias=False)
    state = start(net, 2)
    assert not torch.equal(net(silent, state)[0], net(silent, state)[0])


# Two directions.


@pytest.mark.parametrize("options", [{}, {"tied": False, "depth": "relu"}, {"readout": "both"}])
@pytest.mark.parametrize("lengths", [None, [7, 2, 4]])
def test_two_directions_are_two_networks_side_by_side(options, lengths) -> None:
    both = SequenceGridLSTM(5, 6, 3, bidirectional=True, dtype=torch.float64, **options)
    forward = SequenceGridLSTM(5, 6, 3, dtype=torch.float64, **options)
    backward = SequenceGridLSTM(5, 6, 3, reverse=True, dtype=torch.float64, **options)
    weights = both.state_dict()
    backward.load_state_dict(
        {name.replace("_reverse.", "."): w for name, w in weights.items() if "_reverse." in name}
    )
    forward.load_state_dict({name: w for name, w in weights.items() if "_reverse." not in name})
    x = inputs(7, 3, 5)
    state = start(both, 3)
    output, end = both(x, state, lengths=lengths)
    runs = [
        net(x, state.map(lambda t, i=i: t[i::2]), lengths=lengths)
        for i, net in enumerate((forward, backward))
    ]
    assert_close(output, torch.cat([run[0] for run in runs], -1), **FLOAT64)
    for i, (_, one_end) in enumerate(runs):
        assert_close(end.map(lambda t, i=i: t[i::2]), one_end, **FLOAT64)


@pytest.mark.parametrize("lengths", [None, [7, 2, 4]])
def test_one_layer_of_two_directions_is_that_of_nn_lstm(lengths) -> None:
    """Independent of this package: the order of features, and of states."""
    lstm = nn.LSTM(5, 6, bidirectional=True, dtype=torch.float64)
    net = SequenceGridLSTM(
        5,
        6,
        1,
        tied=False,
        depth="identity",
        priority=True,
        output="standard",
        bidirectional=True,
        dtype=torch.float64,
    )
    for (grid, projection), weights in zip(net.directions, lstm.all_weights, strict=True):
        one = nn.LSTM(5, 6, dtype=torch.float64)
        with torch.no_grad():
            for parameter, value in zip(one.parameters(), weights, strict=True):
                parameter.copy_(value)
        same = from_torch(one)
        grid.load_state_dict(same.grid.state_dict())
        projection.load_state_dict(same.projection.state_dict())
    x, state = inputs(7, 3, 5), start(net, 3)
    expected, expected_end = lstm(
        x if lengths is None else pack_padded_sequence(x, lengths, enforce_sorted=False), tuple(state)
    )
    if lengths is not None:
        expected, _ = pad_packed_sequence(expected)
    output, end = net(x, state, lengths=lengths)
    assert_close(output, expected, **FLOAT64)
    assert_close(tuple(end), expected_end, **FLOAT64)


def test_a_state_of_one_direction_is_refused() -> None:
    net = SequenceGridLSTM(5, 6, 3, bidirectional=True)
    message = r"^state: expected hidden \[6, 2, 6\] \(2 · num_layers, batch, hidden\), got \[3, 2, 6\]$"
    with pytest.raises(ValueError, match=message):
        net(torch.zeros(7, 2, 5), (torch.zeros(3, 2, 6), torch.zeros(3, 2, 6)))


# States in PyTorch's containers.


def test_pytree_functions_map_over_states(make: Make) -> None:
    output, state = make()(inputs())
    mapped = _pytree.tree_map(torch.Tensor.detach, (output, state))
    assert isinstance(mapped[1], State)
    assert not mapped[1].memory.requires_grad
    leaves, spec = _pytree.tree_flatten(state)
    assert [*map(id, leaves)] == [*map(id, state)]
    again = _pytree.tree_unflatten(leaves, _pytree.treespec_loads(_pytree.treespec_dumps(spec)))
    assert isinstance(again, State)
    doubled = _pytree.tree_map_only(Tensor, lambda t: 2 * t, State(torch.ones(3)))
    assert_close(doubled, State(2 * torch.ones(3)))


def test_states_are_loaded_with_weights_only() -> None:
    file = io.BytesIO()
    torch.save(State(torch.ones(3), torch.zeros(3)), file)
    file.seek(0)
    assert_close(torch.load(file, weights_only=True), State(torch.ones(3), torch.zeros(3)))


def test_exported_programs_are_saved_with_states(make: Make) -> None:
    net, x = make(5, 6, 2), inputs(3, 2, 5)
    state = start(net, 2)
    with torch.no_grad():
        program = torch.export.export(net, (x, state), strict=False)
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        loaded = torch.export.load(file).module()
        assert_close(loaded(x, state), net(x, state), **FLOAT64)
    assert isinstance(loaded(x, state)[1], State)


# Costs, as docs/from_nn_lstm.md states them.


@pytest.mark.parametrize(("d", "layers"), [(6, 1), (8, 3)])
def test_costs_at_equal_arguments(bidirectional, d, layers) -> None:
    i, directions = 5, 2 if bidirectional else 1

    def parameters(net: nn.Module) -> int:
        return sum(parameter.numel() for parameter in net.parameters())

    def flops(net: nn.Module) -> int:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            net(inputs(1, 1, i))
        return counter.get_total_flops()

    options = {"bidirectional": bidirectional, "dtype": torch.float64, "engine": "reference"}
    tied = SequenceGridLSTM(i, d, layers, **options)
    untied = SequenceGridLSTM(i, d, layers, tied=False, **options)
    shared = SequenceGridLSTM(i, d, layers, shared=True, **options)
    assert parameters(tied) == directions * (16 * d**2 + 8 * d + 2 * d * i + 2 * d)
    assert parameters(untied) == directions * (layers * (16 * d**2 + 8 * d) + 2 * d * i + 2 * d)
    assert parameters(shared) == directions * (8 * d**2 + 4 * d + 2 * d * i + 2 * d)
    for net in (tied, untied, shared):
        assert flops(net) == directions * (32 * layers * d**2 + 4 * d * i)

    lstm = nn.LSTM(i, d, layers, bidirectional=bidirectional, dtype=torch.float64)
    above = (layers - 1) * 4 * d * (d + directions * d)
    assert parameters(lstm) == directions * (4 * d * (i + d) + above + layers * 8 * d)
    assert flops(lstm) == directions * 2 * (4 * d * (i + d) + above)
