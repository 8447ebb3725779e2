"""The ways to run a case that are compared with each other.

A contender takes a case and returns a function without arguments that does the work of one training
step (or of one call, for a case without training), or ``None`` if it cannot run the case. The function
returns outputs and gradients in the same order for all contenders, so that they can be compared. The
matrix products alone and ``torch.nn.LSTM`` compute something else: they are only timed.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import Tensor, nn

from gridlstm.bench.cases import Case, Sides
from gridlstm.bench.loop import run_loop
from gridlstm.bench.peers import run_gates, run_layers
from gridlstm.bench.recorded import record_products, replay
from gridlstm.engines import Engine
from gridlstm.engines.native import use_native
from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["CONTENDERS", "GridStep", "Work"]

Work = Callable[[], list[Tensor]]


class CaseStep:
    """A call and, in training, its backward pass from fixed gradients of what leaves.

    Args:
        case: what is computed.
        network: the module whose parameters are differentiated.
        run: computes what leaves each grid from the sides that are given to it.
        around: makes a context for each pass.
    """

    def __init__(
        self,
        case: Case,
        network: nn.Module,
        run: Callable[[Sides], Sides],
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._case, self._run, self._around = case, run, around
        self._sides = case.sides()
        self._upstream = case.upstream()
        entering = [t for layer in self._sides for s in layer.values() for t in s if t is not None]
        self._differentiated = [*entering, *network.parameters()]
        for tensor in entering:
            tensor.requires_grad_(case.train)

    def __call__(self) -> list[Tensor]:
        """Outputs and, in training, the gradients of all sides and parameters."""
        out = self.forward()
        grads = self.backward(out) if self._case.train else []
        return [*(t.detach() for t in out), *grads]

    def forward(self) -> list[Tensor]:
        """What leaves, see :meth:`Case.leaving`."""
        with torch.set_grad_enabled(self._case.train), self._around():
            return self._case.leaving(self._run(self._sides))

    def backward(self, out: list[Tensor]) -> list[Tensor]:
        """The gradients of all sides and parameters."""
        with self._around():
            return list(torch.autograd.grad(out, self._differentiated, self._upstream))


class GridStep(CaseStep):
    """A step of the grids of a case.

    Args:
        case: what is computed.
        engine: the engine that runs it.
        recompute: whether the backward pass recomputes the gates.
        compiled: whether the engine may use its compiled kernel.
        bfloat16: whether matrix products are computed in bfloat16.
    """

    def __init__(
        self,
        case: Case,
        *,
        engine: Engine = "wavefront",
        recompute: bool = False,
        compiled: bool = True,
        bfloat16: bool = False,
    ) -> None:
        stack = case.build(recompute=recompute)
        lengths = case.lengths()
        for grid in stack.layers:
            grid.engine = engine

        def run(sides: Sides) -> Sides:
            with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                out: Sides = stack(sides, lengths=lengths)
                return out

        super().__init__(case, stack, run, partial(use_native, compiled))


def _loop(case: Case) -> Work | None:
    if any(dim.priority for dim in case.dims):
        return None
    stack = case.build()
    lengths = case.lengths()

    def run(sides: Sides) -> Sides:
        out: Sides = []
        for grid, given in zip(stack.layers, sides, strict=True):
            below = {stack.along: out[-1][stack.along]} if out else {}
            out.append(run_loop(grid, {**given, **below}, lengths))
        return out

    return CaseStep(case, stack, run)


def _peer(case: Case, *, run: Callable[[GridLSTM, State], State]) -> Work | None:
    """A published layout of a 2-LSTM."""
    if not _is_plain(case):
        return None
    stack = case.build()
    (grid,), depth = stack.layers, stack.along
    return CaseStep(case, stack, lambda sides: [{depth: run(grid, sides[0][depth])}])


def _is_plain(case: Case) -> bool:
    """Whether it is a 2-LSTM without priorities."""
    return len(case.dims) == 2 and not any(dim.priority for dim in case.dims)


def _torch_lstm(case: Case, *, bfloat16: bool = False, compiled: bool = False) -> Work | None:
    """``torch.nn.LSTM`` of the same number of FLOPs: with twice as many layers as the grid."""
    if not _is_plain(case):
        return None
    time, depth = case.sizes
    torch.manual_seed(0)
    lstm = nn.LSTM(case.hidden, case.hidden, 2 * depth)
    x = torch.randn(time, case.batch, case.hidden, requires_grad=True)
    upstream = torch.randn_like(x)
    parameters = [x, *lstm.parameters()]
    if bfloat16:
        lstm, x = lstm.bfloat16(), x.detach().bfloat16().requires_grad_()
        upstream, parameters = upstream.bfloat16(), [x, *lstm.parameters()]

    run = torch.compile(lstm) if compiled else lstm

    def work() -> list[Tensor]:
        output, _ = run(x)
        return list(torch.autograd.grad(output, parameters, upstream))

    return work


def _products(case: Case) -> Work:
    """Only the matrix products of the engine's own step, with its layouts, in its order."""
    run = replay(record_products(GridStep(case)))

    def work() -> list[Tensor]:
        run()
        return []

    return work


CONTENDERS: dict[str, Callable[[Case], Work | None]] = {
    "products": _products,
    "wavefront": GridStep,
    "wavefront, bfloat16": partial(GridStep, bfloat16=True),
    "wavefront, not compiled": partial(GridStep, compiled=False),
    "wavefront, recompute": partial(GridStep, recompute=True),
    "reference": partial(GridStep, engine="reference"),
    "loop": _loop,
    "gate by gate": partial(_peer, run=run_gates),
    "layer by layer": partial(_peer, run=run_layers),
    "torch.nn.LSTM": _torch_lstm,
    "torch.nn.LSTM, torch.compile": partial(_torch_lstm, compiled=True),
    "torch.nn.LSTM, bfloat16": partial(_torch_lstm, bfloat16=True),
}
