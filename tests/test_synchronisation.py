"""The loop over the steps never waits for the device, so a CUDA graph can capture it.

Shown on meta tensors, which have no values: an operation that needs one cannot run on them, and copies
from and to the host are counted.
"""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.moves import make_by_set, make_moves, make_order, make_sets
from gridlstm.geometry import make_plan

META = torch.device("meta")
# They read a value of a tensor on the host, or have results of a size that depends on values.
WAITING = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select", "unique", "item")


class Watch(TorchDispatchMode):
    """Counts operations that would wait for a device, and copies between it and the host."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: Counter[str] = Counter()
        self.copies = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_mask = name.startswith("index") and any(
            t.dtype == torch.bool for t in tree_leaves(args[1:2]) if isinstance(t, Tensor)
        )
        if name in WAITING or by_mask:
            self.waiting[name] += 1
        out = func(*args, **(kwargs or {}))
        devices = {t.device for t in tree_leaves((args, kwargs, out)) if isinstance(t, Tensor)}
        # A number of the host may be an argument of an operation on the device.
        self.copies += len(devices) > 1 and name in ("_to_copy", "copy_")
        return out


def watch(time: int, *, trace: bool = True, recompute: bool = False) -> Watch:
    """One call and its backward pass, on a grid with everything that needs indices."""
    dims = [Dim("a"), Dim("b", "peephole", size=2, priority=True, tied=False), Dim("c", "gru", size=3)]
    grid = GridLSTM(dims, 3, device=META, dropout=0.2, recompute=recompute)
    x = torch.randn(2, time, 3, 3, device=META, requires_grad=True)
    mask = torch.ones(2, time, 2, 3, dtype=torch.bool, device=META)
    with Watch() as seen:
        found = grid({"b": State(x, x)}, mask=mask, trace=trace)
        out, blocks = found if trace else (found, {})
        results = [t for s in (*out.values(), *blocks.values()) for t in s if t is not None]
        torch.autograd.backward(results, [torch.ones_like(t) for t in results])
    return seen


@pytest.mark.parametrize("recompute", [False, True])
def test_no_step_waits_for_the_device(recompute: bool) -> None:
    few, many = (watch(time, recompute=recompute) for time in (24, 48))
    assert few.waiting == many.waiting == Counter()
    assert few.copies == many.copies  # Before the loop only: not one more with more steps.


def test_what_would_wait_is_noticed() -> None:
    real = torch.ones(3, dtype=torch.bool)
    with Watch() as seen:
        torch.zeros(3)[real]
        torch.zeros(1).item()
        torch.zeros(3).to(META)
    assert set(seen.waiting) == {"index", "_local_scalar_dense"}
    assert seen.copies == 1


@pytest.mark.parametrize("make", [make_moves, make_order, make_sets])
def test_indices_are_copied_to_a_device_once(make: Any) -> None:
    """So a call with the sizes of an earlier one copies nothing at all."""
    plan = make_plan((4, 3, 2), (False, True, False), (False, True, False))
    assert make(plan, META) is make(plan, META)
    assert make_by_set(plan, META, range(2)) is make_by_set(plan, META, range(2))
    with Watch():
        assert make(plan, META) is not make(plan, META)  # While operations are recorded.
