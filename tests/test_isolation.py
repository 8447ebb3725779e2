"""Calls do not disturb each other: threads, processes, and whatever device is the default."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from gridlstm import Dim, GridLSTM, SequenceGridLSTM, State, from_torch, to_torch
from gridlstm.engines import workspace
from gridlstm.engines.native import use_native
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import generate

each_path = pytest.mark.parametrize("compiled", [True, False], ids=["kernel", "PyTorch"])


@each_path
@pytest.mark.parametrize("recompute", [False, True])
def test_threads_may_share_a_graph(recompute: bool, compiled: bool) -> None:
    """Backward passes of a graph that is kept, at the same time, each with gradients of its own."""
    grid = GridLSTM(
        ["a", Dim("b", size=4, priority=True)], 16, recompute=recompute, dtype=torch.float64
    )
    x = torch.randn(16, 20, 16, dtype=torch.float64)
    parameters = list(grid.parameters())
    with use_native(compiled):
        loss = grid({"b": State(x, x)})["b"].hidden.square().sum()
    start = threading.Barrier(4)

    def backward(_: int) -> list[tuple[Tensor, ...]]:
        start.wait()
        with use_native(compiled):
            return [torch.autograd.grad(loss, parameters, retain_graph=True) for _ in range(6)]

    with use_native(compiled):
        expected = torch.autograd.grad(loss, parameters, retain_graph=True)
    with ThreadPoolExecutor(4) as threads:
        for results in threads.map(backward, range(4)):
            for found in results:
                assert_close(found, expected)


def test_backward_after_one_that_failed() -> None:
    """What the first had overwritten when it stopped is made anew."""
    calls: list[Tensor] = []

    def tanh(x: Tensor) -> Tensor:
        if x.requires_grad:  # In the backward pass.
            calls.append(x)
            if len(calls) == 3:
                raise ValueError("on purpose")
        return x.tanh()

    found = []
    for transform, engine in (("tanh", "reference"), (tanh, "wavefront")):
        torch.manual_seed(0)
        grid = GridLSTM(["a", Dim("b", transform, size=3)], 4, engine=engine, dtype=torch.float64)
        side = State(torch.randn(2, 5, 4, dtype=torch.float64))
        loss, parameters = grid({"b": side})["a"].hidden.sum(), list(grid.parameters())
        if engine == "wavefront":
            with pytest.raises(ValueError, match="on purpose"):
                torch.autograd.grad(loss, parameters, retain_graph=True)
        found.append(torch.autograd.grad(loss, parameters))
    assert_close(found[1], found[0])


@contextmanager
def default_device(name: str) -> Iterator[None]:
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize(
    ("within", "compiled", "batch"),
    [  # Of sizes too different to get each other's buffers.
        (torch.device, True, 1),
        (torch.device, False, 4),
        (default_device, True, 16),
        (default_device, False, 64),
    ],
    ids=["with, kernel", "with, PyTorch", "set, kernel", "set, PyTorch"],
)
def test_the_default_device_does_not_matter(within: Callable, compiled: bool, batch: int) -> None:
    """Nor does a call under another one leave anything of it behind."""
    grid = GridLSTM(["a", "b", Dim("c", size=2, tied=False)], 11, dropout=0.1)
    x, lengths = torch.randn(batch, 3, 5, 11), {"a": torch.full((batch,), 2)}
    mask = torch.ones(batch, 3, 5, 2, dtype=torch.bool)

    def run() -> None:
        out = grid({"c": State(x)}, lengths=lengths, mask=mask)["c"].hidden
        results = [out, *torch.autograd.grad(out.sum(), list(grid.parameters()))]
        assert {t.device.type for t in results} == {"cpu"}

    with use_native(compiled):
        with within("meta"):
            run()
        run()


def test_models_under_another_default_device() -> None:
    body = SequenceGridLSTM(3, 4, 2, readout="both", batch_first=True, output="standard")
    model = CharacterModel(b"abc", body)
    plain = CharacterModel(b"abc", SequenceGridLSTM(3, 4, 2, depth="identity", batch_first=True))
    lstm, x = nn.LSTM(5, 4, num_layers=2), torch.randn(3, 2, 5)
    expected = lstm(x)[0]

    def letters(model: CharacterModel) -> list[int]:
        chosen = generate(model, torch.tensor([0, 1, 2], device="cpu").numpy(), temperature=0)
        return [next(chosen) for _ in range(3)]

    before = letters(model), letters(plain)
    with torch.device("meta"):
        assert (letters(model), letters(plain)) == before
        net = from_torch(lstm)
        assert_close(net(x)[0], expected)
        assert_close(to_torch(net)(x)[0], expected)


def _call_in_child(queue: multiprocessing.Queue) -> None:
    grid = GridLSTM(["a", Dim("b", size=2)], 4)
    queue.put(grid({"b": State(torch.zeros(1, 3, 4))})["b"].hidden.shape)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_a_process_forked_while_another_thread_is_in_the_engine() -> None:
    """The child has only the thread that forked: nobody would ever release the lock for it."""
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with workspace._lock:
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_call_in_child, args=(queue,))
    try:
        child.start()
        assert queue.get(timeout=20) == (1, 3, 4)
    finally:
        child.kill()
        child.join()
        done.set()
        thread.join()
