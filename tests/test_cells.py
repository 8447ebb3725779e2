"""Cells against other implementations of them, and cells of one's own."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn

from gridlstm import Dim, GridLSTM, SequenceGridLSTM, State
from gridlstm.cells import GRU, LSTM, Cell, Connection, LayerNorm, PeepholeLSTM, Vectors
from gridlstm.engines.native import use_native

CELLS: list[Cell] = [LSTM(), LSTM("standard"), PeepholeLSTM(), PeepholeLSTM("standard"), GRU()]
CELLS += [Connection(torch.sin), Connection(torch.ones_like)]
CELLS += [LayerNorm(cell) for cell in CELLS]


@pytest.mark.parametrize("engine", ["reference", "wavefront"])
def test_a_chain_of_gru_blocks_is_pytorchs_gru(engine: str) -> None:
    torch.manual_seed(0)
    d, batch, time = 5, 3, 7
    theirs = nn.GRU(d, d, batch_first=True, dtype=torch.float64)
    grid = GridLSTM(
        [Dim("time", "gru"), Dim("depth", "identity", size=1)], d, engine=engine, dtype=torch.float64
    )
    with torch.no_grad():
        grid.weight_time.copy_(torch.cat((theirs.weight_hh_l0, theirs.weight_ih_l0), 1))
        both = theirs.bias_hh_l0[: 2 * d] + theirs.bias_ih_l0[: 2 * d]
        grid.bias_time.copy_(torch.cat((both, theirs.bias_ih_l0[2 * d :], theirs.bias_hh_l0[2 * d :])))
    x = torch.randn(batch, time, d, dtype=torch.float64, requires_grad=True)
    start = torch.randn(batch, 1, d, dtype=torch.float64, requires_grad=True)
    expected, _ = theirs(x, start.transpose(0, 1))
    out, blocks = grid({"depth": State(x), "time": State(start)}, trace=True)
    found = blocks["time"].hidden[:, :, 0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(out["time"].hidden[:, 0], expected[:, -1], rtol=0, atol=1e-12)
    upstream = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, (x, start, theirs.weight_hh_l0), upstream)
    got = torch.autograd.grad(found, (x, start, grid.weight_time), upstream)
    torch.testing.assert_close(got[:2], wanted[:2], rtol=0, atol=1e-12)
    torch.testing.assert_close(got[2][:, :d], wanted[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["reference", "wavefront"])
def test_the_published_value_of_a_cell_with_peepholes(engine: str) -> None:
    """TensorFlow's grid_rnn: all weights, projections and peepholes one half, forget bias 1.

    Published in float32, so to about a unit in its last place.
    """
    grid = GridLSTM(
        [Dim("depth", "peephole", size=1)],
        2,
        output="standard",
        engine=engine,
        dtype=torch.float64,
    )
    with torch.no_grad():
        grid.weight_depth.fill_(0.5)
        grid.peephole_depth.fill_(0.5)
    entering = torch.ones(1, 3, dtype=torch.float64) @ torch.full((3, 2), 0.5, dtype=torch.float64)
    out = grid({"depth": State(entering, entering)})["depth"]
    assert out.memory is not None
    assert out.memory.flatten().tolist() == pytest.approx([2.26285243] * 2, abs=2.4e-7)
    assert out.hidden.flatten().tolist() == pytest.approx([0.91287315] * 2, abs=1.2e-7)


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_in_place_passes_equal_the_specification(cell: Cell) -> None:
    d, shape = 3, (4, 2)
    rows = torch.randn(*shape, cell.rows * d, dtype=torch.float64)
    hidden, memory = (torch.randn(*shape, d, dtype=torch.float64) for _ in range(2))
    vectors = {
        name: torch.randn(*shape, count * d, dtype=torch.float64)
        for name, count in cell.vectors.items()
    }
    old = State(hidden, memory if cell.has_memory else None)
    leaves = [t.clone().requires_grad_() for t in (rows, hidden, memory, *vectors.values())]
    own = State(leaves[1], leaves[2] if cell.has_memory else None)
    new = cell.forward(leaves[0].clone(), own, dict(zip(vectors, leaves[3:], strict=True)))
    grad = new.map(torch.randn_like)
    pairs = [(y, g) for y, g in zip(new, grad, strict=True) if y is not None and y.requires_grad]
    expected = [torch.zeros_like(leaf) for leaf in leaves]
    if pairs:
        outputs, grads = zip(*pairs, strict=True)
        expected = torch.autograd.grad(outputs, leaves, grads, materialize_grads=True)

    gates = rows.clone()
    found = cell.forward_(gates, old, vectors)
    torch.testing.assert_close(tuple(found), tuple(t if t is None else t.detach() for t in new))
    direct = cell.backward_(gates, old, grad, vectors)
    torch.testing.assert_close(gates, expected[0])
    assert direct.vectors.keys() == vectors.keys()
    found = [direct.hidden, direct.memory, *(direct.vectors[name] for name in vectors)]
    for got, want in zip(found, expected[1:], strict=True):
        torch.testing.assert_close(torch.zeros_like(want) if got is None else got, want)
    assert (direct.hidden is not None) or not cell.reads_hidden


@pytest.mark.parametrize("cell", [LSTM(), PeepholeLSTM(), GRU()], ids=repr)
def test_low_precision_keeps_gates_and_their_slopes(cell: Cell) -> None:
    """Also where gates are saturated: what the backward pass multiplies by is kept to 1 %."""
    rows = torch.linspace(-12, 12, 97).repeat(cell.rows, 1).T.reshape(97, cell.rows)
    old = State(torch.zeros(97, 1), torch.zeros(97, 1) if cell.has_memory else None)
    vectors = {name: torch.zeros(97, count) for name, count in cell.vectors.items()}
    cell.forward_(rows, old, vectors)
    kept = cell.encode_gates(rows, torch.bfloat16).to(torch.bfloat16)
    found = cell.decode_gates(kept.float(), torch.bfloat16)
    for k in range(3):  # Of a GRU the last is not a gate.
        gate, want = found[:, k].double(), rows[:, k].double()
        bounds = (-1, 1) if want.min() < 0 else (0, 1)
        slope, wanted = (((g - bounds[0]) * (bounds[1] - g)) for g in (gate, want))
        visible = wanted > 1e-6  # float32 itself has no more.
        torch.testing.assert_close(slope[visible], wanted[visible], rtol=0.02, atol=0)


def test_a_gru_starts_by_keeping_what_it_has() -> None:
    grid = GridLSTM([Dim("time", "gru"), Dim("depth", size=1)], 4, forget_bias=3.0)
    assert grid.bias_time.tolist() == [0.0] * 4 + [3.0] * 4 + [0.0] * 8
    assert grid.weight_time.shape == (12, 8)


def test_a_sequence_network_takes_any_cell_along_depth() -> None:
    net = SequenceGridLSTM(3, 4, 2, depth="gru", batch_first=True)
    output, state = net(torch.randn(2, 5, 3))
    assert output.shape == (2, 5, 4)
    assert state.memory is not None


class Wrong(Cell):
    name = "wrong"
    gates = 2

    def forward(self, preactivation: Tensor, old: State, vectors: Vectors) -> State:
        return State(preactivation)


def test_a_cell_that_gives_the_wrong_shape_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r'dimension "x": transform: expected Wrong\(\) to return hidden \(\[2, 3\], torch.fl',
    ):
        GridLSTM([Dim("x", Wrong())], 3)


def test_copies_and_equals_serve_as_well() -> None:
    """The kernel knows a copied cell, and two dimensions with equal cells can share weights."""
    grid = GridLSTM([Dim("x", "tanh"), Dim("y", GRU()), Dim("z", GRU(), shares_weights_with="y")], 3)
    for twin in (grid, copy.deepcopy(grid), pickle.loads(pickle.dumps(grid))):
        assert twin.explain().splitlines() == ["engine: wavefront", "backend: compiled kernel"]
    assert LSTM("paper") != LSTM("standard")
    assert LSTM() != PeepholeLSTM()


def test_explain_names_the_backend_and_why() -> None:
    assert GridLSTM([Dim("x", "peephole")], 3).explain().splitlines() == [
        "engine: wavefront",
        "backend: PyTorch",
        "  compiled kernel is not used: it does not implement these cells: peephole",
    ]
    assert GridLSTM(["x"], 3, engine="reference").explain().splitlines() == [
        "engine: reference",
        '  wavefront is not used: engine="reference" was chosen',
    ]


def test_explain_lists_every_reason() -> None:
    grid = GridLSTM([Dim("x", torch.sin), "y"], 3, dtype=torch.float16, device="meta")
    with use_native(False):
        reasons = grid.explain().splitlines()[2:]
    expected = ("use_native", "the CPU, not on meta", "not torch.float16", "cells: function")
    assert len(reasons) == len(expected)
    assert all(part in reason for part, reason in zip(expected, reasons, strict=True))


def test_explain_knows_autocast() -> None:
    grid = GridLSTM(["x"], 3)
    with torch.autocast("cpu", torch.float16):
        assert "not torch.float32 with products in torch.float16" in grid.explain()
