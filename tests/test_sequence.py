"""The 2-LSTM with the calling convention of ``torch.nn.LSTM``, and the 1-LSTM."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from gridlstm import DeepGridLSTM, GridLSTM, SequenceGridLSTM, StackedLSTM, State, from_torch

FLOAT64 = {"rtol": 1e-9, "atol": 1e-11}


def make(**options) -> SequenceGridLSTM:
    return SequenceGridLSTM(5, 6, 3, **{"dtype": torch.float64, **options})


def test_it_is_the_grid_between_two_projections() -> None:
    net = make(readout="both")
    x = torch.randn(7, 2, 5, dtype=torch.float64)
    h, m = (x.transpose(0, 1) @ w.mT for w in net.projection.linear.weight.chunk(2))
    out = net.grid({"depth": State(h, m)})
    output, state = net(x)
    torch.testing.assert_close(output.transpose(0, 1), torch.cat(out["depth"], -1), **FLOAT64)
    torch.testing.assert_close(state.hidden.transpose(0, 1), out["time"].hidden, **FLOAT64)
    torch.testing.assert_close(state.memory.transpose(0, 1), out["time"].memory, **FLOAT64)
    assert output.shape[-1] == net.output_size == 12


@pytest.mark.parametrize("batch_first", [False, True])
def test_two_halves_equal_the_whole(batch_first) -> None:
    net = make(batch_first=batch_first)
    x = torch.randn(2, 7, 5, dtype=torch.float64)
    x = x if batch_first else x.transpose(0, 1)
    time = 1 if batch_first else 0
    whole, last = net(x)
    first, state = net(x.narrow(time, 0, 3))
    second, end = net(x.narrow(time, 3, 4), state)
    torch.testing.assert_close(torch.cat([first, second], time), whole, **FLOAT64)
    torch.testing.assert_close(end, last, **FLOAT64)


def test_batch_first_only_swaps_axes() -> None:
    net, x = make(), torch.randn(7, 2, 5, dtype=torch.float64)
    output, state = net(x)
    net.batch_first = True
    swapped, same = net(x.transpose(0, 1))
    torch.testing.assert_close(swapped.transpose(0, 1), output, **FLOAT64)
    torch.testing.assert_close(same, state, **FLOAT64)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padded_equals_one_by_one(reverse, batch_first) -> None:
    net = make(reverse=reverse, batch_first=batch_first)
    lengths = [7, 1, 4]
    x = torch.randn(3, 7, 5, dtype=torch.float64)
    given = x if batch_first else x.transpose(0, 1)
    output, state = net(given, lengths=torch.tensor(lengths))
    packed, packed_state = net(
        pack_padded_sequence(given, lengths, batch_first=batch_first, enforce_sorted=False)
    )
    unpacked, _ = pad_packed_sequence(packed, batch_first=batch_first)
    torch.testing.assert_close(unpacked, output, **FLOAT64)
    torch.testing.assert_close(packed_state, state, **FLOAT64)
    output = output if batch_first else output.transpose(0, 1)
    for sample, length in enumerate(lengths):
        single = x[sample, :length]
        alone, (h, m) = net(single)
        torch.testing.assert_close(output[sample, :length], alone, **FLOAT64)
        assert (output[sample, length:] == 0).all()
        torch.testing.assert_close(state.hidden[:, sample], h, **FLOAT64)
        torch.testing.assert_close(state.memory[:, sample], m, **FLOAT64)


def test_nan_in_the_padding_stays_there() -> None:
    net = make()
    x = torch.randn(7, 2, 5, dtype=torch.float64)
    x[4:, 1] = float("nan")
    output, state = net(x, lengths=torch.tensor([7, 4]))
    (output.sum() + state.memory.sum()).backward()
    assert output.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_a_single_sequence_takes_and_gives_a_state_without_batch() -> None:
    net = make()
    x = torch.randn(7, 5, dtype=torch.float64)
    whole, last = net(x)
    first, state = net(x[:3])
    assert state.hidden.shape == (3, 6)
    second, end = net(x[3:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole, **FLOAT64)
    torch.testing.assert_close(end, last, **FLOAT64)


def test_parameter_counts_of_the_paper() -> None:
    options = {"readout": "both", "bias": False, "device": "meta"}
    net = SequenceGridLSTM(205, 1000, 6, **options)
    assert sum(p.numel() for p in net.parameters()) == 2 * 2000 * 4000 + 2 * 205 * 1000
    net = SequenceGridLSTM(205, 1000, 6, shared=True, **options)
    assert sum(p.numel() for p in net.parameters()) == 2000 * 4000 + 2 * 205 * 1000


@pytest.mark.parametrize(
    ("x", "state", "lengths", "message"),
    [
        ((7, 2, 4), None, None, r"x: expected \[time, batch, 5\], got \[7, 2, 4\]"),
        ((7, 2, 3, 5), None, None, r"x: expected \[time, batch, 5\], got \[7, 2, 3, 5\]"),
        (
            (7, 2, 5),
            (3, 1, 6),
            None,
            r"state: expected hidden \[3, 2, 6\] \(num_layers, batch, hidden\)",
        ),
        ((7, 5), None, [7], r"lengths: expected None because x is a single sequence, got some"),
        ((7, 2, 5), None, [7, 8], r"lengths: expected 0 to 7 \(the size\), got 8"),
        ((0, 2, 5), None, None, r'dimension "time": expected a size of at least 1, got 0'),
    ],
)
def test_bad_input(x, state, lengths, message) -> None:
    net = SequenceGridLSTM(5, 6, 3)
    given = None if state is None else (torch.zeros(state), torch.zeros(state))
    with pytest.raises(ValueError, match=message):
        net(torch.zeros(x), given, lengths=None if lengths is None else torch.tensor(lengths))


def test_bad_input_of_other_kinds() -> None:
    net = SequenceGridLSTM(5, 6, 3)
    with pytest.raises(TypeError, match=r"^x: expected dtype torch.float32, got torch.float64$"):
        net(torch.zeros(7, 2, 5, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"^state: expected a State or a pair \(h, m\), got Tensor$"):
        net(torch.zeros(7, 2, 5), torch.zeros(3, 2, 6))
    with pytest.raises(TypeError, match=r"^state: expected hidden to be a tensor, got NoneType$"):
        net(torch.zeros(7, 2, 5), (None, torch.zeros(3, 2, 6)))
    with pytest.raises(
        ValueError, match=r"^state: expected hidden \[3, 6\] \(num_layers, hidden\), got"
    ):
        net(torch.zeros(7, 5), (torch.zeros(3, 2, 6), torch.zeros(3, 2, 6)))
    packed = pack_padded_sequence(torch.zeros(7, 2, 5), [7, 3])
    with pytest.raises(ValueError, match=r"^lengths: expected None because x is a PackedSequence, got"):
        net(packed, lengths=torch.tensor([7, 3]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 0}, "hidden_size: expected at least 1, got 0"),
        ({"num_layers": 0}, "num_layers: expected at least 1, got 0"),
        ({"depth_size": 3}, "depth_size: expected at least hidden_size 6, got 3"),
        ({"readout": "all"}, "readout: expected one of hidden, both, got 'all'"),
        (
            {"bidirectional": True, "reverse": True},
            "reverse: expected False because bidirectional is True, got True",
        ),
    ],
)
def test_bad_options(options, message) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        SequenceGridLSTM(**{"input_size": 5, "hidden_size": 6, "num_layers": 3, **options})


@pytest.mark.parametrize("tied", [True, False])
def test_deep_is_a_one_dimensional_grid(tied) -> None:
    net = DeepGridLSTM(5, 6, 4, tied=tied, readout="both", dtype=torch.float64)
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    h, m = (x.reshape(6, 5) @ w.mT for w in net.projection.linear.weight.chunk(2))
    assert isinstance(net.grid, GridLSTM)
    assert [dim.size for dim in net.grid.dims] == [4]
    want = torch.cat(net.grid({"depth": State(h, m)})["depth"], -1).view(2, 3, 12)
    torch.testing.assert_close(net(x), want, **FLOAT64)


def test_deep_refuses_bad_input() -> None:
    net = DeepGridLSTM(5, 6, 4)
    with pytest.raises(ValueError, match=r"^x: expected \[..., 5\], got \[2, 4\]$"):
        net(torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"^num_layers: expected at least 1, got 0$"):
        DeepGridLSTM(5, 6, 0)


def packed_inputs(lengths: list[int], kind: str, batch_first: bool) -> PackedSequence:
    """Random sequences, packed in each of the ways that PyTorch knows, or by hand."""
    padded = torch.randn(len(lengths), max(lengths), 5, dtype=torch.float64)
    padded = padded if batch_first else padded.transpose(0, 1)
    packed = pack_padded_sequence(
        padded, lengths, batch_first=batch_first, enforce_sorted=kind != "unsorted"
    )
    if kind == "by hand":
        return PackedSequence(packed.data, packed.batch_sizes)
    if kind == "permuted by hand":
        return PackedSequence(packed.data, packed.batch_sizes, torch.randperm(len(lengths)))
    return packed


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    ("lengths", "kind"),
    [
        ([4] * 20, "sorted"),
        ([4] * 20, "unsorted"),
        ([4] * 20, "by hand"),
        ([4] * 20, "permuted by hand"),
        ([2, 5, 2, 3] * 5, "unsorted"),
        ([5] * 18 + [2] * 19, "sorted"),
        ([5] * 18 + [2] * 19, "permuted by hand"),
    ],
)
def test_packed_sequences_keep_their_order(lengths, kind, batch_first) -> None:
    """Beside ``torch.nn.LSTM`` with the same weights: rows, indices, and the order of states."""
    lstm = torch.nn.LSTM(5, 6, 2, batch_first=batch_first, dtype=torch.float64)
    net = from_torch(lstm)
    x = packed_inputs(lengths, kind, batch_first)
    start = State(*torch.randn(2, 2, len(lengths), 6, dtype=torch.float64))
    for state in (None, start):
        output, end = net(x, state)
        expected, expected_end = lstm(x, None if state is None else tuple(state))
        for got, want in zip(output, expected, strict=True):
            torch.testing.assert_close(got, want, **FLOAT64)
        torch.testing.assert_close(tuple(end), expected_end, **FLOAT64)
        for got, given in zip(output[1:], x[1:], strict=True):
            assert got is given


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["sorted", "permuted by hand"])
def test_rows_of_a_packed_sequence_are_those_of_each_sequence_alone(reverse, kind) -> None:
    net = make(reverse=reverse)
    lengths = [5] * 3 + [2] * 17
    x = packed_inputs(lengths, kind, batch_first=False)
    output, end = net(x)
    first = torch.cat([torch.zeros(1, dtype=torch.int64), x.batch_sizes.cumsum(0)])
    places = range(20) if x.unsorted_indices is None else x.sorted_indices.tolist()
    for column, (place, length) in enumerate(zip(places, lengths, strict=True)):
        rows = [int(first[t]) + column for t in range(length)]
        alone, (h, m) = net(x.data[rows])
        torch.testing.assert_close(output.data[rows], alone, **FLOAT64)
        torch.testing.assert_close(end.hidden[:, place], h, **FLOAT64)
        torch.testing.assert_close(end.memory[:, place], m, **FLOAT64)


def test_gradients_reach_the_rows_they_come_from() -> None:
    net = make()
    data = torch.randn(40, 5, dtype=torch.float64, requires_grad=True)
    output, _ = net(PackedSequence(data, torch.tensor([20, 20])))
    (grad,) = torch.autograd.grad(output.data[3].sum(), data)
    assert grad.any(1).nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("readout", ["hidden", "both"])
@pytest.mark.parametrize("lengths", [None, [7, 1, 4]])
def test_time_first_outputs_are_contiguous(lengths, readout, batch_first) -> None:
    """With lengths as without; batch-first ones are a view of them, as in ``torch.nn.LSTM``."""
    given = None if lengths is None else torch.tensor(lengths)
    x = torch.randn(7, 3, 5)
    nets = [
        SequenceGridLSTM(5, 6, 3, readout=readout),
        SequenceGridLSTM(5, 6, 3, readout=readout, depth_size=9),
        StackedLSTM(5, 6, 2),
        StackedLSTM(5, 6, 2, tied=True),
    ]
    for net in nets:
        net.batch_first = batch_first
        output, _ = net(x.transpose(0, 1) if batch_first else x, lengths=given)
        assert (output.transpose(0, 1) if batch_first else output).is_contiguous()
