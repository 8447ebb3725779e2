"""Both engines against the paper's equations written out in NumPy: every side and every block."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gridlstm import Dim, GridLSTM, State
from gridlstm.cells import LSTM

from . import numpy_grid

ENGINES = ["reference", "wavefront"]


@dataclass
class Case:
    dims: list[Dim]
    sizes: tuple[int, ...]
    hidden_size: int | None = 3
    options: dict = field(default_factory=dict)
    lengths: dict[str, list[int]] = field(default_factory=dict)
    masked: bool = False


x, y, z, w = Dim("x"), Dim("y"), Dim("z"), Dim("w")
no_bias, standard, normal = {"bias": False}, {"output": "standard"}, {"layer_norm": True}

CASES = {
    "1-LSTM": Case([Dim("x", size=4)], (4,)),
    "1-LSTM of one block, as printed": Case([Dim("x", size=1)], (1,), options=no_bias),
    "1-LSTM, untied, reversed": Case([Dim("x", size=4, tied=False, reverse=True)], (4,)),
    "1-LSTM with priority": Case([Dim("x", size=3, priority=True)], (3,)),
    "feed-forward tanh": Case([Dim("x", "tanh", size=3, tied=False)], (3,)),
    "2-LSTM": Case([x, y], (4, 3)),
    "2-LSTM, as printed": Case([x, y], (3, 4), options=no_bias),
    "2-LSTM, standard": Case([x, y], (3, 2), options=standard),
    "2-LSTM of hidden size 1": Case([x, y], (2, 3), 1),
    "2-LSTM of length 1": Case([x, y], (1, 5)),
    "2-LSTM, reversed": Case([Dim("x", reverse=True), y], (4, 3)),
    "2-LSTM, both reversed": Case([Dim("x", reverse=True), Dim("y", reverse=True)], (2, 3)),
    "2-LSTM, untied": Case([x, Dim("y", size=4, tied=False)], (3, 4)),
    "2-LSTM, untied and reversed": Case(
        [Dim("x", reverse=True), Dim("y", size=3, tied=False, reverse=True)], (4, 3)
    ),
    "2-LSTM, all untied": Case([Dim("x", size=2, tied=False), Dim("y", size=3, tied=False)], (2, 3)),
    "2-LSTM, one set of weights": Case([x, Dim("y", shares_weights_with="x")], (3, 3)),
    "2-LSTM, one set a layer, owner last, no bias": Case(
        [Dim("x", shares_weights_with="y"), Dim("y", size=3, tied=False)], (4, 3), options=no_bias
    ),
    "2-LSTM with priority": Case([x, Dim("y", priority=True)], (3, 4)),
    "2-LSTM, priority first, standard": Case([Dim("x", priority=True), y], (3, 4), options=standard),
    "2-LSTM, priority shares weights, untied": Case(
        [x, Dim("y", size=2, tied=False, priority=True, shares_weights_with="x")], (3, 2)
    ),
    "2-LSTM, all priority": Case([Dim("x", priority=True), Dim("y", priority=True)], (3, 2)),
    "2-LSTM of two hidden sizes": Case(
        [Dim("x", hidden_size=2), Dim("y", hidden_size=5)], (3, 4), hidden_size=None
    ),
    "Stacked LSTM": Case([x, Dim("y", "identity", priority=True)], (4, 3), options=standard),
    "relu depth": Case([x, Dim("y", "relu")], (4, 3)),
    "tanh first, untied depth, no bias": Case(
        [Dim("x", "tanh"), Dim("y", size=3, tied=False)], (2, 3), options=no_bias
    ),
    "a callable, with priority": Case([x, Dim("y", F.softsign, priority=True, hidden_size=2)], (3, 3)),
    "no LSTM at all": Case([Dim("x", "tanh"), Dim("y", "relu"), Dim("z", F.softsign)], (2, 3, 2)),
    "3-LSTM": Case([x, y, z], (2, 3, 4), 2),
    "3-LSTM of lengths 1": Case([x, y, z], (1, 3, 1), 2),
    "3-LSTM, directions and tying mixed": Case(
        [
            Dim("x", reverse=True),
            Dim("y", size=3, tied=False),
            Dim("z", size=2, tied=False, reverse=True),
        ],
        (3, 3, 2),
        2,
    ),
    "3-LSTM, two priorities": Case(
        [Dim("x", priority=True), y, Dim("z", "relu", priority=True)], (2, 3, 2), 2
    ),
    "3-LSTM, two hidden sizes, shared weights": Case(
        [
            Dim("x", hidden_size=2),
            Dim("y", hidden_size=3),
            Dim("z", hidden_size=2, shares_weights_with="x"),
        ],
        (3, 2, 3),
        hidden_size=None,
    ),
    "image layers": Case(
        [x, Dim("y", reverse=True), Dim("z", "relu", size=3, tied=False, priority=True)], (3, 3, 3), 2
    ),
    "4-LSTM": Case([x, y, z, w], (2, 2, 3, 2), 2),
    "4-LSTM, everything mixed": Case(
        [
            Dim("x", reverse=True),
            Dim("y", "tanh", hidden_size=3),
            Dim("z", size=2, tied=False, priority=True),
            Dim("w", "identity", reverse=True),
        ],
        (2, 3, 2, 2),
        2,
        standard,
    ),
    "GRU": Case([Dim("x", "gru", size=4)], (4,)),
    "GRU without biases": Case([Dim("x", "gru"), Dim("y", "gru")], (3, 4), options=no_bias),
    "GRU along three, priority, untied": Case(
        [Dim("x", "gru"), Dim("y", "gru", priority=True), Dim("z", "gru", size=2, tied=False)],
        (3, 3, 2),
    ),
    "GRU shares weights": Case([Dim("x", "gru"), Dim("y", "gru", shares_weights_with="x")], (3, 4)),
    "peepholes": Case([Dim("x", "peephole", size=4)], (4,)),
    "peepholes, standard, untied": Case(
        [Dim("x", "peephole"), Dim("y", "peephole", size=3, tied=False)], (4, 3), options=standard
    ),
    "peepholes share weights": Case(
        [Dim("x", "peephole"), Dim("y", "peephole", shares_weights_with="x", priority=True)], (4, 3)
    ),
    "all cells, two hidden sizes, mask": Case(
        [Dim("x", "gru"), Dim("y", "peephole", hidden_size=2), z, Dim("w", "tanh")],
        (2, 3, 2, 2),
        masked=True,
    ),
    "layer norm, 1-LSTM": Case([Dim("x", size=4)], (4,), options=normal),
    "layer norm, as without biases": Case([x, y], (3, 4), options=normal | no_bias),
    "layer norm, standard, untied, reversed": Case(
        [Dim("x", reverse=True), Dim("y", size=3, tied=False)], (4, 3), options=normal | standard
    ),
    "layer norm along one of two": Case([x, y], (4, 3), options={"layer_norm": ["y"]}),
    "layer norm, shared": Case(
        [x, Dim("y", shares_weights_with="x", priority=True)], (3, 4), options=normal
    ),
    "layer norm of all cells, two hidden sizes, mask": Case(
        [Dim("x", "gru"), Dim("y", "peephole", hidden_size=2), z, Dim("w", "tanh", priority=True)],
        (2, 3, 2, 2),
        options=normal,
        masked=True,
    ),
    "layer norm of connections, mixed": Case(
        [Dim("x", "relu"), Dim("y", "identity", priority=True), Dim("z", "gru")],
        (3, 2, 3),
        options={"layer_norm": ["x", "y"]},
        lengths={"z": [1, 3, 2]},
    ),
    "zoneout": Case([x, y], (4, 3), options={"zoneout": 0.3}),
    "zoneout of hidden and memory": Case([x, y], (4, 3), options={"zoneout": (0.1, 0.6)}),
    "zoneout along one of two, reversed, lengths": Case(
        [Dim("x", reverse=True), y], (4, 3), options={"zoneout": {"x": 0.4}}, lengths={"x": [4, 1, 0]}
    ),
    "zoneout of all cells, priority, layer norm": Case(
        [Dim("x", "gru"), Dim("y", "peephole"), z, Dim("w", "tanh", priority=True)],
        (2, 3, 2, 2),
        options=normal | {"zoneout": {"x": 0.2, "y": (0.0, 0.5), "z": (0.5, 0.0), "w": 0.3}},
        masked=True,
    ),
    "lengths": Case([x, y], (4, 3), lengths={"x": [4, 1, 0]}),
    "lengths along both, reversed": Case(
        [Dim("x", reverse=True), Dim("y", size=3, tied=False)],
        (4, 3),
        lengths={"x": [2, 4, 3], "y": [3, 1, 2]},
    ),
    "lengths with priority and relu": Case(
        [x, Dim("y", "relu", priority=True), z], (3, 2, 3), 2, lengths={"z": [1, 3, 2], "x": [3, 2, 0]}
    ),
    "mask": Case([Dim("x", reverse=True), Dim("y", priority=True)], (4, 3), masked=True),
    "mask and lengths": Case([x, y, z], (2, 3, 3), 2, lengths={"y": [3, 2, 1]}, masked=True),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_grid_follows_the_equations(case: Case, engine: str) -> None:
    grid = GridLSTM(case.dims, case.hidden_size, engine=engine, dtype=torch.float64, **case.options)
    numpy_grid.randomise(grid).eval()
    batch = 3
    sides = numpy_grid.random_sides(grid, case.sizes, batch)
    lengths = {name: torch.tensor(values) for name, values in case.lengths.items()}
    mask = torch.rand(batch, *case.sizes) < 0.6 if case.masked else None
    expected = numpy_grid.run(grid, case.sizes, sides, lengths, mask)
    actual = grid(sides, lengths=lengths, mask=mask, trace=True)
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("output", ["paper", "standard"])
def test_lstm_by_hand(output: str) -> None:
    """One unit, numbers that can be followed: gates at ½ but for content, ``W H = (0, 0, 0, ln 3)``."""
    preactivation = torch.tensor([0, 0, 0, np.log(3)], dtype=torch.float64)
    old = State(torch.zeros(1), torch.tensor([2.0], dtype=torch.float64))
    h, m = LSTM(output).forward(preactivation, old, {})
    assert m.item() == pytest.approx(0.5 * 2 + 0.5 * 0.8, rel=1e-12)
    expected = np.tanh(0.5 * 1.4) if output == "paper" else 0.5 * np.tanh(1.4)
    assert h.item() == pytest.approx(expected, rel=1e-12)
