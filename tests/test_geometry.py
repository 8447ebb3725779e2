"""The plan of a grid, without tensors: each block once, after its predecessors, vectors where due."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from math import factorial, prod

import hypothesis.strategies as st
import numpy as np
from hypothesis import example, given, settings

from gridlstm.geometry import Cut, Plan, face_number, make_plan, position_number, set_number, travel

Position = tuple[int, ...]
Grid = tuple[tuple[int, ...], tuple[bool, ...], tuple[bool, ...]]

SIZES = [
    *[(1,), (2,), (5,)],
    *[(1, 1), (1, 4), (4, 1), (3, 2), (2, 5), (4, 4)],
    *[(1, 1, 1), (1, 3, 1), (3, 1, 2), (2, 3, 2), (4, 2, 3)],
    *[(1, 2, 1, 3), (2, 2, 2, 2), (3, 1, 2, 2)],
]


def flags(n: int) -> list[tuple[bool, ...]]:
    """All for one and two dimensions, then a few that tell the dimensions apart."""
    every = list(product((False, True), repeat=n))
    return every if n <= 2 else [every[0], every[1], every[-2], every[-1]]


LISTED = [grid for sizes in SIZES for grid in product([sizes], flags(len(sizes)), flags(len(sizes)))]


@st.composite
def random_grids(draw: st.DrawFn) -> Grid:
    n = draw(st.integers(1, 4))
    sizes = draw(st.tuples(*[st.integers(1, 7 - n)] * n))
    return sizes, draw(st.tuples(*[st.booleans()] * n)), draw(st.tuples(*[st.booleans()] * n))


def on_every_grid(test: Callable[[Plan], None]) -> Callable[[], None]:
    """Runs a test on the plans of all listed grids and of random ones."""

    def run(grid: Grid) -> None:
        test(make_plan(*grid))

    run.__name__, run.__qualname__ = test.__name__, test.__qualname__
    for grid in LISTED:
        run = example(grid)(run)
    return settings(deadline=None, max_examples=50, derandomize=True)(given(grid=random_grids())(run))


def positions(plan: Plan) -> list[Position]:
    """Where each block stands, blocks in the order of the plan."""
    return [tuple(map(int, np.unravel_index(number, plan.sizes))) for number in plan.position]


def step_of_block(plan: Plan) -> list[int]:
    return [s for s, step in enumerate(plan.steps) for _ in range(step.start, step.stop)]


def distance(plan: Plan, position: Position) -> list[int]:
    """How far a position is from the starting corner along each dimension."""
    return [
        n - 1 - x if back else x for x, n, back in zip(position, plan.sizes, plan.reverse, strict=True)
    ]


def neighbour(plan: Plan, position: Position, i: int, ahead: int) -> Position | None:
    """The next (1) or previous (-1) position along dimension i, ``None`` outside the grid."""
    x = position[i] + (-ahead if plan.reverse[i] else ahead)
    return (*position[:i], x, *position[i + 1 :]) if 0 <= x < plan.sizes[i] else None


@on_every_grid
def test_steps_hold_every_block_once(plan: Plan) -> None:
    assert plan.blocks == prod(plan.sizes)
    assert sorted(plan.position) == list(range(plan.blocks))
    assert [step.start for step in plan.steps] == [0, *(step.stop for step in plan.steps[:-1])]
    assert plan.steps[-1].stop == plan.blocks
    assert all(step.start < step.stop for step in plan.steps)


@on_every_grid
def test_a_step_is_the_blocks_at_one_distance(plan: Plan) -> None:
    distances = [sum(distance(plan, position)) for position in positions(plan)]
    assert distances == step_of_block(plan)
    assert len(plan.steps) == sum(plan.sizes) - len(plan.sizes) + 1
    assert plan.widest == max(Counter(distances).values())


@on_every_grid
def test_predecessors_are_in_the_step_before(plan: Plan) -> None:
    places, step = positions(plan), step_of_block(plan)
    number = {position: block for block, position in enumerate(places)}
    for block, position in enumerate(places):
        for i in range(len(plan.sizes)):
            before = neighbour(plan, position, i, -1)
            assert plan.enters[i][block] == (before is None)
            assert before is None or step[number[before]] == step[block] - 1


@on_every_grid
def test_successors_are_the_next_blocks_of_the_next_step(plan: Plan) -> None:
    places, step = positions(plan), step_of_block(plan)
    for block, position in enumerate(places):
        for i in range(len(plan.sizes)):
            after = neighbour(plan, position, i, 1)
            successor = plan.successor[i][block]
            if after is None:
                assert successor == -1
            else:
                following = plan.steps[step[block] + 1]
                assert 0 <= successor < following.stop - following.start
                assert places[following.start + successor] == after


@on_every_grid
def test_successors_are_contiguous_in_one_and_two_dimensions(plan: Plan) -> None:
    for successor in plan.successor if len(plan.sizes) <= 2 else []:
        for step in plan.steps:
            inside = [x for x in successor[step.start : step.stop] if x >= 0]
            assert set(np.diff(inside)) <= {1}


@on_every_grid
def test_numbers_are_lexicographic(plan: Plan) -> None:
    n = len(plan.sizes)

    def numbering(counted: Sequence[int]) -> dict[Position, int]:
        return {x: k for k, x in enumerate(product(*(range(plan.sizes[i]) for i in counted)))}

    def chosen(position: Position, counted: Sequence[int]) -> Position:
        return tuple(position[i] for i in counted)

    untied = [i for i in range(n) if plan.untied[i]]
    everywhere, sets = numbering(range(n)), numbering(untied)
    for block, position in enumerate(positions(plan)):
        assert position_number(position, plan.sizes) == everywhere[position]
        weight_set = sets[chosen(position, untied)]
        assert plan.weight_set[block] == set_number(position, plan.sizes, plan.untied) == weight_set
    for i in range(n):
        others = [j for j in range(n) if j != i]
        faces = numbering(others)
        assert plan.faces(i) == len(faces)
        for block, position in enumerate(positions(plan)):
            face = faces[chosen(position, others)]
            assert plan.face[i][block] == face_number(position, plan.sizes, i) == face


@on_every_grid
def test_groups_split_a_step_by_weight_set(plan: Plan) -> None:
    for step in plan.steps:
        used = plan.weight_set[step.start : step.stop].tolist()
        assert [chosen for chosen, first, last in step.groups for _ in range(first, last)] == used
        assert [first for _, first, _ in step.groups] == [0, *(last for *_, last in step.groups[:-1])]
        assert [chosen for chosen, *_ in step.groups] == sorted(set(used))


@on_every_grid
def test_by_set_lists_the_blocks_of_each_weight_set(plan: Plan) -> None:
    sets = prod(n for n, untied in zip(plan.sizes, plan.untied, strict=True) if untied)
    expected = [[b for b in range(plan.blocks) if plan.weight_set[b] == k] for k in range(sets)]
    assert plan.sets == sets
    found = plan.by_set(range(len(plan.steps)))
    assert [(number, blocks.tolist()) for number, blocks in found] == list(enumerate(expected))
    last = range(len(plan.steps) // 2, len(plan.steps))
    start = plan.steps[last[0]].start
    later = [[b - start for b in blocks if b >= start] for blocks in expected]
    used = [(number, blocks) for number, blocks in enumerate(later) if blocks]
    assert [(number, blocks.tolist()) for number, blocks in plan.by_set(last)] == used


def cuts(plan: Plan) -> list[Plan]:
    """The same grid, cut along each dimension into several numbers of pieces."""
    grid = plan.sizes, plan.reverse, plan.untied
    numbers = [(i, count) for i, size in enumerate(plan.sizes) for count in {1, min(2, size), size}]
    return [make_plan(*grid, Cut(i, count)) for i, count in numbers]


@on_every_grid
def test_a_grid_that_is_not_cut_is_one_piece(plan: Plan) -> None:
    every = range(len(plan.steps))
    assert plan.pieces == (every,)
    assert all(plan.piece(s) == every for s in every)


@on_every_grid
def test_pieces_hold_the_positions_of_a_cut_one_after_the_other(plan: Plan) -> None:
    for cut in cuts(plan):
        assert cut.cut is not None
        i, count = cut.cut
        assert [s for piece in cut.pieces for s in piece] == list(range(len(cut.steps)))
        assert len(cut.pieces) == count
        places, travelled = positions(cut), 0
        for piece in cut.pieces:
            assert all(cut.piece(s) == piece for s in piece)
            held = places[cut.steps[piece[0]].start : cut.steps[piece[-1]].stop]
            along = {distance(cut, position)[i] for position in held}
            assert along == set(range(travelled, travelled + len(along)))
            assert len(along) in (cut.sizes[i] // count, -(-cut.sizes[i] // count))
            assert len(held) == cut.count(piece)
            travelled += len(along)


@on_every_grid
def test_pieces_of_an_untied_grid_have_their_own_weights(plan: Plan) -> None:
    for cut in cuts(plan):
        assert cut.cut is not None
        i, count = cut.cut
        if cut.untied[i] and count == cut.sizes[i]:
            sets = [{number for number, _ in cut.by_set(piece)} for piece in cut.pieces]
            assert sum(map(len, sets)) == cut.sets


@on_every_grid
def test_the_largest_group(plan: Plan) -> None:
    for one in (plan, *cuts(plan)):
        used = [one.weight_set[step.start : step.stop].tolist() for step in one.steps]
        assert one.largest_group == max(max(Counter(sets).values()) for sets in used)


@on_every_grid
def test_travel_visits_every_block_after_its_predecessors(plan: Plan) -> None:
    visited: set[Position] = set()
    for position in travel(plan.sizes, plan.reverse):
        before = [neighbour(plan, position, i, -1) for i in range(len(plan.sizes))]
        assert all(x is None or x in visited for x in before)
        assert position not in visited
        visited.add(position)
    assert len(visited) == plan.blocks


Side = list[int]
Core = Callable[[list[int]], list[int]]


def push(plan: Plan, sides: Sequence[Side], core: Core) -> list[Side]:
    """Pushes integers through a grid, only by what the plan says: in, on to the successors, out.

    Along the dimension of a cut, what leaves a piece is what enters the next one.
    """
    n = len(plan.sizes)
    on_the_way: dict[tuple[int, int], int] = {}
    sides, outgoing = [list(side) for side in sides], [[0] * plan.faces(i) for i in range(n)]
    if plan.cut is not None:
        i = plan.cut.dimension
        sides[i] += [0] * len(plan.pieces) * plan.faces(i)
        outgoing[i] = sides[i]
    for s, step in enumerate(plan.steps):
        for block in range(step.start, step.stop):
            arriving = [
                sides[i][plan.face[i][block]] if plan.enters[i][block] else on_the_way.pop((i, block))
                for i in range(n)
            ]
            for i, value in enumerate(core(arriving)):
                if plan.successor[i][block] < 0:
                    outgoing[i][plan.exit[i][block]] += value
                else:
                    on_the_way[i, plan.steps[s + 1].start + plan.successor[i][block]] = value
    assert not on_the_way
    return [side[-plan.faces(i) :] for i, side in enumerate(outgoing)]


@on_every_grid
def test_a_counting_core_counts_paths(plan: Plan) -> None:
    """One path enters at the starting corner and goes on in every direction: multinomial counts."""
    n = len(plan.sizes)
    corner = [size - 1 if back else 0 for size, back in zip(plan.sizes, plan.reverse, strict=True)]
    sides = [[0] * plan.faces(i) for i in range(n)]
    sides[0][face_number(corner, plan.sizes, 0)] = 1
    outgoing = push(plan, sides, lambda arriving: [sum(arriving)] * n)
    for position in product(*map(range, plan.sizes)):
        gone = distance(plan, position)
        for i in range(n):
            if gone[i] == plan.sizes[i] - 1:
                paths = factorial(sum(gone)) // prod(map(factorial, gone))
                assert outgoing[i][face_number(position, plan.sizes, i)] == paths


@on_every_grid
def test_a_mixing_core_equals_a_recursion(plan: Plan) -> None:
    """A block that treats each dimension differently, fed differently on each face of each side."""
    n = len(plan.sizes)
    sides = [[1 + i + n * face for face in range(plan.faces(i))] for i in range(n)]

    def core(arriving: list[int]) -> list[int]:
        return [sum((1 + (i + 2 * j) % 5) * x for j, x in enumerate(arriving)) for i in range(n)]

    known: dict[Position, list[int]] = {}

    def leaving(position: Position) -> list[int]:
        if position not in known:
            before = [neighbour(plan, position, i, -1) for i in range(n)]
            known[position] = core(
                [
                    sides[i][face_number(position, plan.sizes, i)] if x is None else leaving(x)[i]
                    for i, x in enumerate(before)
                ]
            )
        return known[position]

    for one in (plan, *cuts(plan)):
        outgoing = push(one, sides, core)
        for position in product(*map(range, plan.sizes)):
            for i in range(n):
                if neighbour(plan, position, i, 1) is None:
                    face = face_number(position, plan.sizes, i)
                    assert outgoing[i][face] == leaving(position)[i]
