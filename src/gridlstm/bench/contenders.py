"""The ways to run a case that are compared with each other.

A contender takes a case and returns a function without arguments that does the work of one training
step (or of one call, for a case without training), or ``None`` if it cannot run the case. The function
returns outputs and gradients in the same order for all contenders, so that they can be compared. The
matrix products alone and ``torch.nn.LSTM`` compute something else: they are only timed.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from gridlstm.bench.cases import Case
from gridlstm.bench.loop import run_loop
from gridlstm.bench.peers import run_gates, run_layers
from gridlstm.engines import Engine
from gridlstm.engines.buffers import make_buffers, make_gradients
from gridlstm.engines.dispatch import choose_backend
from gridlstm.engines.native import use_native
from gridlstm.engines.packing import pack_kept, pack_once
from gridlstm.engines.passes import make_call
from gridlstm.engines.products import GradWeights
from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import make_plan
from gridlstm.grid import GridLSTM
from gridlstm.state import State

__all__ = ["CONTENDERS", "Work", "has_bfloat16"]

Work = Callable[[], list[Tensor]]


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 matrices in hardware."""
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def _step(case: Case, network: nn.Module, forward: Callable[[State], State]) -> Work:
    """A call and, in training, its backward pass from a fixed gradient of the output."""
    entering, _ = case.inputs()
    entering = entering.map(lambda t: t.requires_grad_(case.train))
    upstream = [torch.randn_like(t) for t in entering if t is not None]
    differentiated = [*(t for t in entering if t is not None), *network.parameters()]

    def work() -> list[Tensor]:
        with torch.set_grad_enabled(case.train):
            out = [t for t in forward(entering) if t is not None]
        grads = torch.autograd.grad(out, differentiated, upstream[: len(out)]) if case.train else ()
        return [*(t.detach() for t in out), *grads]

    return work


def _grid(
    case: Case,
    *,
    engine: Engine = "wavefront",
    recompute: bool = False,
    compiled: bool = True,
    bfloat16: bool = False,
) -> Work:
    stack = case.build(recompute=recompute)
    lengths = case.inputs()[1]
    for grid in stack.layers:
        grid.engine = engine

    def forward(entering: State) -> State:
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            out: State = stack([{stack.along: entering}], lengths=lengths)[-1][stack.along]
            return out

    step = _step(case, stack, forward)

    def work() -> list[Tensor]:
        with use_native(compiled):
            return step()

    return work


def _loop(case: Case) -> Work | None:
    if any(dim.priority for dim in case.dims):
        return None
    stack = case.build()
    lengths = case.inputs()[1]

    def forward(entering: State) -> State:
        for grid in stack.layers:
            entering = run_loop(grid, entering, lengths)
        return entering

    return _step(case, stack, forward)


def _peer(case: Case, *, run: Callable[[GridLSTM, State], State]) -> Work | None:
    """A published layout of a 2-LSTM."""
    if not _is_plain(case):
        return None
    stack = case.build()
    return _step(case, stack, lambda entering: run(stack.layers[0], entering))


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
    """Only the matrix products of the case, with the same sizes as in the engine."""
    layers = []
    for grid in case.build().layers:
        plan = make_plan(
            case.sizes, tuple(d.reverse for d in grid.dims), tuple(not d.tied for d in grid.dims)
        )
        with torch.no_grad():
            weights = grid.phase_weights()
        like, workspace = weights[0].weight, Workspace()
        call = make_call(grid.block, plan, weights, like.new_empty(1, case.batch, 1), None, None, None)
        kept = ("all_steps", "all_steps") if case.train else ("two_steps", "one_step")
        buffers = make_buffers(call, like, workspace, states=kept[0], gates=kept[1])  # type: ignore[arg-type]
        gradients = make_gradients(call, like, workspace)
        for rows in (buffers.hidden, *buffers.inputs, *buffers.gates):
            rows.data.normal_()
        backend = choose_backend(grid.block, like, like.dtype)
        sums = GradWeights([w._replace(bias=None) for w in weights], buffers, call.columns)
        layers.append((call, backend, weights, buffers, gradients, sums, workspace))

    def work() -> list[Tensor]:
        for call, backend, weights, buffers, gradients, sums, _ in layers:
            steps = list(enumerate(call.plan.steps))
            pack = pack_once if case.train else pack_kept
            packed = [pack(backend, w.weight, call, p) for p, w in enumerate(weights)]
            for s, step in steps:
                for p, matrices in enumerate(packed):
                    matrices.multiply(buffers.inputs[p].at(s), step, buffers.gates[p].at(s))
            if not case.train:
                continue
            packed = [backend.pack(w.weight, call) for w in weights]
            for s, step in reversed(steps):
                for p, matrices in enumerate(packed):
                    matrices.multiply(buffers.gates[p].at(s), step, gradients.inputs[p].at(s))
            sums.add(0)
        return []

    return work


CONTENDERS: dict[str, Callable[[Case], Work | None]] = {
    "products": _products,
    "wavefront": _grid,
    "wavefront, bfloat16": partial(_grid, bfloat16=True),
    "wavefront, not compiled": partial(_grid, compiled=False),
    "wavefront, recompute": partial(_grid, recompute=True),
    "reference": partial(_grid, engine="reference"),
    "loop": _loop,
    "gate by gate": partial(_peer, run=run_gates),
    "layer by layer": partial(_peer, run=run_layers),
    "torch.nn.LSTM": _torch_lstm,
    "torch.nn.LSTM, torch.compile": partial(_torch_lstm, compiled=True),
    "torch.nn.LSTM, bfloat16": partial(_torch_lstm, bfloat16=True),
}
