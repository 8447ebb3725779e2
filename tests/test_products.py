"""Matrix products of the compiled kernel, and sides whose products are left out."""

import pytest
import torch
from torch import Tensor

from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.native import use_native
from gridlstm.engines.native.build import library
from gridlstm.engines.native.panels import Panels, multiply_transposed
from gridlstm.geometry import Step

compiled = pytest.mark.skipif(library() is None, reason="there is no C compiler")


def multiply(matrices: Tensor, x: Tensor, groups: tuple[tuple[int, int, int], ...]) -> Tensor:
    kernel = library()
    assert kernel is not None
    # Rows further apart than they are long, surrounded by NaN that must not be read or written over.
    blocks, batch, rows = x.shape
    apart = torch.full((blocks, batch, rows + 5), torch.nan)
    apart[..., :rows] = x
    out = torch.full((blocks, batch, matrices.shape[-1] + 3), torch.nan)
    Panels(kernel, matrices).multiply(apart[..., :rows], Step(0, blocks, groups), out[..., :-3])
    assert out[..., -3:].isnan().all()
    return out[..., :-3]


@compiled
@pytest.mark.parametrize("rows", [1, 7, 16, 100, 1023, 1024, 1025, 2050])
@pytest.mark.parametrize("columns", [1, 8, 15, 16, 31, 32, 33, 100])
def test_products_of_any_size(rows: int, columns: int) -> None:
    torch.manual_seed(rows + columns)
    x, matrices = torch.randn(3, 5, rows), torch.randn(1, rows, columns)
    torch.testing.assert_close(
        multiply(matrices, x, ((0, 0, 3),)).double(),
        x.double() @ matrices[0].double(),
        rtol=1e-5,
        atol=1e-5 * rows**0.5,
    )


@compiled
@pytest.mark.parametrize("batch", range(1, 30))
def test_a_row_does_not_depend_on_the_others(batch: int) -> None:
    torch.manual_seed(0)
    x, matrices = torch.randn(1, 30, 70), torch.randn(1, 70, 50)
    every = multiply(matrices, x, ((0, 0, 1),))
    assert torch.equal(multiply(matrices, x[:, :batch], ((0, 0, 1),)), every[:, :batch])


@compiled
@pytest.mark.parametrize("threads", [1, 2])
def test_weight_sets_and_layouts(threads: int) -> None:
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x, wide = torch.randn(6, 40, 64), torch.randn(5, 300, 90)
        matrices = wide[..., 7:71].mT  # Transposed columns of a larger matrix.
        got = multiply(matrices, x, ((1, 0, 2), (3, 2, 3), (4, 3, 6)))
    finally:
        torch.set_num_threads(before)
    used = [1, 1, 3, 4, 4, 4]
    torch.testing.assert_close(got, torch.stack([x[i] @ matrices[n] for i, n in enumerate(used)]))


@compiled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 5, 255, 256, 257, 600])
@pytest.mark.parametrize(("left", "right"), [(1, 1), (11, 31), (12, 32), (13, 33), (107, 70)])
def test_gradients_of_weights(left: int, right: int, rows: int, threads: int) -> None:
    """A product over all rows, of operands and with a result whose rows are further apart."""
    kernel, before = library(), torch.get_num_threads()
    assert kernel is not None
    torch.manual_seed(left + right + rows)
    x, y = torch.randn(rows, left + 5)[:, :left], torch.randn(rows, right + 2)[:, 2:]
    whole = torch.full((left, right + 3), torch.nan)
    out = whole[:, :right]
    expected = x.double().mT @ y.double()
    tolerance = {"rtol": 1e-5, "atol": 1e-5 * rows**0.5}
    torch.set_num_threads(threads)
    try:
        multiply_transposed(kernel, x, y, out, adds=False)
        torch.testing.assert_close(out.double(), expected, **tolerance)
        multiply_transposed(kernel, x, y, out, adds=True)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(out.double(), 2 * expected, **tolerance)
    assert whole[:, right:].isnan().all()


SHAPES = {
    "last": ([Dim("a"), Dim("b"), Dim("c", "identity", size=1)], ("a", "b")),
    "first": ([Dim("c", size=1), Dim("a"), Dim("b")], ("a", "b")),
    "middle": ([Dim("a"), Dim("c", size=1), Dim("b")], ("a", "b")),
    "priority": ([Dim("a"), Dim("b"), Dim("c", priority=True, size=1)], ("a", "b")),
    "read by a priority dimension": (
        [Dim("a", priority=True), Dim("b"), Dim("c", size=1)],
        ("a", "b"),
    ),
    "GRU": ([Dim("a", "gru"), Dim("b"), Dim("c", "gru", size=1)], ("a", "b")),
    "all": ([Dim("a", size=1), Dim("c", size=1)], ("a",)),
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_missing_sides(shape: str, dropout: float, native: bool) -> None:
    """Products leave them out; outputs and gradients are those of the reference."""
    dims, given = SHAPES[shape]
    torch.manual_seed(0)
    grid = GridLSTM(dims, 6, dropout=dropout, dtype=torch.float64)
    sizes = {"a": 1 if shape == "all" else 4, "b": 3, "c": 1}
    sides = {}
    for name in given:
        others = [sizes[dim.name] for dim in dims if dim.name != name]
        vectors = torch.randn(2, *others, 6, dtype=torch.float64, requires_grad=True)
        has_memory = next(dim.has_memory for dim in dims if dim.name == name)
        sides[name] = State(vectors, vectors.detach().clone() if has_memory else None)

    def run(engine: str) -> list[Tensor]:
        grid.engine = engine  # type: ignore[assignment]
        torch.manual_seed(1)
        with use_native(native):
            out = [t for state in grid(sides).values() for t in state if t is not None]
            loss = sum((t * t.cos()).sum() for t in out)
            inputs = [*grid.parameters(), *(side.hidden for side in sides.values())]
            return [*out, *torch.autograd.grad(loss, inputs)]  # type: ignore[arg-type]

    for got, expected in zip(run("wavefront"), run("reference"), strict=True):
        torch.testing.assert_close(got, expected)


def test_an_expanded_side_is_not_missing() -> None:
    grid = GridLSTM([Dim("a"), Dim("c", size=1)], 4)
    with torch.no_grad():
        one = State(torch.ones(1).expand(1, 3, 4), torch.ones(1).expand(1, 3, 4))
        zero = grid({"c": one.map(torch.zeros_like)})["a"].hidden
        assert not torch.equal(grid({"c": one})["a"].hidden, zero)
    entering = torch.zeros(1).expand(1, 3, 4).requires_grad_()
    grid({"c": State(entering)})["a"].hidden.sum().backward()
    assert entering.grad is not None
    assert entering.grad.abs().sum() > 0
