"""Values published by others: the test vectors of TensorFlow's ``contrib.grid_rnn``.

From ``tensorflow/contrib/grid_rnn/python/kernel_tests/grid_rnn_test.py`` (TensorFlow 1.x, Apache
License 2.0), class ``GridRNNCellTest``; each test below names the one it takes its numbers from.

How that code maps to this one. Its dimension 0 is depth, with priority; dimension 1 is time. All
weights are one constant and all biases zero; ``BasicLSTMCell`` adds a forget bias of 1 and computes
``h' = g_o ⊙ tanh(m')``. The input, projected without bias by the same constant, replaces the hidden
and memory vectors of the depth dimension, so the depth part of a state given to it is not read. The
state of an LSTM dimension is written memory first. ``tied`` shares weights among the dimensions.
Calls in a row are positions along time. Its ``BasicRNNCell`` is a non-LSTM dimension with tanh.

The 1-LSTM, the 3-LSTM and ``Grid2LSTMCell`` are published only with peephole connections, which the
paper does not have: they do not apply here.
"""

import pytest
import torch
from torch import Tensor

from gridlstm import Dim, GridLSTM, State

pytestmark = pytest.mark.parametrize("engine", ["reference", "wavefront"])


def tensor(*values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def constant_grid(dims: list[Dim], weight: float, engine: str) -> GridLSTM:
    return GridLSTM(
        dims,
        hidden_size=2,
        output="standard",
        forget_bias=1.0,
        init=lambda matrix: matrix.fill_(weight),
        engine=engine,
        dtype=torch.float64,
    )


def assert_published(actual: Tensor, *expected: object) -> None:
    """The numbers were printed with eight digits from float32."""
    torch.testing.assert_close(actual, tensor(*expected), rtol=3e-7, atol=0)


@pytest.mark.parametrize("shared", [None, "depth"])
@pytest.mark.parametrize(
    ("x", "depth_h", "depth_m", "time_h", "time_m"),
    [
        (
            [2.0, 2.0, 2.0],
            [0.58847463, 0.58847463],
            [1.40469193, 1.40469193],
            [0.4927212, 0.51137757],
            [0.97726452, 1.04626071],
        ),
        (
            [1.0, 1.0, 1.0],
            [0.36703536, 0.36703536],
            [0.71200621, 0.71200621],
            [0.40108523, 0.42199609],
            [0.80941606, 0.87550586],
        ),
    ],
    ids=["testGrid2BasicLSTMCell", "testGrid2BasicLSTMCellTied"],
)
def test_two_steps_of_a_2_lstm(
    engine: str,
    x: list[float],
    depth_h: list[float],
    depth_m: list[float],
    time_h: list[float],
    time_m: list[float],
    shared: str | None,
) -> None:
    """Two calls are a grid two blocks long; the first is the same in both published tests.

    With constant weights it makes no difference whether the dimensions share them.
    """
    grid = constant_grid(
        [Dim("depth", size=1, priority=True), Dim("time", shares_weights_with=shared)], 0.2, engine
    )
    projected = tensor([[1.0, 1.0, 1.0], x]) @ torch.full((3, 2), 0.2, dtype=torch.float64)
    before = State(tensor([[0.7, 0.8]]), tensor([[0.5, 0.6]]))
    out, blocks = grid({"depth": State(projected, projected), "time": before}, trace=True)
    assert_published(out["depth"].hidden, [[0.36617181, 0.36617181], depth_h])
    assert_published(out["depth"].memory, [[0.71053141, 0.71053141], depth_m])
    assert_published(blocks["time"].hidden, [[[0.39102408, 0.42150158], time_h]])
    assert_published(blocks["time"].memory, [[[0.72320831, 0.80555487], time_m]])


def test_relu_along_depth(engine: str) -> None:
    """From testGrid2BasicLSTMCellWithRelu."""
    grid = constant_grid([Dim("depth", "relu", size=1, priority=True), Dim("time")], 0.2, engine)
    before = State(tensor([[0.3, 0.4]]), tensor([[0.1, 0.2]]))
    out = grid({"depth": State(tensor([[0.6, 0.6]])), "time": before})
    assert_published(out["depth"].hidden, [[0.31667367, 0.31667367]])
    assert_published(out["time"].hidden, [[0.17044567, 0.21292259]])
    assert_published(out["time"].memory, [[0.29530135, 0.37520045]])


def test_tanh_along_both(engine: str) -> None:
    """From testGrid2BasicRNNCell, two samples."""
    grid = constant_grid(
        [Dim("depth", "tanh", size=1, priority=True), Dim("time", "tanh")], 0.5, engine
    )
    x, before = tensor([[1.0, 1.0]], [[2.0, 2.0]]), tensor([[0.1, 0.1]], [[0.2, 0.2]])
    out = grid({"depth": State(x), "time": State(before)})
    assert_published(out["depth"].hidden, [[0.94685763, 0.94685763]], [[0.99480951, 0.99480951]])
    assert_published(out["time"].hidden, [[0.80049908, 0.80049908]], [[0.97574311, 0.97574311]])


def test_relu_along_depth_tanh_along_time(engine: str) -> None:
    """From testGrid2BasicRNNCellWithRelu."""
    grid = constant_grid(
        [Dim("depth", "relu", size=1, priority=True), Dim("time", "tanh")], 0.5, engine
    )
    out = grid({"depth": State(tensor([[1.0, 1.0]])), "time": State(tensor([[0.1, 0.1]]))})
    assert_published(out["depth"].hidden, [[1.80049896, 1.80049896]])
    assert_published(out["time"].hidden, [[0.80049896, 0.80049896]])


def test_relu_alone(engine: str) -> None:
    """From testGridRNNEdgeCasesLikeRelu: one dimension and no state."""
    grid = constant_grid([Dim("depth", "relu", size=1)], 0.5, engine)
    x = tensor([1.0, -1.0], [-2.0, 1.0], [2.0, -1.0]) @ torch.full((2, 2), 0.5, dtype=torch.float64)
    assert_published(grid({"depth": State(x)})["depth"].hidden, [0, 0], [0, 0], [0.5, 0.5])
