"""The algorithmic tasks: functions of seed and number, split without overlap, in the paper's format."""

import numpy as np
import pytest

from gridlstm.data.draw import draw
from gridlstm.experiments.addition.data import (
    AdditionTask,
    GrowingAdditionTask,
    SparseAdditionTask,
)
from gridlstm.experiments.addition.options import AdditionOptions
from gridlstm.experiments.algorithmic.task import BLANK, BLOCK, Task
from gridlstm.experiments.memorization.data import MemorizationTask
from gridlstm.experiments.parity.data import ParityTask

TASKS: list[Task] = [
    AdditionTask(15),
    AdditionTask(2),
    AdditionTask(1),
    MemorizationTask(20, 64),
    ParityTask(20),
]
SMALLEST: list[Task] = [
    ParityTask(7),
    MemorizationTask(1, 81),
    MemorizationTask(2, 9),
    MemorizationTask(3, 5),
    MemorizationTask(4, 3),
    MemorizationTask(7, 2),
]
each_task = pytest.mark.parametrize("task", [*TASKS, *SMALLEST], ids=repr)


def number(digits: np.ndarray) -> int:
    return int("".join(str(digit) for digit in digits))


def test_numbers_are_uniform_and_independent() -> None:
    drawn = draw(3, np.arange(20_000), 6, 2, 9)
    counts = np.stack([np.bincount(column, minlength=9)[2:] for column in drawn.T])
    assert drawn.min() == 2
    assert drawn.max() == 8
    np.testing.assert_allclose(counts / 20_000, 1 / 7, atol=0.012)
    correlation = np.corrcoef(np.concatenate([drawn, draw(4, np.arange(20_000), 6, 2, 9)], 1).T)
    assert np.abs(correlation - np.eye(12)).max() < 0.03
    following = np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]
    assert abs(following) < 0.03


def test_seeds_and_streams_differ() -> None:
    numbers = np.arange(50)
    rows = {draw(s, numbers, 8, 0, 100, stream=t).tobytes() for s in range(5) for t in range(5)}
    assert len(rows) == 25


@each_task
def test_a_sample_depends_only_on_seed_and_number(task: Task) -> None:
    whole = task.draw(5, 0, 40)
    part = task.draw(5, 17, 9)
    for all_of_them, some in zip(whole, part, strict=True):
        np.testing.assert_array_equal(some, all_of_them[17:26])


@each_task
@pytest.mark.parametrize("held_out", [False, True])
def test_blocks_are_not_seen_in_the_samples(task: Task, held_out: bool) -> None:
    first, count = BLOCK - 3, BLOCK + 7
    drawn = task.draw(5, first, count, held_out=held_out)
    picked = task.pick(5, np.arange(first, first + count), held_out=held_out)
    for some, expected in zip(drawn, picked, strict=True):
        np.testing.assert_array_equal(some, expected)


@each_task
@pytest.mark.parametrize("seeds", [(0, 0), (0, 1), (3, 2)])
def test_training_never_draws_what_is_held_out(task: Task, seeds: tuple[int, int]) -> None:
    def contents(seed: int, held_out: bool) -> set[bytes]:
        return {row.tobytes() for row in task.draw(seed, 0, 3000, held_out=held_out).inputs}

    training, held_out = contents(seeds[0], False), contents(seeds[1], True)
    assert training
    assert held_out
    assert not training & held_out


@pytest.mark.parametrize("digits", [1, 2, 3, 15])
def test_addition_adds(digits: int) -> None:
    n = digits
    samples = AdditionTask(n).draw(0, 0, 500)
    assert samples.inputs.shape == samples.targets.shape == (500, 3 * n + 4)
    lengths = set()
    for inputs, targets, scored in zip(*samples, strict=True):
        a, b = inputs[1 : n + 1] - 1, inputs[n + 2 : 2 * n + 2] - 1
        assert a[0] > 0
        assert b[0] > 0
        result = str(number(a) + number(b))
        lengths.add(len(result))
        shown = [AdditionTask(n).show(symbol) for symbol in targets]
        expected = ["-"] * (2 * n + 2) + list(result)
        assert shown == expected + ["-"] * (3 * n + 4 - len(expected))
        assert scored.sum() == len(result)
        assert (inputs[[0, n + 1, *range(2 * n + 2, 3 * n + 4)]] == BLANK).all()
    assert lengths == {n, n + 1}


def test_memorization_repeats() -> None:
    samples = MemorizationTask(20, 64).draw(0, 0, 300)
    assert samples.inputs.shape == (300, 42)
    np.testing.assert_array_equal(samples.inputs[:, 1:21], samples.targets[:, 21:41])
    assert set(np.unique(samples.inputs[:, 1:21])) == set(range(1, 65))
    assert (samples.targets[:, :21] == BLANK).all()
    assert samples.scored.sum() == 300 * 20


def test_parity_is_that_of_the_bits() -> None:
    samples = ParityTask(31).draw(0, 0, 1000)
    assert samples.inputs.shape == (1000, 31)
    np.testing.assert_array_equal(samples.targets[:, 0], samples.inputs.sum(1) & 1)
    assert 0.45 < samples.targets.mean() < 0.55


def test_a_task_too_small_to_hold_anything_out_says_so() -> None:
    with pytest.raises(ValueError, match=r"none of the few contents is .*: expected a task with more"):
        # There is one content, which is on one side.
        [MemorizationTask(1, 1).draw(0, 0, 5, held_out=side) for side in (False, True)]


@pytest.mark.parametrize(
    ("task", "inputs", "targets"),
    [
        (AdditionTask(2), "- 5 0 - 9 9 - - - -", "- - - - - - 1 4 9 -"),
        (AdditionTask(2), "- 1 0 - 1 1 - - - -", "- - - - - - 2 1 - -"),
        (MemorizationTask(2), "- 64 1 - - -", "- - - 64 1 -"),
        (ParityTask(4), "1 0 1 1", "1"),
    ],
)
def test_notation(task: Task, inputs: str, targets: str) -> None:
    numbers = [int(symbol) for symbol in inputs.split() if symbol != "-"]
    samples = task.encode(np.array([numbers]))
    assert " ".join(task.show(symbol) for symbol in samples.inputs[0]) == inputs
    assert " ".join(task.show(symbol) for symbol in samples.targets[0]) == targets


def test_numbers_that_grow() -> None:
    """They begin short, all of them are right sums, and in the end they are those without growth."""
    task = GrowingAdditionTask(6, pace=100)
    for first, most in ((0, 3), (150, 4), (299, 5), (300, 6), (10_000, 6)):
        inputs, targets, scored = task.draw(0, first, 60)
        assert inputs.shape == targets.shape == scored.shape == (60, 3 * most + 4)
        lengths = set()
        for row, result in zip(inputs, targets, strict=True):
            _, a, b, *_ = "".join("-" if s == BLANK else str(s - 1) for s in row).split("-")
            lengths.add(len(a))
            assert len(a) == len(b)
            shown = "".join(task.show(s) for s in result)
            assert shown.strip("-") == str(int(a) + int(b))
            assert shown.index(str(int(a) + int(b))) == 2 * len(a) + 2
        assert lengths == ({6} if most == 6 else set(range(2, most + 1)))
        assert (scored == (targets != BLANK)).all()
    for held_out in (False, True):
        whole = task.draw(0, 400, 20, held_out=held_out)
        parts = [task.draw(0, 400 + k, 1, held_out=held_out) for k in range(20)]
        for name in ("inputs", "targets"):
            stacked = np.concatenate([getattr(part, name) for part in parts])
            assert (getattr(whole, name) == stacked).all()
            expected = AdditionTask(6).draw(0, 400, 20, held_out=held_out)
            assert (getattr(whole, name) == getattr(expected, name)).all()
    assert task.draw(0, 0, 4, held_out=True).inputs.shape == (4, 22)


def test_second_numbers_fill_up() -> None:
    task, shares = SparseAdditionTask(15, fill=10_000), []
    for first in (0, 5000, 10_000):
        samples = task.draw(3, first, 2000)
        decoded = [[task.show(s) for s in row] for row in samples.inputs[:20]]
        for row, target in zip(decoded, samples.targets, strict=False):
            _, a, b, *_ = "".join(row).split("-")
            assert "".join(task.show(s) for s in target).strip("-") == str(int(a) + int(b))
        numbers = samples.inputs[:, 1:16], samples.inputs[:, 17:32]
        assert (numbers[0][:, 1:] == 1).mean() == pytest.approx(0.1, abs=0.01)
        assert (numbers[1][:, 0] > 1).all()  # No leading zeros.
        shares.append((numbers[1][:, 1:] == 1).mean())
    # A digit stays with probability u ** k for uniform u: 1 / (k + 1) of all, for k = 3, 1.5 and 0.
    expected = [1 - 0.9 / (k + 1) for k in (3 - 0.3, 1.5 - 0.3, 0)]
    assert shares == pytest.approx(expected, abs=0.02)
    plain = AdditionTask(15)
    for held_out, first in ((True, 0), (False, 10_000)):
        found, want = (t.draw(3, first, 50, held_out=held_out) for t in (task, plain))
        assert (found.inputs == want.inputs).all()
    assert not (task.draw(3, 0, 50).inputs == plain.draw(3, 0, 50).inputs).all()


@pytest.mark.parametrize("zeros", [0.25, 0.5, 0.75])
def test_second_numbers_with_zeros_throughout(zeros: float) -> None:
    task, plain = SparseAdditionTask(15, zeros), AdditionTask(15)
    for first in (0, 1_000_000):
        numbers = task.draw(3, first, 2000).inputs[:, 1:32]
        assert (numbers[:, 1:15] == 1).mean() == pytest.approx(0.1, abs=0.01)
        shares = (numbers[:, 17:] == 1).mean(1)
        assert shares.mean() == pytest.approx(zeros + 0.1 * (1 - zeros), abs=0.02)
        assert shares.min() < 0.1
        assert shares.max() > 0.9
    found, want = (t.draw(3, 0, 50, held_out=True).inputs for t in (task, plain))
    assert (found == want).all()


def test_numbers_are_made_easier_in_one_way() -> None:
    with pytest.raises(ValueError, match=r"^fill: expected None with pace 24000, got 100$"):
        AdditionOptions(pace=24_000, fill=100)
    with pytest.raises(ValueError, match=r"^zeros: expected None with fill 100, got 0.5$"):
        AdditionOptions(fill=100, zeros=0.5)
    with pytest.raises(ValueError, match=r"^fill: expected at least 1 or None, got 0$"):
        AdditionOptions(fill=0)
    with pytest.raises(ValueError, match=r"^zeros: expected more than 0 and below 1 or None, got 1.0$"):
        AdditionOptions(zeros=1.0)
