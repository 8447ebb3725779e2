"""The wavefront engine equals the reference: every side, every block, every gradient.

With its compiled kernel and without, keeping the gates and computing them anew, whole and in pieces.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gridlstm import Dim, GridLSTM, State
from gridlstm.cells import Cell, Vectors
from gridlstm.engines import pieces
from gridlstm.engines.native import use_native

FLOAT64 = {"rtol": 1e-9, "atol": 1e-11}


@dataclass(frozen=True)
class Case:
    """A grid, its size, and how it is called."""

    dims: tuple[Dim, ...]
    sizes: tuple[int, ...]
    batch: int = 3
    hidden_size: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    lengths: dict[str, tuple[int, ...]] = field(default_factory=dict)
    mask: bool = False
    given: tuple[str, ...] | None = None
    dtype: torch.dtype = torch.float64

    def grid(self) -> GridLSTM:
        """The grid, with weights large enough to leave the linear range of its gates."""
        grid = GridLSTM(self.dims, self.hidden_size, dtype=self.dtype, **self.options)
        with torch.no_grad():
            for parameter in grid.parameters():
                parameter.normal_(0, 0.7)
        return grid

    def sides(self, grid: GridLSTM) -> dict[str, State]:
        sides = {}
        for i, dim in enumerate(grid.dims):
            if self.given is None or dim.name in self.given:
                others = [size for j, size in enumerate(self.sizes) if j != i]
                shape = (self.batch, *others, dim.hidden_size)
                hidden = torch.randn(shape, dtype=self.dtype, requires_grad=True)
                memory = torch.randn(shape, dtype=self.dtype, requires_grad=True)
                sides[dim.name] = State(hidden, memory if dim.has_memory else None)
        return sides

    def call(self) -> dict[str, Any]:
        return {
            "lengths": {name: torch.tensor(values) for name, values in self.lengths.items()},
            "mask": torch.rand(self.batch, *self.sizes) < 0.7 if self.mask else None,
        }


def tensors(states: dict[str, State]) -> list[Tensor]:
    return [tensor for state in states.values() for tensor in state if tensor is not None]


def run(case: Case, grid: GridLSTM, sides: dict[str, State], call: dict[str, Any]) -> list[Tensor]:
    """Outputs of all sides and blocks, and the gradients of all that has one."""
    torch.manual_seed(1)  # The same dropout whatever the engine.
    out, blocks = grid(sides, trace=True, **call)
    results = tensors(out) + tensors(blocks)
    torch.manual_seed(2)
    loss = sum((result * torch.randn_like(result)).sum() for result in results)
    inputs = [*grid.parameters(), *tensors(sides)]
    return [*results, *torch.autograd.grad(loss, inputs)]


@contextmanager
def small_pieces() -> Iterator[None]:
    """Within it, grids are cut even though they are small: where they are untied, or recomputed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "CACHE", 0)
        patch.setattr(pieces, "_least_rows", lambda weights: 1)
        yield


def check(case: Case, *, training: bool = True, **tolerance: float) -> None:
    grid = case.grid().train(training)
    sides, call = case.sides(grid), case.call()
    grid.engine = "reference"
    expected = run(case, grid, sides, call)
    grid.engine = "wavefront"
    untied = not all(dim.tied for dim in grid.dims)
    for grid.recompute, compiled, cut in product((False, True), (True, False), {False, untied}):
        with use_native(compiled), small_pieces() if cut or grid.recompute else nullcontext():
            found = run(case, grid, sides, call)
        for want, got in zip(expected, found, strict=True):
            torch.testing.assert_close(got, want, **(tolerance or FLOAT64))


class Minimal(Cell):
    """A cell in one method, which reads everything that a cell can: the engines do the rest."""

    name = "minimal"
    gates = 2
    has_memory = True
    reads_hidden = True
    vectors: ClassVar = {"peephole": 1}

    def forward(self, preactivation: Tensor, old: State, vectors: Vectors) -> State:
        gate, content = preactivation.chunk(2, -1)
        memory = torch.lerp(
            content.tanh(), old.memory, torch.sigmoid(gate + vectors["peephole"] * old.memory)
        )
        return State(0.5 * old.hidden + memory.sin(), memory)


TRANSFORMS = ["lstm", "lstm", "peephole", "gru", "identity", "tanh", "relu", torch.sin, Minimal()]

time, depth = Dim("time"), Dim("depth")
CASES = {
    "one block": Case((Dim("depth", size=1),), (1,)),
    "1-LSTM": Case((Dim("depth", size=7),), (7,)),
    "1-LSTM untied": Case((Dim("depth", size=5, tied=False),), (5,)),
    "2-LSTM": Case((time, depth), (5, 3)),
    "deeper than long": Case((time, depth), (2, 6)),
    "one step": Case((time, depth), (1, 4)),
    "one layer": Case((time, depth), (6, 1)),
    "batch of one": Case((time, depth), (3, 2), batch=1),
    "empty batch": Case((time, depth), (3, 2), batch=0),
    "untied along depth": Case((time, Dim("depth", size=3, tied=False)), (4, 3)),
    "untied along time": Case((Dim("time", size=4, tied=False), depth), (4, 3)),
    "untied along both": Case(
        (Dim("time", size=4, tied=False), Dim("depth", size=3, tied=False)), (4, 3)
    ),
    "untied in three": Case((Dim("a"), Dim("b", size=2, tied=False), Dim("c")), (3, 2, 4)),
    "priority": Case((time, Dim("depth", priority=True)), (4, 3)),
    "all priority": Case((Dim("time", priority=True), Dim("depth", priority=True)), (4, 3)),
    "two priorities": Case(
        (Dim("a"), Dim("b", priority=True), Dim("c", priority=True)),
        (3, 2, 2),
        options={"dropout": 0.3},
    ),
    "priority, untied": Case((time, Dim("depth", size=3, tied=False, priority=True)), (4, 3)),
    "identity": Case((time, Dim("depth", "identity", priority=True)), (4, 3)),
    "tanh and relu": Case((Dim("a", "tanh"), Dim("b", "relu"), Dim("c")), (2, 3, 2)),
    "callable": Case((time, Dim("depth", torch.nn.functional.softplus)), (4, 3)),
    "callable over the vector": Case((time, Dim("depth", torch.nn.Softmax(-1))), (4, 3)),
    "GRU": Case((Dim("time", "gru"), Dim("depth", "gru")), (4, 3)),
    "GRU, untied, priority, dropout": Case(
        (Dim("time", "gru"), Dim("depth", "gru", size=3, tied=False, priority=True)),
        (4, 3),
        options={"dropout": 0.3},
        mask=True,
    ),
    "GRU, shared": Case((Dim("time", "gru"), Dim("depth", "gru", shares_weights_with="time")), (4, 3)),
    "peepholes": Case((Dim("time", "peephole"), depth), (4, 3)),
    "peepholes, untied, priority, standard": Case(
        (Dim("time", "peephole"), Dim("depth", "peephole", size=3, tied=False, priority=True)),
        (4, 3),
        options={"output": "standard", "dropout": 0.3},
        mask=True,
    ),
    "a cell of one's own": Case((Dim("time", Minimal()), Dim("depth", "gru")), (4, 3), mask=True),
    "layer norm": Case((time, depth), (5, 3), options={"layer_norm": True}),
    "layer norm, standard, no bias, untied": Case(
        (time, Dim("depth", size=3, tied=False)),
        (4, 3),
        options={"layer_norm": True, "output": "standard", "bias": False},
    ),
    "layer norm along one of two, lengths": Case(
        (Dim("time", reverse=True), depth),
        (5, 3),
        options={"layer_norm": ["time"]},
        lengths={"time": (5, 2, 0)},
    ),
    "layer norm of all cells, dropout": Case(
        (
            Dim("a", "gru"),
            Dim("b", "peephole", size=2, tied=False),
            Dim("c", Minimal()),
            Dim("d", "relu"),
        ),
        (2, 2, 2, 2),
        options={"layer_norm": True, "dropout": 0.3},
        mask=True,
    ),
    "layer norm, priority, shared": Case(
        (Dim("a"), Dim("b", shares_weights_with="a", priority=True), Dim("c", "tanh", priority=True)),
        (3, 2, 2),
        options={"layer_norm": ["a", "b"]},
    ),
    "zoneout": Case((time, depth), (5, 3), options={"zoneout": 0.3}),
    "zoneout, hidden only": Case((time, depth), (5, 3), options={"zoneout": (0.5, 0.0)}),
    "zoneout, memory only, along time, reverse": Case(
        (Dim("time", reverse=True), depth), (5, 3), options={"zoneout": {"time": (0.0, 0.5)}}
    ),
    "zoneout of all": Case((time, depth), (3, 3), options={"zoneout": 1.0}),
    "zoneout of all cells, layer norm, priority, untied": Case(
        (
            Dim("a", "gru"),
            Dim("b", "peephole", size=2, tied=False),
            Dim("c", Minimal(), priority=True),
            Dim("d", "identity", priority=True),
        ),
        (2, 2, 2, 2),
        options={"layer_norm": ["a", "b", "d"], "zoneout": {"a": 0.3, "b": 0.4, "c": 0.5, "d": 0.2}},
        mask=True,
    ),
    "tied dropout": Case((time, depth), (5, 3), options={"dropout": 0.5, "dropout_tied": ["time"]}),
    "dropout between layers": Case(
        (time, Dim("depth", priority=True)),
        (4, 3),
        options={"dropout": 0.5, "dropout_between": ["depth"]},
    ),
    "tied dropout between blocks, reverse": Case(
        (Dim("a", reverse=True), Dim("b"), Dim("c", "gru", priority=True)),
        (3, 2, 3),
        options={"dropout": 0.4, "dropout_between": ["a", "c"], "dropout_tied": ["b", "c"]},
        mask=True,
    ),
    "no memory at all": Case((Dim("a", "tanh"), Dim("b", "tanh")), (3, 4)),
    "hidden sizes": Case((Dim("a", hidden_size=2), Dim("b", hidden_size=5), Dim("c")), (2, 3, 2)),
    "shared": Case((time, Dim("depth", shares_weights_with="time")), (4, 3)),
    "shared, priority": Case((time, Dim("depth", shares_weights_with="time", priority=True)), (4, 3)),
    "standard": Case((time, depth), (4, 3), options={"output": "standard"}),
    "no bias": Case((time, depth), (4, 3), options={"bias": False}),
    "reverse": Case((Dim("time", reverse=True), depth), (5, 3)),
    "reverse, untied": Case((Dim("time", reverse=True, size=4, tied=False), depth), (4, 3)),
    "dropout": Case((time, depth), (5, 3), options={"dropout": 0.5}),
    "dropout, priority": Case((time, Dim("depth", priority=True)), (4, 3), options={"dropout": 0.5}),
    "lengths": Case((time, depth), (5, 3), lengths={"time": (5, 2, 0)}),
    "lengths of both, reverse": Case(
        (Dim("time", reverse=True), Dim("depth", "identity")),
        (5, 3),
        lengths={"time": (5, 2, 0), "depth": (1, 3, 2)},
    ),
    "mask": Case((time, Dim("depth", priority=True)), (4, 3), mask=True, options={"dropout": 0.2}),
    "missing sides": Case((time, Dim("depth", size=3)), (4, 3), given=("depth",)),
    "cube": Case((Dim("a"), Dim("b"), Dim("c")), (3, 4, 2)),
    "image layer": Case((Dim("row"), Dim("column", reverse=True), Dim("depth")), (4, 5, 1)),
    "Reencoder layer": Case(
        (Dim("source", reverse=True), Dim("target"), Dim("depth", "identity", size=1)),
        (4, 5, 1),
        lengths={"source": (4, 2, 3), "target": (1, 5, 3)},
        options={"dropout": 0.5},
    ),
    "4-LSTM": Case((Dim("a"), Dim("b", reverse=True), Dim("c"), Dim("d", priority=True)), (2, 3, 1, 2)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_wavefront_equals_reference(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("name", [name for name in CASES if "zoneout" in name])
def test_expected_zoneout(name: str) -> None:
    check(CASES[name], training=False)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_float32(case: Case) -> None:
    check(replace(case, dtype=torch.float32), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("compiled", [True, False])
def test_bfloat16(case: Case, compiled: bool) -> None:
    """Under autocast only products are lowered: results are within its precision of float32's."""
    case = replace(case, dtype=torch.float32)
    grid = case.grid()
    with torch.no_grad():
        for parameter in grid.parameters():
            parameter /= 2  # Tame enough for an error to stay small over a whole grid.
    sides, call = case.sides(grid), case.call()
    expected = run(case, grid, sides, call)
    for grid.recompute in (False, True):
        with use_native(compiled), torch.autocast("cpu", torch.bfloat16), small_pieces():
            found = run(case, grid, sides, call)
        for want, got in zip(expected, found, strict=True):
            assert got.dtype == torch.float32
            error = (got - want).norm() / want.norm().clamp(min=1e-3)
            assert error < 0.03, f"relative error {error:.3f}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 4))
    sizes = draw(st.tuples(*[st.integers(1, 4 if count < 4 else 2)] * count))
    names = "abcd"[:count]
    dims: list[Dim] = []
    for name, size in zip(names, sizes, strict=True):
        dim = Dim(
            name,
            draw(st.sampled_from(TRANSFORMS)),
            size=size,
            tied=draw(st.booleans()),
            priority=draw(st.booleans()),
            reverse=draw(st.booleans()),
            hidden_size=draw(st.sampled_from([None, 1, 2, 5])),
        )
        owners = [
            other.name
            for other in dims
            if other.shares_weights_with is None
            and (other.transform, other.hidden_size) == (dim.transform, dim.hidden_size)
        ]
        if owners and draw(st.booleans()):
            dim = replace(dim, shares_weights_with=draw(st.sampled_from(owners)))
        dims.append(dim)
    batch = draw(st.integers(1, 3))
    lengths = {
        name: tuple(draw(st.lists(st.integers(0, size), min_size=batch, max_size=batch)))
        for name, size in zip(names, sizes, strict=True)
        if draw(st.booleans())
    }
    some = draw(st.sets(st.sampled_from(names), min_size=1))
    some_names = st.lists(st.sampled_from(names))
    probabilities = st.sampled_from([0.4, (0.0, 0.5), (0.5, 0.0)])
    hidden_size = draw(st.integers(1, 4))
    owner = {dim.name: dim.shares_weights_with or dim.name for dim in dims}
    wide = [owner[dim.name] for dim in dims if (dim.hidden_size or hidden_size) > 1]
    chosen = draw(st.sets(st.sampled_from(wide))) if wide else set()
    return Case(
        tuple(dims),
        sizes,
        batch=batch,
        hidden_size=hidden_size,
        options={
            "bias": draw(st.booleans()),
            "output": draw(st.sampled_from(["paper", "standard"])),
            "dropout": draw(st.sampled_from([0.0, 0.4])),
            "dropout_tied": draw(some_names),
            "dropout_between": draw(st.none() | some_names),
            "layer_norm": [name for name in names if owner[name] in chosen],
            "zoneout": draw(
                st.sampled_from([0.0, 0.0, 0.3])
                | st.dictionaries(st.sampled_from(names), probabilities)
            ),
        },
        lengths=lengths,
        mask=draw(st.booleans()),
        given=tuple(sorted(some)),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases())
def test_wavefront_equals_reference_whatever_the_grid(case: Case) -> None:
    torch.manual_seed(0)
    check(case)


@pytest.mark.parametrize(
    "case",
    [
        Case((time, Dim("depth", priority=True)), (3, 2), batch=2, hidden_size=2),
        Case((Dim("a"), Dim("b", "tanh", reverse=True), Dim("c")), (2, 2, 2), batch=2, hidden_size=2),
        Case(
            (time, Dim("depth", size=2, tied=False)),
            (3, 2),
            batch=2,
            hidden_size=2,
            options={"output": "standard"},
            lengths={"time": (3, 1)},
        ),
        Case(
            (Dim("time", "gru"), Dim("depth", size=2, tied=False, priority=True)),
            (3, 2),
            batch=2,
            hidden_size=3,
            options={"layer_norm": True, "zoneout": (0.3, 0.6)},
            lengths={"time": (3, 1)},
        ),
    ],
    ids=["priority", "three dimensions", "untied, standard, lengths", "layer norm, zoneout"],
)
@pytest.mark.parametrize("engine", ["reference", "wavefront"])
def test_gradcheck(case: Case, engine: str) -> None:
    grid = case.grid()
    grid.engine = engine
    sides, call = case.sides(grid), case.call()
    names = list(sides)

    def function(*inputs: Tensor) -> tuple[Tensor, ...]:
        torch.manual_seed(1)  # The same zoneout in every call.
        given = iter(inputs)
        states = {name: sides[name].map(lambda _: next(given)) for name in names}
        weights = dict(zip(dict(grid.named_parameters()), given, strict=True))
        return tuple(tensors(torch.func.functional_call(grid, weights, (states,), call)))

    assert torch.autograd.gradcheck(function, (*tensors(sides), *grid.parameters()))
