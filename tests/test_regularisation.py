"""Layer normalisation, zoneout and kinds of dropout against plain loops, and their limits."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gridlstm import DeepGridLSTM, Dim, GridLSTM, ImageGridLSTM, SequenceGridLSTM, State, from_torch
from gridlstm.geometry import make_plan
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.stepper import make_stepper
from gridlstm.regularisation import draw_dropout, draw_zoneout

from . import numpy_grid

ENGINES = ["reference", "wavefront"]
engines = pytest.mark.parametrize("engine", ENGINES)
float64: dict[str, Any] = {"dtype": torch.float64}


def assert_close(actual: object, expected: object) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-11)


# Layer normalisation.


@engines
@pytest.mark.parametrize("output", ["paper", "standard"])
def test_layer_norm_is_a_loop_of_pytorchs(engine: str, output: str) -> None:
    """A 1-LSTM of five blocks beside ``nn.LayerNorm`` modules, forward and every gradient."""
    d, size = 6, 5
    grid = GridLSTM([Dim("x", size=size)], d, layer_norm=True, output=output, engine=engine, **float64)
    numpy_grid.randomise(grid)
    side = numpy_grid.random_sides(grid, (size,), 3)["x"].map(Tensor.requires_grad_)
    found = grid({"x": side})["x"]

    norm = nn.LayerNorm(d, **float64)

    def normalise(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return torch.func.functional_call(norm, {"weight": gain, "bias": bias}, (x,))

    h, m = side
    for _ in range(size):
        products = (h @ grid.weight_x.T).chunk(4, -1)
        u, f, o, c = map(normalise, products, grid.gain_x.chunk(4), grid.bias_x.chunk(4))
        m = f.sigmoid() * m + u.sigmoid() * c.tanh()
        read = normalise(m, grid.memory_gain_x, grid.memory_bias_x)
        h = (o.sigmoid() * read).tanh() if output == "paper" else o.sigmoid() * read.tanh()
    assert_close(found, State(h, m))
    inputs = [*side, *grid.parameters()]
    upstream = [torch.randn_like(h), torch.randn_like(m)]
    assert_close(
        torch.autograd.grad(tuple(found), inputs, upstream),
        torch.autograd.grad((h, m), inputs, upstream),
    )


@engines
def test_layer_norm_does_not_depend_on_the_size_of_the_weights(engine: str) -> None:
    """Nor on a common shift of a gate's rows; ε is the only exception."""
    grid = GridLSTM(["x", Dim("y", "gru")], 8, layer_norm=True, engine=engine, **float64)
    sides = numpy_grid.random_sides(grid, (4, 3), 2)
    before = grid(sides)
    with torch.no_grad():
        grid.weight_x.mul_(1e3)
        grid.weight_y[8:16] += torch.randn(1, 16, dtype=torch.float64)
    torch.testing.assert_close(grid(sides), before, rtol=1e-3, atol=1e-3)
    grid.gain_x.data.mul_(2)
    assert not torch.allclose(grid(sides)["x"].hidden, before["x"].hidden, atol=1e-2)


def test_parameters_of_layer_norm_and_their_start() -> None:
    dims = [Dim("a", size=3, tied=False), Dim("b", "gru"), Dim("c", "peephole"), Dim("d", "tanh")]
    grid = GridLSTM(dims, 4, layer_norm=["a", "b", "d"], forget_bias=2.5)
    shapes = {name: p.shape[-1] for name, p in grid.named_parameters() if "weight" not in name}
    wide = dict.fromkeys(("bias_a", "gain_a", "bias_b", "gain_b", "bias_c"), 16)
    narrow = dict.fromkeys(("memory_gain_a", "memory_bias_a", "bias_d", "gain_d"), 4)
    assert shapes == {**wide, **narrow, "peephole_c": 12}
    for name, parameter in grid.named_parameters():
        if "gain" in name:
            assert (parameter == 1).all()
        elif name in ("memory_bias_a", "bias_d", "peephole_c"):
            assert (parameter == 0).all()
    assert (grid.bias_a[:, 4:8] == 2.5).all()
    with torch.no_grad():
        for parameter in grid.parameters():
            parameter.fill_(7)
    grid.reset_parameters()
    assert (grid.gain_a == 1).all()
    assert (grid.memory_bias_a == 0).all()
    bare = GridLSTM(dims, 4, layer_norm=True, bias=False)
    assert not any("bias" in name for name, _ in bare.named_parameters())
    assert bare.memory_gain_a.shape == (3, 4)


@engines
def test_a_forget_bias_keeps_its_meaning_with_layer_norm(engine: str) -> None:
    """However large the weights: a large forget bias keeps a memory, a very negative one loses it."""
    m = torch.randn(2, 4, dtype=torch.float64)
    for bias, factor in ((50.0, 1.0), (-50.0, 0.0)):
        grid = GridLSTM(
            [Dim("x", size=1)], 4, layer_norm=True, forget_bias=bias, engine=engine, **float64
        )
        with torch.no_grad():
            grid.weight_x.normal_(0, 100)
            grid.bias_x[:4] = -50  # No update.
        new = grid({"x": State(torch.randn(2, 4, dtype=torch.float64), m)})["x"].memory
        torch.testing.assert_close(new, factor * m, rtol=0, atol=1e-12)


def test_layer_norm_and_zoneout_say_why_the_kernel_is_not_used() -> None:
    reason = "  compiled kernel is not used: it does not implement"
    device = "  Triton is not used: it runs on CUDA and ROCm, not on cpu"
    grid = GridLSTM(["x", Dim("y", "gru")], 4, layer_norm=True)
    assert grid.explain().splitlines()[1:] == [
        "backend: PyTorch",
        f"{reason} these cells: layer-normalised lstm, layer-normalised gru",
        device,
    ]
    grid = GridLSTM(["x"], 4, zoneout=0.1)
    assert grid.explain().splitlines()[1:] == ["backend: PyTorch", f"{reason} zoneout", device]
    grid = GridLSTM(["x"], 4, dropout=0.1, dropout_tied=["x"], dropout_between=["x"])
    assert grid.explain().splitlines()[1:] == ["backend: compiled kernel"]


# Zoneout.

CELLS = ["lstm", "peephole", "gru", "tanh", "identity"]


@engines
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("training", [True, False])
def test_zoneout_of_everything_passes_the_old_vectors_on(
    engine: str, cell: str, training: bool
) -> None:
    dims = [Dim("x", cell), Dim("y", cell, priority=True)]
    grid = GridLSTM(dims, 4, zoneout=1.0, engine=engine, **float64).train(training)
    sides = numpy_grid.random_sides(grid, (3, 2), 2)
    assert_close(grid(sides), sides)


@engines
@pytest.mark.parametrize("nothing", [0.0, 0, (0.0, 0.0), {"x": 0.0}, {}])
def test_zoneout_of_nothing_changes_nothing(engine: str, nothing: Any) -> None:
    dims = [Dim("x"), Dim("y", "gru")]
    grid, plain = (GridLSTM(dims, 4, engine=engine, zoneout=z) for z in (nothing, 0.0))
    grid.load_state_dict(plain.state_dict())
    sides = numpy_grid.random_sides(grid, (3, 2), 2)
    torch.testing.assert_close(grid(sides), plain(sides), rtol=0, atol=0)
    assert "zoneout" not in grid.explain()


@engines
def test_zoneout_keeps_each_value_or_replaces_it(engine: str) -> None:
    """Shares of kept values are the probabilities, and evaluation passes on the mean over draws."""
    batch, p = 20_000, (0.25, 0.6)
    torch.manual_seed(0)
    grid = GridLSTM([Dim("x", size=1)], 4, zoneout=p, engine=engine, **float64)
    plain = GridLSTM([Dim("x", size=1)], 4, **float64)
    plain.load_state_dict(grid.state_dict())
    old = numpy_grid.random_sides(grid, (1,), 1)["x"].map(lambda t: t.expand(batch, -1))
    found, new = grid({"x": old})["x"], plain({"x": old})["x"]
    expected = grid.eval()({"x": old})["x"]
    for probability, f, n, o, e in zip(p, found, new, old, expected, strict=True):
        kept = f == o
        assert_close(f, torch.where(kept, o, n))
        assert kept.double().mean().item() == pytest.approx(probability, abs=0.01)
        torch.testing.assert_close(e[0], f.mean(0), rtol=0, atol=0.03)
        assert_close(e, probability * o + (1 - probability) * n)


@engines
def test_zoneout_along_one_dimension_only(engine: str) -> None:
    grid = GridLSTM(["x", "y"], 4, zoneout={"x": 1.0}, engine=engine, **float64)
    sides = numpy_grid.random_sides(grid, (3, 2), 2)
    out = grid(sides)
    assert_close(out["x"], sides["x"])
    assert not torch.allclose(out["y"].hidden, sides["y"].hidden)


def test_zoneout_has_its_own_mask_in_every_block() -> None:
    grid = GridLSTM(["x", Dim("y", "tanh")], 16, zoneout={"x": (0.5, 0.0), "y": 0.5})
    kept = draw_zoneout(grid.block, 6, 2, torch.device("cpu"))
    assert kept is not None
    assert kept.memory is None
    assert kept.hidden is not None
    assert kept.hidden.shape == (6, 2, 32)
    assert len({tuple(row.tolist()) for row in kept.hidden.flatten(0, 1)}) == 12


@engines
def test_a_sequence_network_in_parts_equals_the_whole_with_zoneout(engine: str) -> None:
    net = SequenceGridLSTM(3, 4, 2, zoneout=0.3, layer_norm=True, engine=engine, **float64).eval()
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    first, state = net(x[:4])
    second, state = net(x[4:], state)
    assert_close((torch.cat((first, second)), state), net(x))


@pytest.mark.parametrize("options", [{"layer_norm": True}, {"zoneout": 0.2}])
def test_characters_one_by_one_with_the_options(options: dict) -> None:
    """The steppers for plain 2-LSTMs do not know them."""
    body = SequenceGridLSTM(7, 4, 2, batch_first=True, **options)
    model = CharacterModel(b"abcdefg", body).eval()
    step = make_stepper(model)
    symbols = [3, 0, 6, 2]
    scores = model(torch.tensor([symbols]))[0][0]
    found = torch.stack([torch.from_numpy(step(symbol)) for symbol in symbols])
    torch.testing.assert_close(found, scores.detach())


# Dropout.


def reader(layers: int, **options: Any) -> GridLSTM:
    """A grid whose depth passes on what blocks read along depth: its input, after dropout."""
    dims = [Dim("time"), Dim("depth", "identity", size=layers)]
    grid = GridLSTM(dims, 8, bias=False, dropout=0.5, **options)
    with torch.no_grad():
        grid.weight_depth.copy_(torch.cat((torch.zeros(8, 8), torch.eye(8)), 1))
    return grid


@engines
def test_tied_dropout_has_one_mask_per_sequence(engine: str) -> None:
    grid = reader(1, engine=engine, dropout_tied=["time"])
    ones = State(torch.ones(3, 50, 8))
    read = grid({"depth": ones})["depth"].hidden
    assert torch.equal(read, read[:, :1].expand_as(read))
    assert set(read.unique().tolist()) == {0.0, 2.0}
    assert len({tuple(row.tolist()) for row in read[:, 0]}) == 3  # One per sequence,
    assert not torch.equal(grid({"depth": ones})["depth"].hidden, read)  # and per call.
    assert torch.equal(grid.eval()({"depth": ones})["depth"].hidden, ones.hidden)


@pytest.mark.parametrize("tied", [[], ["a"], ["b"], ["a", "c"], ["a", "b", "c"]])
def test_masks_are_constant_along_tied_dimensions_only(tied: list[str]) -> None:
    grid = GridLSTM(["a", "b", Dim("c", priority=True)], 16)
    plan = make_plan((3, 4, 2), (False, True, False), (False, False, False))
    like = torch.zeros(())
    drawn = draw_dropout(grid.block, plan, 5, 0.5, like, tied=tied)
    assert drawn is not None
    kept = drawn.kept.view(2, 3, 4, 2, 5, 48)
    for axis, name in enumerate("abc", 1):
        first, second = kept.unbind(axis)[:2]
        assert torch.equal(first, second) == (name in tied)
    assert not torch.equal(*kept.unbind(0))
    assert (drawn.scale == 2).all()


@engines
def test_dropout_between_layers_leaves_what_enters(engine: str) -> None:
    ones = State(torch.ones(3, 50, 8))
    read = reader(1, engine=engine, dropout_between=["depth"])({"depth": ones})["depth"].hidden
    assert torch.equal(read, ones.hidden)
    read = reader(3, engine=engine, dropout_between=["depth"])({"depth": ones})["depth"].hidden
    assert set(read.unique().tolist()) == {0.0, 4.0}  # Twice, between three layers.
    assert (read == 0).double().mean().item() == pytest.approx(0.75, abs=0.06)
    read = reader(3, engine=engine, dropout_between=["time"])({"depth": ones})["depth"].hidden
    assert torch.equal(read, ones.hidden)


@engines
@pytest.mark.parametrize("reverse", [False, True])
def test_dropout_between_blocks_starts_where_a_dimension_is_entered(engine: str, reverse: bool) -> None:
    dims = [Dim("x", "identity", size=4, reverse=reverse), Dim("y", "identity", size=1)]
    grid = GridLSTM(dims, 8, bias=False, dropout=0.5, dropout_between=["x"], engine=engine)
    with torch.no_grad():
        grid.weight_x.copy_(torch.cat((torch.eye(8), torch.zeros(8, 8)), 1))
    _, blocks = grid({"x": State(torch.ones(20, 1, 8))}, trace=True)
    travelled = blocks["x"].hidden.squeeze(2)
    travelled = travelled.flip(1) if reverse else travelled
    for k in range(4):
        assert travelled[:, k].max() == 2**k
        assert bool((travelled[:, k] == 0).any()) == (k > 0)


@engines
@pytest.mark.parametrize("batch_first", [False, True])
def test_dropout_between_layers_is_that_of_nn_lstm(engine: str, batch_first: bool) -> None:
    """A loop over layers of an ``nn.LSTM``, with the values dropped that the grid drops."""
    size, layers, time, batch = 6, 3, 5, 4
    lstm = nn.LSTM(size, size, layers, dropout=0.4, batch_first=batch_first, **float64)
    net = from_torch(lstm)
    net.grid.engine = engine
    x = torch.randn(time, batch, size, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    found = net(x.transpose(0, 1) if batch_first else x)[0]
    found = found.transpose(0, 1) if batch_first else found

    torch.manual_seed(3)
    plan = make_plan((time, layers), (False, False), (False, True))
    drawn = draw_dropout(net.grid.block, plan, batch, 0.4, x, between=["depth"])
    assert drawn is not None
    kept = drawn.kept[0].view(time, layers, batch, 2 * size)[..., size:]
    h = x
    for layer in range(layers):
        if layer:
            h = h * kept[:, layer] / 0.6
        single = nn.LSTM(size, size, **float64)
        names = [f"{kind}_{part}" for kind in ("weight", "bias") for part in ("ih", "hh")]
        weights = {f"{name}_l0": getattr(lstm, f"{name}_l{layer}") for name in names}
        h = torch.func.functional_call(single, weights, (h,))[0]
    assert_close(found, h)
    upstream = torch.randn_like(h)
    assert_close(*(torch.autograd.grad(y, x, upstream)[0] for y in (found, h)))


# Arguments.


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"layer_norm": "depth"},
            TypeError,
            "layer_norm: expected True, False or a list of names of dimensions, got 'depth'",
        ),
        (
            {"layer_norm": ["height"]},
            ValueError,
            "layer_norm: expected some of time, depth, got 'height'",
        ),
        (
            {"layer_norm": True, "hidden_size": 1},
            ValueError,
            'layer_norm: expected a hidden size of at least 2 for dimension "time" (a single value, '
            "normalised, is always 0), got 1",
        ),
        (
            {"layer_norm": ["time"], "dims": ["time", Dim("depth", shares_weights_with="time")]},
            ValueError,
            'layer_norm: expected both "depth" and "time" or none, because they share weights, got '
            "['time']",
        ),
        (
            {"dropout_tied": "time"},
            TypeError,
            "dropout_tied: expected a list of names of dimensions, got 'time'",
        ),
        ({"dropout_tied": ["t"]}, ValueError, "dropout_tied: expected some of time, depth, got 't'"),
        (
            {"dropout_between": True},
            TypeError,
            "dropout_between: expected a list of names of dimensions, got True",
        ),
        ({"dropout_between": [2]}, ValueError, "dropout_between: expected some of time, depth, got 2"),
        ({"zoneout": 1.5}, ValueError, "zoneout: expected at least 0 and at most 1, got 1.5"),
        ({"zoneout": "0.1"}, TypeError, "zoneout: expected a number, got '0.1'"),
        (
            {"zoneout": (0.1, 0.2, 0.3)},
            TypeError,
            "zoneout: expected a number or a pair (hidden, memory), got (0.1, 0.2, 0.3)",
        ),
        (
            {"zoneout": (0.1, -0.2)},
            ValueError,
            "zoneout: memory: expected at least 0 and at most 1, got -0.2",
        ),
        (
            {"zoneout": {"time": True}},
            TypeError,
            'zoneout "time": expected a number, got True',
        ),
        ({"zoneout": {"t": 0.1}}, ValueError, "zoneout: expected some of time, depth, got 't'"),
    ],
)
def test_arguments_are_checked(options: dict, error: type[Exception], message: str) -> None:
    arguments = {"dims": ["time", "depth"], "hidden_size": 4, **options}
    with pytest.raises(error) as raised:
        GridLSTM(**arguments)
    assert str(raised.value) == message


def test_arguments_are_shown_and_fixed() -> None:
    grid = GridLSTM(
        ["time", "depth"], 4, layer_norm=["depth"], dropout=0.5, dropout_tied=["time"],
        dropout_between=["depth"], zoneout={"time": [0.1, 0.5]},
    )  # fmt: skip
    assert repr(grid).endswith(
        "layer_norm=('depth',), dropout=0.5, dropout_tied=('time',), dropout_between=('depth',), "
        "zoneout={'time': (0.1, 0.5)})"
    )
    for name in ("layer_norm", "dropout_tied", "dropout_between", "zoneout"):
        with pytest.raises(AttributeError, match=rf"^{name}: cannot be changed to "):
            setattr(grid, name, getattr(grid, name))
    assert "layer" not in repr(GridLSTM(["time", "depth"], 4, layer_norm=[]))


@engines
@pytest.mark.parametrize(
    "options",
    [
        {"layer_norm": True},
        {"zoneout": (0.2, 0.4), "dropout": 0.2},
        {"layer_norm": True, "zoneout": 0.3, "dropout": 0.3},
    ],
)
def test_every_network_takes_the_options(engine: str, options: dict) -> None:
    """Forward and backward; every parameter has a gradient, and evaluation is deterministic."""
    options = {**options, "engine": engine}
    time = {"dropout_tied": ["time"], "dropout_between": ["depth"]}
    networks = [
        (SequenceGridLSTM(5, 4, 2, bidirectional=True, **time, **options), torch.randn(3, 2, 5)),
        (DeepGridLSTM(5, 4, 3, dropout_tied=["depth"], **options), torch.randn(2, 5)),
        (ImageGridLSTM(4, 4, 2, relu_size=3, **options), torch.randn(2, 1, 4, 4)),
    ]
    for net, x in networks:
        for network in (net, net.eval()):
            out = network(x)
            out = out[0] if isinstance(out, tuple) else out
            out.square().sum().backward()
            assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
        first, second = (net(x) for _ in range(2))
        torch.testing.assert_close(first, second, rtol=0, atol=0)
