"""Properties that hold whatever the values, in both engines."""

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing import assert_close

from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.native import use_native

from .numpy_grid import random_sides, randomise

CLOSE = {"rtol": 1e-9, "atol": 1e-11}
EXACT = {"rtol": 0, "atol": 0}

Sides = dict[str, State]

each_engine = pytest.mark.parametrize("engine", ["reference", "wavefront"])

TWO = ([Dim("a"), Dim("b", reverse=True, priority=True)], (4, 3))
THREE = ([Dim("a", reverse=True), Dim("b"), Dim("c", "tanh", hidden_size=2)], (3, 4, 2))
each_grid = pytest.mark.parametrize(("dims", "sizes"), [TWO, THREE], ids=["two", "three"])


def make_grid(dims: Sequence[Dim | str], engine: str = "wavefront", **options: Any) -> GridLSTM:
    return randomise(GridLSTM(dims, 3, engine=engine, **{"dtype": torch.float64} | options))


def tensors(states: Sides) -> list[Tensor]:
    return [tensor for state in states.values() for tensor in state if tensor is not None]


def map_sides(function: Callable[[int, Tensor], Tensor], sides: Sides) -> Sides:
    """Applies a function of the dimension's number and a tensor to every side."""
    return {
        name: state.map(lambda t, i=i: function(i, t)) for i, (name, state) in enumerate(sides.items())
    }


def axis(side: int, dimension: int) -> int:
    """Where another dimension is among the axes of a side, the batch being first."""
    return 1 + dimension - (dimension > side)


def upstream(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Random gradients of some outputs, the same at every call."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(t.shape, generator=generator, dtype=t.dtype) for t in outputs]


def gradients(grid: GridLSTM, sides: Sides, **call: Any) -> list[Tensor]:
    """Those of all parameters and incoming sides."""
    sides = map_sides(lambda _, t: t.detach().requires_grad_(), sides)
    out = tensors(grid(sides, **call))
    return list(torch.autograd.grad(out, [*grid.parameters(), *tensors(sides)], upstream(out)))


@each_engine
@pytest.mark.parametrize(
    ("dims", "sizes", "i"),
    [
        pytest.param(*grid, i, id=f"{len(grid[0])} dimensions cut along {dim.name}")
        for grid in (TWO, THREE)
        for i, dim in enumerate(grid[0])
    ],
)
def test_outgoing_sides_carry_on(dims: list[Dim], sizes: tuple[int, ...], i: int, engine: str) -> None:
    """A grid cut in two along a dimension: what leaves the first part enters the second."""
    grid = make_grid(dims, engine)
    sides = random_sides(grid, sizes, batch=2)
    name, back = dims[i].name, dims[i].reverse

    def part(start: int, length: int) -> Sides:
        return map_sides(lambda j, t: t if j == i else t.narrow(axis(j, i), start, length), sides)

    low, high = part(0, 1), part(1, sizes[i] - 1)
    first, second = (high, low) if back else (low, high)
    out_first = grid(first)
    out_second = grid(second | {name: out_first[name]})
    expected = grid(sides)
    assert_close(out_second[name], expected[name], **CLOSE)
    low, high = (out_second, out_first) if back else (out_first, out_second)
    for j, other in enumerate(dim.name for dim in dims):
        if j != i:
            parts = zip(low[other], high[other], strict=True)
            whole = [None if t is None else torch.cat((t, rest), axis(j, i)) for t, rest in parts]
            assert_close(State(*whole), expected[other], **CLOSE)


@each_engine
@pytest.mark.parametrize(
    ("dims", "sizes", "lengths"),
    [
        ([Dim("a"), Dim("b")], (4, 3), {"a": [4, 1, 0, 3]}),
        ([Dim("a", reverse=True), Dim("b", size=3, tied=False)], (4, 3), {"a": [2, 3, 4, 0]}),
        (*TWO, {"a": [4, 2, 3, 0], "b": [3, 1, 2, 1]}),
        (*THREE, {"a": [1, 3, 2, 0], "b": [4, 1, 2, 3], "c": [1, 2, 2, 1]}),
    ],
    ids=["one", "one, reversed", "two", "three"],
)
def test_padded_samples_equal_samples_alone(
    dims: list[Dim], sizes: tuple[int, ...], lengths: dict[str, list[int]], engine: str
) -> None:
    grid = make_grid(dims, engine)
    sides = random_sides(grid, sizes, batch=4)
    out = grid(sides, lengths={name: torch.tensor(values) for name, values in lengths.items()})
    for sample in range(4):
        real = [
            lengths[dim.name][sample] if dim.name in lengths else n
            for dim, n in zip(dims, sizes, strict=True)
        ]

        def inside(i: int, sample: int = sample, real: list[int] = real) -> tuple[slice, ...]:
            return (slice(sample, sample + 1), *(slice(n) for j, n in enumerate(real) if j != i))

        def outside(i: int, t: Tensor, sample: int = sample) -> Tensor:
            rest = torch.zeros_like(t, dtype=torch.bool)
            rest[sample] = True
            rest[inside(i)] = False
            return t[rest]

        given = map_sides(lambda i, t: t[inside(i)], sides)
        expected = grid(given) if all(real) else given
        assert_close(map_sides(lambda i, t: t[inside(i)], out), expected, **CLOSE)
        assert_close(map_sides(outside, out), map_sides(outside, sides), **EXACT)


@each_engine
@each_grid
def test_masked_blocks_hand_on_what_they_receive(
    dims: list[Dim], sizes: tuple[int, ...], engine: str
) -> None:
    """Gradients too, and none reaches the weights."""
    grid = make_grid(dims, engine)
    sides = random_sides(grid, sizes, batch=2)
    mask = torch.zeros(2, *sizes, dtype=torch.bool)
    out, blocks = grid(sides, mask=mask, trace=True)
    assert_close(out, sides, **EXACT)
    everywhere = map_sides(lambda i, t: t.unsqueeze(1 + i).expand(2, *sizes, t.shape[-1]), sides)
    assert_close(blocks, everywhere, **EXACT)
    nothing = [torch.zeros_like(parameter) for parameter in grid.parameters()]
    assert_close(gradients(grid, sides, mask=mask), nothing + upstream(tensors(sides)), **EXACT)


@each_engine
@pytest.mark.parametrize("untied", [("b",), ("a",), ("a", "b")], ids=", ".join)
def test_tied_equals_untied_with_equal_weights(untied: tuple[str, ...], engine: str) -> None:
    sizes = {"a": 4, "b": 3}
    tied = make_grid(["a", "b"], engine)
    free = make_grid([Dim(name, size=n, tied=name not in untied) for name, n in sizes.items()], engine)
    with torch.no_grad():
        for name, parameter in tied.named_parameters():
            free.get_parameter(name).copy_(parameter)
    sides = random_sides(tied, tuple(sizes.values()), batch=2)
    assert_close(free(sides), tied(sides), **CLOSE)
    copies = range(len(untied))
    for grad, expected in zip(gradients(free, sides), gradients(tied, sides), strict=True):
        is_parameter = grad.shape != expected.shape
        assert_close(grad.sum(tuple(copies)) if is_parameter else grad, expected, **CLOSE)


@each_engine
@pytest.mark.parametrize("order", list(permutations(range(3)))[1:], ids=str)
def test_permuted_dimensions_give_permuted_sides(order: tuple[int, ...], engine: str) -> None:
    """The same grid with its dimensions in another order: so are the axes of sides, and H's columns."""
    dims, sizes = THREE
    dims = [*dims[:1], Dim("b", size=4, tied=False), *dims[2:]]
    grid, permuted = make_grid(dims, engine), make_grid([dims[i] for i in order], engine)
    columns = dict(zip("abc", torch.arange(8).split([3, 3, 2]), strict=True))
    with torch.no_grad():
        for name, parameter in grid.named_parameters():
            chosen = torch.cat([columns[dim.name] for dim in permuted.dims])
            value = parameter[..., chosen] if name.startswith("weight") else parameter
            permuted.get_parameter(name).copy_(value)
    sides = random_sides(grid, sizes, batch=2)

    def permute(i: int, t: Tensor) -> Tensor:
        return t.permute(0, *(axis(i, j) for j in order if j != i), -1)

    given = map_sides(permute, sides)
    expected = map_sides(permute, grid(sides))
    actual = permuted({dim.name: given[dim.name] for dim in permuted.dims})
    assert list(actual) == [dim.name for dim in permuted.dims]
    assert_close(actual, expected, **CLOSE)


@each_engine
@pytest.mark.parametrize("backwards", list(product((False, True), repeat=3))[1:], ids=str)
def test_reversed_dimension_equals_flipped_data(backwards: tuple[bool, ...], engine: str) -> None:
    """Weights along an untied dimension belong to positions, so they are flipped too."""
    sizes = (3, 4, 2)
    grid, flipped = (
        make_grid(
            [Dim("a", reverse=a), Dim("b", size=4, tied=False, reverse=b), Dim("c", reverse=c)], engine
        )
        for a, b, c in ((False,) * 3, backwards)
    )
    with torch.no_grad():
        for name, parameter in grid.named_parameters():
            flipped.get_parameter(name).copy_(parameter.flip(0) if backwards[1] else parameter)

    def flip(i: int, t: Tensor) -> Tensor:
        return t.flip([axis(i, j) for j in range(3) if backwards[j] and j != i])

    sides = random_sides(grid, sizes, batch=2)
    assert_close(flipped(map_sides(flip, sides)), map_sides(flip, grid(sides)), **CLOSE)


@each_engine
@pytest.mark.parametrize("given", ["a", "b", "c", "ac"])
def test_missing_sides_and_memories_are_zero(given: str, engine: str) -> None:
    sizes = (3, 4, 2)
    grid = make_grid([Dim(name, size=n) for name, n in zip("abc", sizes, strict=True)], engine)
    sides = random_sides(grid, sizes, batch=2)
    zeros = map_sides(lambda _, t: torch.zeros_like(t), sides)
    some = {name: State(sides[name].hidden) for name in given}
    explicit = {
        name: State(sides[name].hidden, zeros[name].memory) if name in given else zeros[name]
        for name in sides
    }
    assert_close(grid(some), grid(explicit), **EXACT)


@each_engine
@each_grid
def test_trace_ends_in_the_outgoing_sides(dims: list[Dim], sizes: tuple[int, ...], engine: str) -> None:
    grid = make_grid(dims, engine)
    sides = random_sides(grid, sizes, batch=2)
    out, blocks = grid(sides, trace=True)
    last = map_sides(lambda i, t: t.select(1 + i, 0 if dims[i].reverse else -1), blocks)
    assert_close(out, last, **EXACT)
    assert_close(grid(sides), out, **EXACT)


@each_grid
def test_gradient_through_the_trace(dims: list[Dim], sizes: tuple[int, ...]) -> None:
    """One block in the middle depends on the blocks it comes after, equally in both engines."""
    grid = make_grid(dims)
    sides = map_sides(lambda _, t: t.requires_grad_(), random_sides(grid, sizes, batch=2))
    middle = tuple(n // 2 for n in sizes)
    found = []
    for grid.engine in ("reference", "wavefront"):
        _, blocks = grid(sides, trace=True)
        value = sum(t[(slice(None), *middle)].square().sum() for t in tensors(blocks))
        found.append(torch.autograd.grad(value, [*grid.parameters(), *tensors(sides)]))
    assert_close(found[1], found[0], **CLOSE)
    a = found[0][-len(tensors(sides))]  # The hidden vectors that enter along the first dimension.
    behind = [
        slice(x, None) if dim.reverse else slice(x + 1)
        for x, dim in zip(middle[1:], dims[1:], strict=True)
    ]
    reached = torch.zeros_like(a, dtype=torch.bool)
    reached[(slice(None), *behind)] = True
    assert a[reached].ne(0).all()
    assert a[~reached].eq(0).all()


@pytest.mark.parametrize("recompute", [False, True])
def test_backward_twice(recompute: bool) -> None:
    """The first pass may overwrite what the forward pass kept; the second must not notice."""
    grid = make_grid(TWO[0], recompute=recompute, dropout=0.3)
    sides = map_sides(lambda _, t: t.requires_grad_(), random_sides(grid, TWO[1], batch=2))
    loss = sum(t.square().sum() for t in tensors(grid(sides)))
    inputs = [*grid.parameters(), *tensors(sides)]
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    assert_close(torch.autograd.grad(loss, inputs), first, **EXACT)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, inputs)


@pytest.mark.parametrize("time", [1, 2, 7])
@pytest.mark.parametrize("hidden", [1, 3, 9])
def test_recomputed_gates_of_small_grids(hidden: int, time: int) -> None:
    grid = GridLSTM([Dim("time", size=time)], hidden, dtype=torch.float64)
    sides = random_sides(grid, (time,), batch=1)
    expected = gradients(grid, sides)
    grid.recompute = True
    assert_close(gradients(grid, sides), expected, **CLOSE)


@each_engine
def test_weights_changed_before_backward(engine: str) -> None:
    """The gradients are those of the weights that the forward pass used."""
    grid = make_grid(TWO[0], engine)
    sides = random_sides(grid, TWO[1], batch=2)
    parameters = list(grid.parameters())
    expected = gradients(grid, sides)[: len(parameters)]
    out = tensors(grid(sides))
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(1)
    assert_close(list(torch.autograd.grad(out, parameters, upstream(out))), expected, **CLOSE)


def test_second_derivatives() -> None:
    grid = make_grid([Dim("a"), Dim("b", "tanh", priority=True)], "reference")
    sides = random_sides(grid, (2, 2), batch=1)

    def function(weight: Tensor, h: Tensor, m: Tensor) -> tuple[Tensor, ...]:
        out = torch.func.functional_call(grid, {"weight_a": weight}, (sides | {"a": State(h, m)},))
        return tuple(tensors(out))

    inputs = (grid.weight_a, *(t.requires_grad_() for t in sides["a"]))
    assert torch.autograd.gradgradcheck(function, inputs)


def test_wavefront_refuses_second_derivatives() -> None:
    grid = make_grid(TWO[0])
    sides = map_sides(lambda _, t: t.requires_grad_(), random_sides(grid, TWO[1], batch=2))
    loss = grid(sides)["a"].hidden.sum()
    (grad,) = torch.autograd.grad(loss, sides["b"].hidden, create_graph=True)
    with pytest.raises(
        RuntimeError,
        match='engine="wavefront" does not support second derivatives: build the grid with engine="ref',
    ):
        grad.sum().backward()


@each_engine
def test_dropout_only_in_training(engine: str) -> None:
    grid, plain = (make_grid(TWO[0], engine, dropout=p) for p in (0.5, 0.0))
    plain.load_state_dict(grid.state_dict())
    sides = random_sides(grid, TWO[1], batch=2)
    assert_close(grid.eval()(sides), plain(sides), **EXACT)
    assert not torch.equal(grid.train()(sides)["a"].hidden, plain(sides)["a"].hidden)


def test_dropout_is_the_same_in_both_engines() -> None:
    grid = make_grid(TWO[0], dropout=0.5)
    sides = random_sides(grid, TWO[1], batch=2)
    results = []
    for grid.engine, seed in (("reference", 5), ("wavefront", 5), ("wavefront", 6)):
        torch.manual_seed(seed)
        results.append(grid(sides))
    assert_close(results[1], results[0], **CLOSE)
    assert not torch.equal(results[2]["a"].hidden, results[0]["a"].hidden)


@each_engine
def test_dropout_drops_and_scales_what_a_block_reads(engine: str) -> None:
    """Identity transforms with identity weights show what was read: 0, or 1 / (1 - p) of the value."""
    n, p = 20000, 0.3
    dims = [Dim("a", "identity", size=1), Dim("b", "identity", size=1, priority=True)]
    grid = GridLSTM(dims, 1, bias=False, dropout=p, engine=engine)
    with torch.no_grad():
        grid.weight_a.copy_(torch.tensor([[0.0, 1.0]]))  # a' = b, dropped
        grid.weight_b.copy_(torch.tensor([[0.0, 1.0]]))  # b' = b, dropped anew in the second phase
    ones = State(torch.ones(n, 1, 1))
    out = grid({"a": ones, "b": ones})
    a, b = (out[name].hidden.flatten() for name in "ab")
    for read in (a, b):
        kept = read != 0
        assert_close(read[kept], torch.full_like(read[kept], 1 / (1 - p)))
        assert kept.double().mean().item() == pytest.approx(1 - p, abs=5 * math.sqrt(p * (1 - p) / n))
    both = ((a != 0) & (b != 0)).double().mean().item()
    assert both == pytest.approx((1 - p) ** 2, abs=0.02)


@each_engine
def test_dropout_leaves_what_a_block_hands_on(engine: str) -> None:
    """With no weights but biases, nothing that is read matters, and no new vector is dropped."""
    grid = make_grid(TWO[0], engine, dropout=0.9)
    with torch.no_grad():
        grid.weight_a.zero_()
        grid.weight_b.zero_()
    sides = random_sides(grid, TWO[1], batch=2)
    assert_close(grid(sides), grid.eval()(sides), **EXACT)


@each_engine
@each_grid
def test_autocast(dims: list[Dim], sizes: tuple[int, ...], engine: str) -> None:
    """Products in bfloat16, whose eight bits keep values to 0.4 %; states stay in float32."""
    grid = make_grid(dims, engine, dtype=torch.float32)
    sides = random_sides(grid, sizes, batch=2)
    expected, grads = grid(sides), gradients(grid, sides)
    with torch.autocast("cpu", torch.bfloat16):
        out, low_grads = grid(sides), gradients(grid, sides)
        from_low = grid(map_sides(lambda _, t: t.bfloat16(), sides))
    assert {t.dtype for t in (*tensors(out), *tensors(from_low), *low_grads)} == {torch.float32}
    assert_close(out, expected, rtol=0.01, atol=0.01)
    assert_close(from_low, expected, rtol=0.01, atol=0.01)
    assert_close(low_grads, grads, rtol=0.02, atol=0.03)
    assert not torch.equal(out["a"].hidden, expected["a"].hidden)


@each_engine
@each_grid
def test_no_grad(dims: list[Dim], sizes: tuple[int, ...], engine: str) -> None:
    grid = make_grid(dims, engine)
    sides = random_sides(grid, sizes, batch=2)
    expected = grid(sides, trace=True)
    with torch.no_grad():
        actual = grid(sides, trace=True)
    assert all(t.requires_grad for states in expected for t in tensors(states))
    assert not any(t.requires_grad for states in actual for t in tensors(states))
    assert_close(actual, expected, **EXACT)


@each_engine
def test_outputs_do_not_change_afterwards(engine: str) -> None:
    """Buffers are reused between calls; what was returned is not."""
    grid = make_grid(TWO[0], engine)
    sides = random_sides(grid, TWO[1], batch=2)
    with torch.no_grad():
        out, blocks = grid(sides, trace=True)
        before = copy.deepcopy((out, blocks))
        grid(random_sides(grid, TWO[1], batch=2), trace=True)
    assert_close((out, blocks), before, **EXACT)


@each_engine
@pytest.mark.parametrize("dims", [TWO[0], [Dim("a"), Dim("b", "relu", size=3, tied=False)]])
def test_meta_device(dims: list[Dim], engine: str) -> None:
    """Shapes without memory or arithmetic, forward and backward."""
    grid = GridLSTM(dims, 3, engine=engine, device="meta")
    sides = {"a": State(torch.zeros(2, 3, 3, device="meta", requires_grad=True))}
    sides["b"] = State(torch.zeros(2, 4, 3, device="meta", requires_grad=True))
    lengths = {"a": torch.zeros(2, dtype=torch.int64, device="meta")}
    out, blocks = grid(sides, trace=True, lengths=lengths)
    for name, state in out.items():
        for t, every in zip(state, blocks[name], strict=True):
            assert t is None or (t.is_meta, t.shape) == (True, sides[name].hidden.shape)
            assert every is None or (every.is_meta, every.shape) == (True, (2, 4, 3, 3))
    sum(t.sum() for t in tensors(out)).backward()
    assert all(p.grad.shape == p.shape for p in grid.parameters())
    assert sides["b"].hidden.grad.shape == (2, 4, 3)


@each_engine
def test_deepcopy_and_state_dict(engine: str) -> None:
    grid = make_grid(THREE[0], engine)
    sides = random_sides(grid, THREE[1], batch=2)
    expected = grid(sides)
    twin, fresh = copy.deepcopy(grid), make_grid(THREE[0], engine)
    assert not torch.equal(fresh(sides)["a"].hidden, expected["a"].hidden)
    fresh.load_state_dict(grid.state_dict())
    with torch.no_grad():
        grid.weight_a.zero_()
    assert_close(twin(sides), expected, **EXACT)
    assert_close(fresh(sides), expected, **EXACT)


COMPILED = """
import torch
from gridlstm import Dim, GridLSTM, State
for engine in ("reference", "wavefront"):
    grid = GridLSTM(["a", Dim("b", size=2, priority=True, reverse=True)], 3, engine=engine)
    compiled = torch.compile(grid, backend="eager")
    for length in (4, 4, 5):
        side = State(torch.randn(2, length, 3, requires_grad=True), torch.randn(2, length, 3))
        results = []
        for run in (grid, compiled):
            out = run({"b": side})
            loss = sum(t.square().sum() for state in out.values() for t in state)
            results.append((out, torch.autograd.grad(loss, [side.hidden, *grid.parameters()])))
        torch.testing.assert_close(results[1], results[0])
"""


def test_compile() -> None:
    """In a process of its own, where no shapes are checked: the checks cannot be compiled."""
    hidden = "ignore:The .grad attribute of a Tensor that is not a leaf"  # Dynamo's own, seldom shown
    command = [sys.executable, "-W", "error", "-W", hidden, "-c", COMPILED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@each_engine
def test_samples_are_independent(engine: str) -> None:
    grid = make_grid(THREE[0], engine)
    sides = random_sides(grid, THREE[1], batch=3)
    out = grid(sides)
    for sample in range(3):
        one = map_sides(lambda _, t, s=sample: t[s : s + 1], sides)
        assert_close(grid(one), map_sides(lambda _, t, s=sample: t[s : s + 1], out), **CLOSE)


@each_engine
def test_empty_batch(engine: str) -> None:
    grid = make_grid(THREE[0], engine)
    sides = random_sides(grid, THREE[1], batch=0)
    assert [t.shape for t in tensors(grid(sides))] == [t.shape for t in tensors(sides)]
    assert all(g.eq(0).all() for g in gradients(grid, sides))


@each_engine
@each_grid
def test_float32(dims: list[Dim], sizes: tuple[int, ...], engine: str) -> None:
    exact = make_grid(dims, engine)
    single = make_grid(dims, engine, dtype=torch.float32)
    single.load_state_dict(exact.state_dict())
    sides = random_sides(exact, sizes, batch=2)
    expected = map_sides(lambda _, t: t.float(), exact(sides))
    assert_close(single(map_sides(lambda _, t: t.float(), sides)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("forget_bias", [None, 0.0, 2.5])
def test_initial_parameters(forget_bias: float | None) -> None:
    """Glorot-uniform for each gate of each set; biases zero but for the forget gates'."""
    d, sets = 50, 3
    dims = [Dim("a"), Dim("b", "tanh"), Dim("c", size=sets, tied=False)]
    grid = GridLSTM(dims, d, forget_bias=forget_bias)
    bound = math.sqrt(6 / (d + 3 * d))
    for name, gates in (("a", 4), ("b", 1), ("c", 4)):
        weight, bias = grid.weights_of(name)
        assert weight.shape == (sets, gates * d, 3 * d)
        matrices = weight.detach().view(sets * gates, -1)
        assert_close(matrices.abs().amax(1), torch.full((sets * gates,), bound), rtol=0.01, atol=0)
        assert matrices.abs().max() <= bound
        assert_close(matrices.mean(1), torch.zeros(sets * gates), rtol=0, atol=0.05 * bound)
        start = torch.zeros(sets, gates, d)
        if gates == 4:
            start[:, 1] = 1.0 if forget_bias is None else forget_bias
        assert_close(bias.detach(), start.flatten(1), **EXACT)


def test_init_is_called_for_each_gate_of_each_set() -> None:
    shapes: list[torch.Size] = []
    GridLSTM(["a", Dim("b", "relu", size=2, tied=False)], 3, init=lambda w: shapes.append(w.shape))
    assert shapes == [(3, 6)] * (2 * 4 + 2 * 1)


def test_reset_parameters() -> None:
    grid = make_grid(TWO[0])
    torch.manual_seed(7)
    grid.reset_parameters()
    torch.manual_seed(7)
    fresh = GridLSTM(TWO[0], 3, dtype=torch.float64)
    assert_close(grid.state_dict(), fresh.state_dict(), **EXACT)


SHARED = Dim("depth", shares_weights_with="time")


@pytest.mark.parametrize(
    ("dims", "hidden_size", "options", "count"),
    [
        (["time", "depth"], 1000, {"bias": False}, 2 * 2000 * 4000),
        (["time", SHARED], 1000, {"bias": False}, 2000 * 4000),
        (["time", "depth"], 1000, {}, 2 * (2000 + 1) * 4000),
        (["time", Dim("depth", size=6, tied=False)], 10, {}, 6 * 2 * (20 + 1) * 40),
        (["time", Dim("depth", "identity")], 10, {}, (20 + 1) * (40 + 10)),
        ([Dim("time", hidden_size=5), Dim("depth", hidden_size=7)], None, {}, (12 + 1) * (20 + 28)),
    ],
    ids=["2-LSTM", "shared", "biases", "untied", "identity", "hidden sizes"],
)
def test_number_of_parameters(
    dims: list[Dim], hidden_size: int | None, options: dict[str, Any], count: int
) -> None:
    """The first two are the 16 M and 8 M of section 4.3's network, without its projections."""
    grid = GridLSTM(dims, hidden_size, device="meta", **options)
    assert sum(p.numel() for p in grid.parameters()) == count


def test_parameter_names_and_shapes() -> None:
    dims = [
        Dim("a", size=2, tied=False),
        Dim("b", "relu", hidden_size=5),
        Dim("c", size=7, tied=False),
        Dim("d", shares_weights_with="a"),
    ]
    shapes = {name: tuple(p.shape) for name, p in GridLSTM(dims, 3).named_parameters()}
    assert shapes == {
        "weight_a": (2, 7, 12, 14),
        "bias_a": (2, 7, 12),
        "weight_b": (2, 7, 5, 14),
        "bias_b": (2, 7, 5),
        "weight_c": (2, 7, 12, 14),
        "bias_c": (2, 7, 12),
    }
    names = [name for name, _ in GridLSTM(dims, 3, bias=False).named_parameters()]
    assert names == ["weight_a", "weight_b", "weight_c"]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (Dim("time"), "Dim('time')"),
        (
            Dim("depth", "relu", size=3, tied=False, priority=True, reverse=True, hidden_size=4),
            "Dim('depth', transform='relu', size=3, tied=False, priority=True, reverse=True, "
            "hidden_size=4)",
        ),
        (
            Dim("depth", torch.sin, shares_weights_with="time"),
            "Dim('depth', transform=sin, shares_weights_with='time')",
        ),
        (GridLSTM(["time"], 4), "GridLSTM([Dim('time', hidden_size=4)])"),
        (
            GridLSTM(["time"], 4, bias=False, output="standard", dropout=0.1, engine="reference"),
            "GridLSTM([Dim('time', hidden_size=4)], bias=False, output=\"standard\", dropout=0.1, "
            'engine="reference")',
        ),
        (
            GridLSTM(["time"], 4, forget_bias=2.0, recompute=True),
            "GridLSTM([Dim('time', hidden_size=4)], forget_bias=2.0, recompute=True)",
        ),
    ],
)
def test_repr(shown: Dim | GridLSTM, text: str) -> None:
    assert repr(shown) == text


@pytest.mark.parametrize(
    "transform", [torch.nn.ReLU(inplace=True), torch.Tensor.tanh_, torch.ones_like]
)
def test_transfer_functions_in_place_or_constant(transform) -> None:
    results = []
    for engine in ("reference", "wavefront"):
        torch.manual_seed(0)
        grid = GridLSTM(["a", Dim("b", transform, size=2)], 4, engine=engine, dtype=torch.float64)
        x = torch.randn(2, 3, 4, dtype=torch.float64)
        out = grid({"b": State(x)})
        out["a"].hidden.sum().backward()
        results.append([out["a"].hidden, out["b"].hidden, grid.weight_a.grad])
    assert_close(*results, **CLOSE)


def test_a_hessian_is_refused_not_wrong() -> None:
    grid = GridLSTM(["time", Dim("depth", size=2)], 3)
    for frozen in (False, True):
        grid.requires_grad_(not frozen)
        with pytest.raises(RuntimeError, match='engine="reference"'):
            torch.autograd.functional.hessian(
                lambda x: grid({"depth": State(x)})["time"].hidden.sum(), torch.randn(1, 2, 3)
            )


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # PyTorch's own.
def test_forward_mode_is_refused() -> None:
    grid, x = GridLSTM(["time", Dim("depth", size=2)], 3), torch.zeros(1, 2, 3)
    for frozen in (False, True):
        grid.requires_grad_(not frozen)
        with forward_ad.dual_level(), pytest.raises(RuntimeError, match='engine="reference"'):
            grid({"depth": State(forward_ad.make_dual(x, torch.ones_like(x)))})


@pytest.mark.parametrize("compiled", [True, False])
def test_inference_mode_leaves_no_trace(compiled: bool) -> None:
    grid = make_grid(THREE[0], "wavefront")
    sides = random_sides(grid, THREE[1], batch=2)
    with use_native(compiled):
        expected = gradients(grid, sides)
        with torch.inference_mode():
            grid(map_sides(lambda _, t: t.detach(), sides))
        assert_close(gradients(grid, sides), expected, **CLOSE)


def test_buffers_are_free_after_backward() -> None:
    """Though the loss, and with it the graph, lives on."""
    grid = make_grid(TWO[0], "wavefront")
    sides = random_sides(grid, TWO[1], batch=2)
    losses, places = [], []
    for _ in range(3):
        loss = sum(t.sum() for t in tensors(grid(sides)))
        places.append(loss.grad_fn is not None)
        node = next(n for n in _nodes(loss.grad_fn) if "Wavefront" in type(n).__name__)
        loss.backward()
        assert not hasattr(node, "buffers")
        losses.append(loss)
    assert all(places)


def _nodes(root) -> list:
    found, queue = [], [root]
    while queue:
        node = queue.pop()
        if node is not None and node not in found:
            found.append(node)
            queue += [following for following, _ in node.next_functions]
    return found


LOW = [
    ("f", 4.0, torch.bfloat16),
    ("f", 8.0, torch.bfloat16),
    ("f", 8.0, torch.float16),
    ("c", -4.0, torch.bfloat16),
    ("c", 6.0, torch.bfloat16),
    ("c", 4.0, torch.float16),
]


@pytest.mark.parametrize(("gate", "start", "dtype"), LOW)
@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_of_saturated_gates_in_low_precision(
    gate: str, start: float, dtype: torch.dtype, compiled: bool
) -> None:
    """Where a slope, ``g_f (1 - g_f)`` or ``1 - g_c²``, is small, it is not lost."""
    grid, number = GridLSTM(["time", Dim("depth", size=6)], 16), "ufoc".index(gate)
    with torch.no_grad():
        for bias in (grid.bias_time, grid.bias_depth):
            bias.chunk(4)[number].fill_(start)
    x = torch.randn(8, 10, 16)

    def rows() -> torch.Tensor:
        grid.zero_grad()
        grid({"depth": State(x, x)})["depth"].memory.square().sum().backward()
        return grid.weight_depth.grad.chunk(4)[number].clone()

    expected = rows()
    with use_native(compiled), torch.autocast("cpu", dtype):
        found = rows()
    assert (found - expected).norm() < 0.03 * expected.norm()


def test_autocast_leaves_float64_alone() -> None:
    grid = make_grid(TWO[0], "wavefront")
    sides = random_sides(grid, TWO[1], batch=2)
    expected = grid(sides)
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(grid(sides), expected, **CLOSE)


def pickled(grid: GridLSTM) -> GridLSTM:
    return pickle.loads(pickle.dumps(grid))


@pytest.mark.parametrize("transform", ["lstm", "identity", "tanh", "relu", torch.sin])
@pytest.mark.parametrize("twin", [pickled, copy.copy, copy.deepcopy])
def test_copies(twin, transform) -> None:
    grid = GridLSTM(["a", Dim("b", transform, size=2)], 4, output="standard", bias=False)
    sides = {"b": State(torch.randn(2, 3, 4))}
    again = twin(grid)
    assert repr(again) == repr(grid)
    assert_close(again(sides), grid(sides))
    with pytest.raises(AttributeError, match="output: cannot be changed to"):
        again.output = "paper"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dims", ("a",)),
        ("hidden_size", 8),
        ("bias", False),
        ("output", "standard"),
        ("forget_bias", 4.0),
        ("init", torch.nn.init.zeros_),
        ("block", None),
    ],
)
def test_what_is_fixed_is_not_set_again(name: str, value: object) -> None:
    grid = GridLSTM(["a", Dim("b", size=2)], 4)
    before = getattr(grid, name)
    with pytest.raises(
        AttributeError,
        match=rf"^{name}: cannot be changed to .*; create a new GridLSTM instead$",
    ):
        setattr(grid, name, value)
    assert getattr(grid, name) is before


def test_what_is_not_fixed_is_obeyed() -> None:
    grid, sides = GridLSTM(["a", Dim("b", size=2)], 4), {"b": State(torch.randn(2, 3, 4))}
    expected = grid(sides)
    grid.engine, grid.recompute = "reference", True
    assert_close(grid(sides), expected, rtol=1e-5, atol=1e-6)
    grid.dropout = 0.9
    assert not torch.allclose(grid(sides)["b"].hidden, expected["b"].hidden)
    grid.eval()
    assert_close(grid(sides), expected, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        grid.weight_a = torch.nn.Parameter(torch.zeros_like(grid.weight_a))
    assert not torch.allclose(grid(sides)["b"].hidden, expected["b"].hidden)


def test_two_threads_equal_one() -> None:
    """Large enough for the kernel to share its rows out."""
    sides = {"c": State(torch.randn(16, 6, 7, 64, requires_grad=True))}
    lengths = {"a": torch.arange(16) % 6 + 1}
    grid = GridLSTM(["a", "b", Dim("c", "tanh", priority=True, size=3)], 64, dropout=0.3)

    def run() -> list[torch.Tensor]:
        torch.manual_seed(5)
        out = grid(sides, lengths=lengths)["c"].hidden
        return [out, *torch.autograd.grad(out.square().sum(), [sides["c"].hidden, *grid.parameters()])]

    expected = run()
    torch.set_num_threads(2)
    try:
        assert_close(run(), expected, rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(1)


POISON = {"NaN": math.nan, "infinite": math.inf}
MASKED = {
    "lengths": ([Dim("a"), Dim("b", size=3)], (4, 3), {"a": [4, 2, 0]}),
    "priority": (*TWO, {"a": [3, 4, 1], "b": [3, 2, 1]}),
    "three dimensions": (*THREE, {"a": [3, 2, 1], "b": [4, 1, 3]}),
    "untied": ([Dim("a"), Dim("b", size=3, tied=False)], (4, 3), {"a": [4, 2, 0]}),
}


@pytest.mark.parametrize("value", POISON.values(), ids=POISON.keys())
@pytest.mark.parametrize(("dims", "sizes", "lengths"), MASKED.values(), ids=MASKED.keys())
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("low", [False, True], ids=["plain", "autocast"])
def test_what_is_masked_does_not_matter(
    dims: list[Dim],
    sizes: tuple[int, ...],
    lengths: dict[str, list[int]],
    value: float,
    dropout: float,
    low: bool,
) -> None:
    """Not even NaN, in values or gradients, the second backward pass of a graph included."""
    grid = make_grid(dims, dropout=dropout, dtype=torch.float32 if low else torch.float64)
    sides = random_sides(grid, sizes, batch=3)
    given = {name: torch.tensor(values) for name, values in lengths.items()}
    # Which places of a side no real block reads.
    real = torch.ones(3, *sizes, dtype=torch.bool)
    for i, dim in enumerate(dims):
        if dim.name in lengths:
            inside = torch.arange(sizes[i]) < given[dim.name].unsqueeze(-1)
            real &= inside.view(3, *(n if j == i else 1 for j, n in enumerate(sizes)))
    unread = [~real.any(1 + i) for i in range(len(dims))]
    poisoned = map_sides(lambda i, t: t.masked_fill(unread[i].unsqueeze(-1), value), sides)

    def run(sides: Sides) -> list[Tensor]:
        sides = map_sides(lambda _, t: t.clone().requires_grad_(), sides)
        torch.manual_seed(3)
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            out = grid(sides, lengths=given)
        shown = tensors(map_sides(lambda i, t: t[~unread[i]], out))
        inputs = [*grid.parameters(), *tensors(sides)]
        grads = [
            torch.autograd.grad(tensors(out), inputs, upstream(tensors(out)), retain_graph=True)
            for _ in range(2)
        ]
        return [*shown, *grads[0], *grads[1]]

    for grid.engine, compiled, grid.recompute in (
        ("reference", True, False),
        *product(["wavefront"], [True, False], [True, False]),
    ):
        with use_native(compiled):
            assert_close(run(poisoned), run(sides), **EXACT)


UNUSED = {
    "priority": [Dim("a", size=1), Dim("b", priority=True, size=1)],
    "priority, untied": [Dim("a", size=1), Dim("b", priority=True, size=1, tied=False)],
    "all sizes": [Dim("a", size=2), Dim("b", priority=True, size=1), Dim("c", "tanh", size=1)],
    "constant": [Dim("a", size=2), Dim("b", torch.ones_like, priority=True, size=2)],
    "no memory": [Dim("a", "relu", size=2), Dim("b", "identity", priority=True, size=1)],
}


@pytest.mark.parametrize("dims", UNUSED.values(), ids=UNUSED.keys())
@pytest.mark.parametrize("masked", [False, True])
def test_what_does_not_reach_the_loss_has_zeros_as_gradients(dims: list[Dim], masked: bool) -> None:
    """In both engines alike, for every output by itself: none is missing."""
    grid = make_grid(dims)
    sizes = tuple(dim.size for dim in dims)
    sides = map_sides(lambda _, t: t.requires_grad_(), random_sides(grid, sizes, batch=2))
    call = {"lengths": {"a": torch.tensor([1, 0])}} if masked else {}
    inputs = [*grid.parameters(), *tensors(sides)]
    found: dict[str, list[tuple[Tensor | None, ...]]] = {}
    for grid.engine in ("reference", "wavefront"):
        out, blocks = grid(sides, trace=True, **call)
        found[grid.engine] = [
            torch.autograd.grad(t.sum(), inputs, retain_graph=True, allow_unused=True)
            for t in (*tensors(out), *tensors(blocks))
        ]
    assert all(grad is not None for grads in found["reference"] for grad in grads)
    assert_close(found["wavefront"], found["reference"], **CLOSE)
    assert any(grad.eq(0).all() for grads in found["reference"] for grad in grads)
