"""What the benchmarks are made of: rounds in turn, medians and spreads, limits, recorded products."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from gridlstm import Dim, GridLSTM, State
from gridlstm.bench.cases import CASES, Case
from gridlstm.bench.contenders import GridStep
from gridlstm.bench.engine_watch import watch_engine
from gridlstm.bench.limits import limit_flops, make_limits, share_of_limit
from gridlstm.bench.measure import MAIN, measure
from gridlstm.bench.peak import peak_memory
from gridlstm.bench.rates_figure import draw_rates
from gridlstm.bench.recorded import Recorder, record_products, replay
from gridlstm.bench.summary import floor_text, ratio_text, spread, spread_text, summarise, with_spread
from gridlstm.bench.timing import set_threads, time_in_turn, time_once
from gridlstm.engines import ENGINES
from gridlstm.engines.native.build import library
from gridlstm.engines.recording import is_recorded, only_watched
from gridlstm.models.reencoder import Reencoder

SMALL = Case("small", (Dim("time"), Dim("depth")), (3, 2), 4, 6)


def test_rounds_are_summarised() -> None:
    summary = summarise({"1": {"a": [1.0, 2.0, 5.0]}, "2": {"a": [3.0]}})
    assert summary == {
        "median": {"1": {"a": 2.0}, "2": {"a": 3.0}},
        "spread": {"1": {"a": 100.0}, "2": {"a": None}},
        "rounds": {"1": {"a": 3}, "2": {"a": 1}},
        "seconds": {"1": {"a": [1.0, 2.0, 5.0]}, "2": {"a": [3.0]}},
    }
    assert spread([4.0, 4.4, 4.2]) == pytest.approx(100 / 21)
    assert (spread_text([1.0]), spread_text([9.0, 11.0])) == ("", "10")
    assert ratio_text([30.0, 33.0, 33.0], [3.0, 3.0]) == "11±5"
    assert ratio_text([3.0], [2.0]) == "1.50"
    assert (with_spread("2 s", [2.0]), with_spread("2 s", [1.8, 2.2])) == ("2 s", "2 s±10")


@pytest.mark.parametrize(
    ("upper", "text"),
    [
        ([2.2, 2.0, 2.2], "1.10±5"),
        ([1.9, 2.1, 1.9], "<1*"),  # By 5 %, with a spread of 5 %.
        ([1.5, 1.5, 1.6], "0.75±3!"),
        ([1.9], "0.95!"),  # One round says nothing about the spread.
    ],
)
def test_a_floor_is_not_undercut_silently(upper: list[float], text: str) -> None:
    assert floor_text(upper, [2.0, 2.0, 2.0]) == text


def test_everything_is_timed_in_turn() -> None:
    calls: list[tuple[str, int]] = []
    works = {name: lambda n=name: calls.append((n, torch.get_num_threads())) for name in "abc"}
    before = torch.get_num_threads()
    seconds = time_in_turn(works, [1, 2], 5, slow=["c"], single="abc")
    first = [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2)]
    second = [("b", 1), ("c", 1), ("a", 1), ("b", 2), ("c", 2), ("a", 2)]
    assert calls[:12] == first + second
    rounds = {name: len(times) for name, times in seconds["2"].items()}
    assert rounds == {"a": 5, "b": 5, "c": 3}
    assert torch.get_num_threads() == before


def test_without_patience_only_the_main_work_is_timed_twice() -> None:
    works = dict.fromkeys("abc", lambda: None)
    seconds = time_in_turn(works, [1, 2], 9, patience=0, main="b", single="abc")
    assert {n: {k: len(t) for k, t in by.items()} for n, by in seconds.items()} == {
        "1": {"a": 1, "b": 2, "c": 1},
        "2": {"b": 2},
    }
    everything = time_in_turn(works, [1], 9, patience=0, single="abc")["1"]
    assert [len(times) for times in everything.values()] == [2, 2, 2]


def test_short_work_is_repeated() -> None:
    calls: list[None] = []
    mean = time_once(lambda: calls.append(None), least=0.01)
    assert len(calls) > 10
    assert mean * len(calls) >= 0.01
    calls.clear()
    time_once(lambda: calls.append(None))
    assert len(calls) == 1


def test_a_large_case_is_timed_with_few_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    from gridlstm.bench import measure as module

    names = ["products", "wavefront", "loop"]
    both = measure(SMALL, names, [1, 2], 1, quick=True)
    assert {count: [*times] for count, times in both.items()} == {
        "1": ["limit", *names],
        "2": ["limit", *names],
    }
    monkeypatch.setattr(module, "time_once", lambda work: 7.0)
    large = measure(SMALL, names, [1, 2], 1, patience=30, quick=True)
    assert {count: [*times] for count, times in large.items()} == {
        "2": ["limit", "products", "wavefront"]
    }
    assert "loop" not in MAIN


def test_shares_of_the_limit() -> None:
    flops = limit_flops(quick=True)
    median = {"limit": 2.0, "limit, bfloat16": 1.0, "step": 5.0}
    assert share_of_limit(flops, median, "step", quick=True) == pytest.approx(0.4)
    assert share_of_limit(flops, median, "step", bfloat16=True, quick=True) == pytest.approx(0.2)
    assert share_of_limit(flops, {"step": 5.0}, "step", quick=True) is None
    works = make_limits(bfloat16=True, quick=True)
    products = [record_products(work)[0] for work in works.values()]
    assert [product.flops for product in products] == [flops, flops]
    assert [product.left.dtype for product in products] == [torch.float32, torch.bfloat16]


def test_recorded_products_have_the_layout_of_the_engine() -> None:
    """Of more than 8192 rows, the engine lays the weights out anew, unless PyTorch is recording."""
    case = replace(SMALL, sizes=(40, 30), batch=8)
    with Recorder():
        assert is_recorded()
        with only_watched():
            assert not is_recorded()
    products = record_products(GridStep(case, compiled=False))
    steps = 40 + 30 - 1
    forward, backward, (gradient,) = products[:steps], products[steps:-1], products[-1:]
    assert {product.right.shape for product in forward} == {(12, 48)}
    assert {product.right.stride for product in forward} == {(48, 1)}  # Not the (1, 12) of W^T.
    assert {product.right.shape for product in backward} == {(48, 12)}
    assert [product.adds for product in products] == [False] * (2 * steps + 1)
    # The rows of all steps are one piece of memory, which the last product reads as a whole.
    assert len({product.out.memory for product in forward}) == 1
    assert sorted(product.out.offset for product in forward) == [p.out.offset for p in forward]
    assert gradient.left.memory == forward[0].out.memory
    assert record_products(replay(products)) == products


@pytest.mark.skipif(library() is None, reason="there is no compiled kernel")
def test_products_of_the_compiled_kernel_are_recorded_too() -> None:
    products = record_products(GridStep(SMALL))
    *steps, gradient = products
    assert [product.step is not None for product in products] == [True] * len(steps) + [False]
    assert {product.right.shape for product in steps} == {(1, 12, 48), (1, 48, 12)}
    assert sum(product.flops for product in products) == SMALL.flops()
    assert not gradient.adds
    assert record_products(replay(products)) == products
    # Recomputed in pieces, the gradient of the weights is a sum.
    case = replace(SMALL, sizes=(16, 3), batch=8)
    products = record_products(GridStep(case, recompute=True))
    assert [product.adds for product in products if product.step is None] == [False, *[True] * 5]
    assert record_products(replay(products)) == products


@pytest.mark.skipif(library() is None, reason="there is no compiled kernel")
def test_products_run_again_on_as_many_threads_as_there_are_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = replay(record_products(GridStep(SMALL)))
    asked: list[int] = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: asked.append(7) or 1)
    again()
    assert len(asked) == len(record_products(GridStep(SMALL)))


def test_the_engine_is_watched_forward_and_backward() -> None:
    seen: list[str] = []

    @contextmanager
    def watch(part: str):
        seen.append(f"begin {part}")
        yield
        seen.append("end")

    engine = ENGINES["wavefront"]
    once = ["begin engine", "end"]
    x = torch.randn(2, 3, 6, requires_grad=True)
    with watch_engine(watch):
        grid = GridLSTM(["time", Dim("depth", size=2)], 6)
        out = grid({"depth": State(x)})["depth"].hidden
        assert seen == once
        (out * 2).sum().backward()
        assert seen == 2 * once
        grid.engine = "reference"
        grid({"depth": State(x)})
        assert seen == 2 * once
    assert ENGINES["wavefront"] is engine


@pytest.mark.parametrize("name", ["decoding-1", "decoding-8", "decoding-64", "decoding"])
def test_decoding_is_a_step_of_a_reencoder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sides are given to the same grids, and the same are used of what leaves."""
    case = replace(CASES[name], hidden=4)
    assert case.batch == int(name.partition("-")[2] or 640)
    net = Reencoder(9, 9, case.hidden).eval()
    source, lengths = torch.ones(case.batch, 12, dtype=torch.long), case.lengths()
    assert lengths is not None
    given = []
    run = net.stack.forward
    monkeypatch.setattr(
        net.stack,
        "forward",
        lambda sides, **options: given.append((sides, options)) or run(sides, **options),
    )
    _, progress = net.step(source[:, 0], net.begin(source, lengths["source"]))
    ((sides, options),) = given

    def shapes(layers):
        return [{k: tuple(t.shape for t in s) for k, s in layer.items()} for layer in layers]

    assert shapes(sides) == shapes(case.sides())
    assert options["lengths"].keys() == lengths.keys()
    assert [dim.reverse for grid in net.stack.layers for dim in grid.dims] == [
        dim.reverse for grid in case.build().layers for dim in grid.dims
    ]
    # The row for the scores, and what the next step continues.
    leaving = case.leaving(case.build()(case.sides(), lengths=lengths))
    row = torch.Size([case.batch, 1, 1, case.hidden])
    assert [t.shape for t in leaving] == [row, row, *(t.shape for t in progress[1:])]


def test_products_with_zeros_are_not_counted() -> None:
    """Nothing enters the first of two grids along depth; the gates are four, four and one."""
    case = replace(CASES["decoding-8"], hidden=4)
    assert case.flops() == 2 * 12 * 8 * (9 * 4) * (2 * 4 + 3 * 4)
    assert replace(case, enters=("source", "depth")).flops() == 2 * 12 * 8 * (9 * 4) * (2 * 3 * 4)


def test_memory_of_a_stack_of_masked_grids() -> None:
    case = replace(CASES["reencoder"], sizes=(12, 8, 1), batch=32, hidden=64)
    kept, less = (peak_memory(case, recompute=recompute) for recompute in (False, True))
    assert 0 < less.held < kept.held <= kept.peak
    assert less.peak < kept.peak


def test_the_figure_shows_the_limit_if_it_was_measured() -> None:
    described = {
        "name": "cube",
        "flops": 6e9,
        "median": {"1": {"wavefront": 2.0, "products": 1.5}},
        "seconds": {"1": {"wavefront": [1.5, 2.0, 3.0], "products": [1.5]}},
    }
    (panel,) = draw_rates([described]).axes
    assert "limit: a large matrix product" not in panel.get_legend_handles_labels()[1]
    (panel,) = draw_rates([described | {"share of limit": {"1": {"wavefront": 0.25}}}]).axes
    handles = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    assert list(handles["limit: a large matrix product"].get_xdata()) == [12.0, 12.0]  # GFLOP/s
    bars = handles["gridlstm"].lines[2][0].get_segments()[0]
    assert bars[:, 0].tolist() == [2.0, 4.0]  # The slowest and the fastest round.


def test_threads_are_reset_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), set_threads(before + 1):
        raise RuntimeError
    assert torch.get_num_threads() == before
