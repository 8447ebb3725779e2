"""Bad arguments: each kind raises an error whose message names the argument."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gridlstm import Dim, GridLSTM, State


def refuses(error: type[Exception], message: str) -> Any:
    """Expects an error with exactly this message."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def zeros(*shape: int, **options: Any) -> Tensor:
    return torch.zeros(shape, **options)


def make_grid(**depth: Any) -> GridLSTM:
    """Time of any length, three layers, hidden size 16."""
    return GridLSTM(["time", Dim("depth", **{"size": 3} | depth)], hidden_size=16)


X = zeros(8, 20, 16)

SIDES = {
    "no mapping": (
        [State(X)],
        TypeError,
        "sides: expected a mapping from names to State, got list",
    ),
    "none": ({}, ValueError, "sides: expected at least one of time, depth, got none"),
    "unknown": (
        {"height": State(X)},
        ValueError,
        'sides: unknown dimension "height", expected some of time, depth',
    ),
    "bare tensor": (
        {"depth": X},
        TypeError,
        'side "depth": expected a State or a pair (hidden, memory), got Tensor',
    ),
    "tensor of two rows": (
        {"depth": zeros(2, 16)},
        TypeError,
        'side "depth": expected a State or a pair (hidden, memory), got Tensor',
    ),
    "list": (
        {"depth": [X, X]},
        TypeError,
        'side "depth": expected a State or a pair (hidden, memory), got list',
    ),
    "memory is no tensor": (
        {"depth": State(X, 0.0)},
        TypeError,
        'side "depth": expected memory to be a tensor or None, got float',
    ),
    "rank": (
        {"depth": State(zeros(20, 16))},
        ValueError,
        'side "depth": expected hidden [batch, time, 16] (batch, time, hidden), got [20, 16]',
    ),
    "hidden size": (
        {"time": State(zeros(8, 3, 16)), "depth": State(zeros(8, 20, 12))},
        ValueError,
        'side "depth": expected hidden [8, time, 16] (batch, time, hidden), got [8, 20, 12]',
    ),
    "memory's hidden size": (
        {"depth": State(X, zeros(8, 20, 12))},
        ValueError,
        'side "depth": expected memory [8, 20, 16] (batch, time, hidden), got [8, 20, 12]',
    ),
    "memory's length": (
        {"depth": State(X, zeros(8, 19, 16))},
        ValueError,
        'side "depth": expected memory [8, 20, 16] (batch, time, hidden), got [8, 19, 16]',
    ),
    "batches differ": (
        {"depth": State(X), "time": State(zeros(7, 3, 16))},
        ValueError,
        'side "time": expected hidden [8, 3, 16] (batch, depth, hidden), got [7, 3, 16]',
    ),
    "not the size of Dim": (
        {"depth": State(X), "time": State(zeros(8, 4, 16))},
        ValueError,
        'side "time": expected hidden [8, 3, 16] (batch, depth, hidden), got [8, 4, 16]',
    ),
    "size zero": (
        {"depth": State(zeros(8, 0, 16))},
        ValueError,
        'dimension "time": expected a size of at least 1, got 0',
    ),
    "dtype": (
        {"depth": State(X.double())},
        TypeError,
        'side "depth": hidden: expected dtype torch.float32, got torch.float64',
    ),
    "memory's dtype": (
        {"depth": State(X, X.long())},
        TypeError,
        'side "depth": memory: expected dtype torch.float32, got torch.int64',
    ),
    "device": (
        {"depth": State(zeros(8, 20, 16, device="meta"))},
        ValueError,
        'side "depth": hidden: expected a tensor on cpu, got meta',
    ),
    "memory's device": (
        {"depth": State(X, zeros(8, 20, 16, device="meta"))},
        ValueError,
        'side "depth": memory: expected a tensor on cpu, got meta',
    ),
}


@pytest.mark.parametrize(("sides", "error", "message"), SIDES.values(), ids=SIDES.keys())
def test_sides(sides: Any, error: type[Exception], message: str) -> None:
    with refuses(error, message):
        make_grid()(sides)


def test_size_of_an_untied_dimension() -> None:
    with refuses(
        ValueError, 'side "time": expected hidden [batch, 3, 16] (batch, depth, hidden), got [8, 5, 16]'
    ):
        make_grid(tied=False)({"time": State(zeros(8, 5, 16)), "depth": State(X)})


def test_sides_that_disagree_on_a_size() -> None:
    grid = GridLSTM(["row", "column", "depth"], hidden_size=4)
    sides = {"row": State(zeros(2, 3, 5, 4)), "column": State(zeros(2, 7, 6, 4))}
    with refuses(
        ValueError,
        'side "column": expected hidden [2, row, 5, 4] (batch, row, depth, hidden), got [2, 7, 6, 4]',
    ):
        grid(sides)


def test_memory_without_cells() -> None:
    with refuses(
        ValueError,
        "side \"depth\": expected no memory because the dimension has none (transform 'relu'), got one",
    ):
        make_grid(transform="relu")({"depth": State(X, X)})


def test_size_not_known() -> None:
    with refuses(
        ValueError,
        'dimension "depth": unknown size: expected a side of another dimension, or a size in Dim, '
        "got sides depth",
    ):
        make_grid(size=None)({"depth": State(X)})


def test_integers_under_autocast() -> None:
    with (
        torch.autocast("cpu", torch.bfloat16),
        refuses(TypeError, 'side "depth": hidden: expected a floating dtype, got torch.int64'),
    ):
        make_grid()({"depth": State(X.long())})


LENGTHS = {
    "unknown": (
        {"height": torch.tensor([20] * 8)},
        ValueError,
        'lengths: unknown dimension "height", expected some of time, depth',
    ),
    "no tensor": (
        {"time": [20] * 8},
        TypeError,
        'lengths "time": expected a tensor of integers, got list',
    ),
    "floating": (
        {"time": torch.tensor([20.0] * 8)},
        TypeError,
        'lengths "time": expected a tensor of integers, got torch.float32',
    ),
    "boolean": (
        {"time": torch.tensor([True] * 8)},
        TypeError,
        'lengths "time": expected a tensor of integers, got torch.bool',
    ),
    "shape": (
        {"time": torch.tensor([20] * 7)},
        ValueError,
        'lengths "time": expected [8] (batch), got [7]',
    ),
    "rank": ({"time": torch.tensor(20)}, ValueError, 'lengths "time": expected [8] (batch), got []'),
    "negative": (
        {"time": torch.tensor([20] * 7 + [-1])},
        ValueError,
        'lengths "time": expected 0 to 20 (the size), got -1',
    ),
    "too large": (
        {"time": torch.tensor([20] * 8), "depth": torch.tensor([0, 3, 4, 3, 3, 3, 3, 3])},
        ValueError,
        'lengths "depth": expected 0 to 3 (the size), got 4',
    ),
}


@pytest.mark.parametrize(("lengths", "error", "message"), LENGTHS.values(), ids=LENGTHS.keys())
def test_lengths(lengths: Any, error: type[Exception], message: str) -> None:
    with refuses(error, message):
        make_grid()({"depth": State(X)}, lengths=lengths)


MASKS = {
    "no tensor": ([True], TypeError, "mask: expected a tensor of dtype torch.bool, got list"),
    "floating": (
        zeros(8, 20, 3),
        TypeError,
        "mask: expected a tensor of dtype torch.bool, got torch.float32",
    ),
    "shape": (
        zeros(8, 3, 20, dtype=torch.bool),
        ValueError,
        "mask: expected [8, 20, 3] (batch, time, depth), got [8, 3, 20]",
    ),
    "rank": (
        zeros(8, 20, dtype=torch.bool),
        ValueError,
        "mask: expected [8, 20, 3] (batch, time, depth), got [8, 20]",
    ),
}


@pytest.mark.parametrize(("mask", "error", "message"), MASKS.values(), ids=MASKS.keys())
def test_mask(mask: Any, error: type[Exception], message: str) -> None:
    with refuses(error, message):
        make_grid()({"depth": State(X)}, mask=mask)


DIMS = {
    "name is no string": (lambda: Dim(3), TypeError, "name: expected a string, got 3"),
    "name": (
        lambda: Dim("my depth"),
        ValueError,
        "name: expected a Python identifier, got 'my depth'",
    ),
    "empty name": (lambda: Dim(""), ValueError, "name: expected a Python identifier, got ''"),
    "reserved name": (
        lambda: Dim("batch"),
        ValueError,
        "name: 'batch' is reserved for an axis of the sides",
    ),
    "name of another axis": (
        lambda: Dim("hidden"),
        ValueError,
        "name: 'hidden' is reserved for an axis of the sides",
    ),
    "transform": (
        lambda: Dim("depth", "rnn"),
        ValueError,
        'dimension "depth": transform: expected one of lstm, peephole, gru, identity, tanh, relu, '
        "a callable or a Cell, got 'rnn'",
    ),
    "transform is no function": (
        lambda: Dim("depth", None),
        TypeError,
        'dimension "depth": transform: expected a string, a callable or a Cell, got None',
    ),
    "transform with parameters": (
        lambda: Dim("depth", nn.PReLU()),
        ValueError,
        'dimension "depth": transform: expected a pure function of each vector, '
        "got PReLU, which has parameters of its own",
    ),
    "transform with buffers": (
        lambda: Dim("depth", nn.BatchNorm1d(4, affine=False)),
        ValueError,
        'dimension "depth": transform: expected a pure function of each vector, '
        "got BatchNorm1d, which has buffers of its own",
    ),
    "size zero": (
        lambda: Dim("depth", size=0),
        ValueError,
        'dimension "depth": size: expected at least 1, got 0',
    ),
    "size is no integer": (
        lambda: Dim("depth", size=2.0),
        TypeError,
        'dimension "depth": size: expected an integer, got 2.0',
    ),
    "size is a truth value": (
        lambda: Dim("depth", size=True),
        TypeError,
        'dimension "depth": size: expected an integer, got True',
    ),
    "hidden size": (
        lambda: Dim("depth", hidden_size=-1),
        ValueError,
        'dimension "depth": hidden_size: expected at least 1, got -1',
    ),
    "untied without size": (
        lambda: Dim("depth", tied=False),
        ValueError,
        'dimension "depth": size: expected a number because the dimension is untied '
        "(one set of weights per position), got None",
    ),
}


@pytest.mark.parametrize(("make", "error", "message"), DIMS.values(), ids=DIMS.keys())
def test_dim(make: Callable[[], Dim], error: type[Exception], message: str) -> None:
    with refuses(error, message):
        make()


SHARES = 'dimension "depth": shares_weights_with: '
GRIDS = {
    "no dimension": ({"dims": []}, ValueError, "dims: expected at least one dimension, got none"),
    "a string": ({"dims": "time"}, TypeError, "dims: expected a list of dimensions, got 'time'"),
    "a single Dim": (
        {"dims": Dim("time")},
        TypeError,
        "dims: expected a list of dimensions, got Dim('time')",
    ),
    "neither name nor Dim": (
        {"dims": ["time", 3]},
        TypeError,
        "dims: expected names or Dim, got 3",
    ),
    "name twice": (
        {"dims": ["time", Dim("time", "relu")]},
        ValueError,
        'dims: dimension "time" is listed twice',
    ),
    "no hidden size": (
        {"dims": [Dim("time", hidden_size=4), "depth"], "hidden_size": None},
        ValueError,
        'dimension "depth": hidden_size: expected a number for the dimension or the grid, got None',
    ),
    "hidden size zero": ({"hidden_size": 0}, ValueError, "hidden_size: expected at least 1, got 0"),
    "hidden size is no integer": (
        {"hidden_size": 4.0},
        TypeError,
        "hidden_size: expected an integer, got 4.0",
    ),
    "output": (
        {"output": "peephole"},
        ValueError,
        "output: expected one of paper, standard, got 'peephole'",
    ),
    "engine": (
        {"engine": "steam"},
        ValueError,
        "engine: expected one of reference, wavefront, got 'steam'",
    ),
    "dropout of everything": (
        {"dropout": 1.0},
        ValueError,
        "dropout: expected at least 0 and below 1, got 1.0",
    ),
    "negative dropout": (
        {"dropout": -0.1},
        ValueError,
        "dropout: expected at least 0 and below 1, got -0.1",
    ),
    "forget bias without bias": (
        {"bias": False, "forget_bias": 1.0},
        ValueError,
        "forget_bias: expected None because bias is False, got 1.0",
    ),
    "shares with an unknown": (
        {"dims": ["time", Dim("depth", shares_weights_with="height")]},
        ValueError,
        f"{SHARES}expected one of time, got 'height'",
    ),
    "shares with itself": (
        {"dims": ["time", Dim("depth", shares_weights_with="depth")]},
        ValueError,
        f"{SHARES}expected one of time, got 'depth'",
    ),
    "shares with one that shares": (
        {
            "dims": [
                "time",
                Dim("space", shares_weights_with="time"),
                Dim("depth", shares_weights_with="space"),
            ]
        },
        ValueError,
        f'{SHARES}expected a dimension with its own weights, got "space", which shares those of "time"',
    ),
    "shares with another transform": (
        {"dims": ["time", Dim("depth", "tanh", shares_weights_with="time")]},
        ValueError,
        f"{SHARES}expected the transform and hidden size of \"time\", 'lstm' and 4, got 'tanh' and 4",
    ),
    "shares with another hidden size": (
        {"dims": ["time", Dim("depth", hidden_size=2, shares_weights_with="time")]},
        ValueError,
        f"{SHARES}expected the transform and hidden size of \"time\", 'lstm' and 4, got 'lstm' and 2",
    ),
}


@pytest.mark.parametrize(("arguments", "error", "message"), GRIDS.values(), ids=GRIDS.keys())
def test_grid(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with refuses(error, message):
        GridLSTM(**{"dims": ["time", "depth"], "hidden_size": 4} | arguments)


def test_weights_of_an_unknown_dimension() -> None:
    with refuses(ValueError, "name: expected one of time, depth, got 'height'"):
        make_grid().weights_of("height")


@pytest.mark.parametrize(
    ("transform", "given"),
    [
        (lambda y: None, "NoneType"),
        (lambda y: y[..., :1], r"\(\[2, 1\], torch.float32\)"),
        (lambda y: y.double(), r"\(\[2, 4\], torch.float64\)"),
    ],
)
def test_a_transfer_function_that_does_not_fit(transform, given: str) -> None:
    message = (
        r'^dimension "b": transform: expected a function that keeps shape and dtype, '
        rf"\[2, 4\] and torch.float32, got {given}$"
    )
    with pytest.raises(ValueError, match=message):
        GridLSTM(["a", Dim("b", transform)], 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": "0.1"}, "dropout: expected a number, got '0.1'"),
        ({"forget_bias": "1"}, "forget_bias: expected a number, got '1'"),
        ({"init": 3}, "init: expected a function that fills a tensor, got 3"),
        ({"dtype": torch.int64}, "dtype: expected a floating torch.dtype, got torch.int64"),
    ],
)
def test_options_of_the_wrong_type(options: dict, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        GridLSTM(["time"], 4, **options)


def test_dimensions_of_the_wrong_type() -> None:
    with pytest.raises(TypeError, match=r'^dimension "a": tied: expected True or False, got 3$'):
        Dim("a", tied=3)
    with pytest.raises(
        TypeError, match=r'^dimension "a": transform: expected a string, a callable or a'
    ):
        Dim("a", torch.nn.ReLU)
    with pytest.raises(ValueError, match=r"expected None in a grid of one dimension, got 'b'$"):
        GridLSTM([Dim("b", shares_weights_with="b")], 4)
    with pytest.raises(ValueError, match=r"^name: 'batch' is reserved for an axis of the sides$"):
        Dim("batch")


def test_lengths_and_sides_of_the_wrong_type() -> None:
    grid, x = GridLSTM(["time", Dim("depth", size=3)], 4), torch.zeros(2, 5, 4)
    with pytest.raises(
        TypeError, match=r"^lengths: expected a mapping from names to tensors, got list$"
    ):
        grid({"depth": State(x)}, lengths=[1, 2])
    with pytest.raises(TypeError, match=r'^side "depth": expected hidden to be a tensor, got ndarray$'):
        grid({"depth": State(x.numpy())})
    with pytest.raises(ValueError, match=r'^lengths "time": expected a tensor on cpu, got meta$'):
        grid({"depth": State(x)}, lengths={"time": torch.tensor([1, 2], device="meta")})


def test_an_engine_set_later() -> None:
    grid = GridLSTM(["time", Dim("depth", size=3)], 4)
    grid.engine = "fast"
    with pytest.raises(ValueError, match=r"^engine: expected one of reference, wavefront, got 'fast'$"):
        grid({"depth": State(torch.zeros(2, 5, 4))})
