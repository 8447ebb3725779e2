"""Buffers are reused, never shared, and freed when no longer used."""

import weakref
from math import prod

import pytest
import torch

from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.native import use_native
from gridlstm.engines.workspace import Workspace

like = torch.zeros(1)


def take(*shape: int) -> tuple[Workspace, torch.Tensor]:
    space = Workspace()
    return space, space.take(shape, like)


def test_a_dropped_buffer_is_reused() -> None:
    space, tensor = take(4_321_012, 3)  # So large that no other test has left a buffer that would do.
    address = tensor.data_ptr()
    del space, tensor
    _, again = take(4_321_000, 3)
    assert again.data_ptr() == address
    assert again.shape == (4_321_000, 3)


def test_buffers_in_use_are_not_shared() -> None:
    space, tensor = take(999, 7)
    other, second = take(999, 7)
    assert tensor.data_ptr() != second.data_ptr()
    assert space is not other


def test_a_much_larger_buffer_is_not_wasted() -> None:
    space, tensor = take(54_321)
    address = tensor.data_ptr()
    del space, tensor
    _, small = take(54_321 // 3)
    assert small.data_ptr() != address


def test_an_unused_buffer_is_freed() -> None:
    space, tensor = take(77_777)
    buffer = weakref.ref(tensor._base)
    del space, tensor
    take(1)
    assert buffer() is not None
    for _ in range(1000):
        take(1)
    assert buffer() is None


def test_other_devices_allocate_for_themselves() -> None:
    tensor = Workspace().take((3, 4), torch.zeros(1, device="meta"), torch.float64)
    assert (tensor.device.type, tensor.dtype, tensor.shape) == ("meta", torch.float64, (3, 4))


@pytest.mark.parametrize("compiled", [True, False])
def test_without_gradients_memory_does_not_grow_with_the_grid(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = Workspace.take

    def counted(self, shape, like, dtype=None):
        taken.append(prod(shape))
        return take(self, shape, like, dtype)

    monkeypatch.setattr(Workspace, "take", counted)
    grid = GridLSTM(["time", Dim("depth", size=3)], 4)

    def values(time: int) -> int:
        taken.clear()
        grid({"depth": State(torch.zeros(2, time, 4))})
        return sum(taken)

    with use_native(compiled):
        with torch.no_grad():
            values(20)  # Prepares the weights, which later calls find.
            assert values(200) == values(20)
        assert values(200) > 5 * values(20)
