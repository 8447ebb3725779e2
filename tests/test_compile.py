"""Grids as an operator: compiled without a graph break, exported and loaded, equal to eager."""

import copy
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from gridlstm import (
    Cell,
    DeepGridLSTM,
    Dim,
    GridLSTM,
    ImageGridLSTM,
    Reencoder,
    SequenceGridLSTM,
    State,
)
from gridlstm.engines import operator
from gridlstm.engines.library import run_backward, run_forward
from gridlstm.engines.native import use_native

DOUBLE = torch.float64
EXACT = {"rtol": 1e-12, "atol": 1e-12}


pytestmark = pytest.mark.usefixtures("unchecked_shapes")


class Leaky(Cell):
    name, reads_hidden = "leaky", True

    def forward(self, preactivation: Tensor, old: State, peephole: Tensor | None) -> State:
        return State(0.9 * old.hidden + 0.1 * preactivation.tanh())


class Call(nn.Module):
    """A grid with the arguments of a call; its input enters along the last dimension."""

    def __init__(
        self, dims: list, sizes: tuple[int, ...], call: dict | None = None, **options: object
    ) -> None:
        super().__init__()
        self.grid = GridLSTM(dims, 3, **{"dtype": DOUBLE, **options})
        self.call, last = call or {}, self.grid.dims[-1]
        shape = (2, *sizes[:-1], last.hidden_size)
        self.x = torch.randn(shape, dtype=options.get("dtype", DOUBLE), requires_grad=True)

    def forward(self, x: Tensor) -> list[Tensor]:
        last = self.grid.dims[-1]
        side = State(x, 2 * x) if last.has_memory else State(x)
        out = self.grid({last.name: side}, **self.call)
        states = [s for part in (out if self.call.get("trace") else [out]) for s in part.values()]
        return [t for state in states for t in state if t is not None]


def results(module: nn.Module, run: Callable[[Tensor], list[Tensor]], x: Tensor) -> tuple:
    """Outputs, and gradients under random upstream gradients, after the same seed."""
    torch.manual_seed(1)
    out = run(x)
    upstream = [torch.randn_like(t) for t in out]
    return out, torch.autograd.grad(out, [x, *module.parameters()], upstream)


plain = ["a", Dim("b", size=3)]
three = [Dim("a", reverse=True), Dim("b", size=2, priority=True, tied=False), Dim("c", "tanh", size=3)]
mask, three_mask = torch.rand(2, 4, 3) < 0.7, torch.rand(2, 4, 2, 3) < 0.7
CASES = {
    "lengths, trace": (plain, (4, 3), {"lengths": {"a": torch.tensor([4, 2])}, "trace": True}, {}),
    "one dimension, without bias": ([Dim("a", size=3)], (3,), {}, {"bias": False}),
    "recompute": (plain, (4, 3), {}, {"recompute": True, "output": "standard"}),
    "recompute, mask, dropout": (
        three,
        (4, 2, 3),
        {"mask": three_mask, "trace": True},
        {"recompute": True, "dropout": 0.4},
    ),
    "three dimensions, mask, dropout": (three, (4, 2, 3), {"mask": three_mask}, {"dropout": 0.4}),
    "other cells": ([Dim("a", "gru"), Dim("b", "peephole", size=2, tied=False)], (3, 2), {}, {}),
    "shared": (["a", Dim("b", size=3, shares_weights_with="a")], (4, 3), {"mask": mask}, {}),
    "layer normalisation, zoneout": (
        plain,
        (4, 3),
        {"mask": mask},
        {"layer_norm": True, "zoneout": {"a": (0.2, 0.5)}, "dropout": 0.3, "dropout_between": ["b"]},
    ),
    "own cell": ([Dim("a", Leaky()), Dim("b", Leaky(), size=3, priority=True)], (4, 3), {}, {}),
    "own function": (["a", Dim("b", torch.sin, size=3, hidden_size=5)], (4, 3), {}, {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_compiled_equals_eager(case: tuple) -> None:
    dims, sizes, call, options = case
    module = Call(dims, sizes, call, **options)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for native in (False, True):
        with use_native(native):
            expected = results(module, module, module.x)
            assert_close(results(module, compiled, module.x), expected, **EXACT)
    module.grid.engine = "reference"
    assert_close(expected, results(module, module, module.x), rtol=1e-9, atol=1e-9)


def test_a_kept_graph() -> None:
    """The backward operator overwrites nothing that another backward pass reads."""
    module = Call(three, (4, 2, 3), {"mask": three_mask})
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    out = sum(t.square().sum() for t in compiled(module.x))
    inputs = [module.x, *module.parameters()]
    first = torch.autograd.grad(out, inputs, retain_graph=True)
    assert_close(torch.autograd.grad(out, inputs), first, rtol=0, atol=0)


def test_without_gradients() -> None:
    """Nothing is kept for a backward pass that does not come."""
    module = Call(plain, (4, 3))
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    compiled = torch.compile(module, fullgraph=True, backend=backend)
    with torch.no_grad():
        assert_close(compiled(module.x), module(module.x), **EXACT)
    keeps = [node.args[5] for node in graphs[0].graph.nodes if "gridlstm" in str(node.target)]
    assert keeps == ["nothing"]


def test_under_autocast() -> None:
    module = Call(plain, (4, 3), dtype=torch.float32)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    with torch.autocast("cpu", torch.bfloat16):
        expected = results(module, module, module.x)
        assert_close(results(module, compiled, module.x), expected, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # Of Inductor itself.
def test_by_the_default_compiler() -> None:
    """Inductor chooses the layouts of what the operators get."""
    module = Call(three, (4, 2, 3), {"mask": three_mask})
    compiled = torch.compile(module, fullgraph=True)
    assert_close(results(module, compiled, module.x), results(module, module, module.x), **EXACT)


def test_any_length_and_batch_with_one_graph() -> None:
    net = SequenceGridLSTM(5, 3, num_layers=2, dtype=DOUBLE)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(net, fullgraph=True, dynamic=True, backend=counter)
    seen = []
    for time, batch in ((4, 2), (7, 2), (3, 6), (9, 5)):
        x = torch.randn(time, batch, 5, dtype=DOUBLE, requires_grad=True)
        expected = results(net, lambda x: [net(x)[0], *net(x)[1]], x)
        assert_close(results(net, lambda x: [compiled(x)[0], *compiled(x)[1]], x), expected, **EXACT)
        seen.append(counter.frame_count)
    assert len(set(seen)) == 1


NETWORKS = {
    "sequence": (
        SequenceGridLSTM(5, 3, num_layers=2, bidirectional=True, dtype=DOUBLE),
        (torch.randn(4, 2, 5, dtype=DOUBLE),),
        {"lengths": torch.tensor([4, 1])},
    ),
    "deep": (DeepGridLSTM(5, 3, num_layers=4, dtype=DOUBLE), (torch.randn(2, 5, dtype=DOUBLE),), {}),
    "image": (
        ImageGridLSTM(6, hidden_size=3, num_layers=2, relu_size=4, dtype=DOUBLE),
        (torch.rand(2, 1, 6, 6, dtype=DOUBLE),),
        {},
    ),
    "Reencoder": (
        Reencoder(9, 7, 3, dtype=DOUBLE),
        (torch.tensor([[3, 4, 5], [8, 0, 0]]), torch.tensor([[1, 4], [1, 5]])),
        {"lengths": torch.tensor([3, 1])},
    ),
}


@pytest.mark.parametrize(("net", "args", "kwargs"), NETWORKS.values(), ids=NETWORKS.keys())
def test_networks(net: nn.Module, args: tuple, kwargs: dict) -> None:
    """Compiled, and exported strictly: outputs and gradients of all parameters."""
    exported = torch.export.export(net, args, kwargs, strict=True)
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")

    def run(module: nn.Module) -> tuple:
        out = module(*args, **kwargs)
        first = out[0] if isinstance(out, tuple) else out
        named = dict((net if module is compiled else module).named_parameters())
        inputs = [named[name] for name, _ in net.named_parameters()]
        return out, torch.autograd.grad(first.square().sum(), inputs, allow_unused=True)

    expected = run(net)
    assert_close(run(compiled), expected, **EXACT)
    assert_close(run(loaded), expected, **EXACT)


def test_values_are_checked_when_the_graph_runs() -> None:
    net, args, kwargs = NETWORKS["Reencoder"]
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    compiled(*args, **kwargs)
    with pytest.raises(RuntimeError, match="lengths: expected 1 to the size"):
        compiled(*args, lengths=torch.tensor([3, 4]))
    with pytest.raises(RuntimeError, match="target: expected words from 0 to 6"):
        compiled(args[0], args[1] + 3, **kwargs)


LOAD = """
import sys, torch
from gridlstm import GridLSTM
program, data = sys.argv[1:]
x, expected = torch.load(data)
torch.testing.assert_close(torch.export.load(program).module()(x)[0], expected)
"""


@pytest.mark.parametrize("strict", [True, False])
def test_an_exported_program_in_another_process(strict: bool, tmp_path: Path) -> None:
    """With any length and batch; it needs the package, but no class of the caller."""
    net = SequenceGridLSTM(5, 3, num_layers=2, dtype=DOUBLE)
    x, longer = (torch.randn(*shape, 5, dtype=DOUBLE) for shape in ((4, 2), (9, 3)))
    shapes = ({0: torch.export.Dim("time", min=2), 1: torch.export.Dim("batch", min=2)},)
    exported = torch.export.export(net, (x,), dynamic_shapes=shapes, strict=strict)
    torch.export.save(exported, tmp_path / "net.pt2")
    torch.save((longer, net(longer)[0].detach()), tmp_path / "data.pt")
    command = [sys.executable, "-c", LOAD, str(tmp_path / "net.pt2"), str(tmp_path / "data.pt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_own_cells_belong_to_their_process(tmp_path: Path) -> None:
    module = Call(*CASES["own cell"][:2])
    x = module.x.detach()
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "net.pt2")
    assert_close(torch.export.load(tmp_path / "net.pt2").module()(x), module(x), **EXACT)
    torch.save((x, x), tmp_path / "data.pt")
    command = [sys.executable, "-c", LOAD, str(tmp_path / "net.pt2"), str(tmp_path / "data.pt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    message = 'dimension "a": the user-defined transform Leaky() is known only to the process'
    assert message in done.stderr
    assert 'engine="reference"' in done.stderr


def test_a_copy_of_a_grid_with_an_own_cell() -> None:
    twin = copy.deepcopy(Call(*CASES["own cell"][:2]))
    compiled = torch.compile(twin, fullgraph=True, backend="eager")
    assert_close(compiled(twin.x), twin(twin.x), **EXACT)


@pytest.mark.parametrize("case", [CASES["recompute, mask, dropout"], CASES["other cells"]])
def test_opcheck(case: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's own checks: schema, no mutation, fake results, gradients and dynamic shapes."""
    dims, sizes, call, options = case
    module = Call(dims, sizes, call, **options)
    calls = []
    monkeypatch.setattr(operator, "is_graph", lambda: True)
    monkeypatch.setattr(operator, "run_forward", lambda *args: calls.append(args) or run_forward(*args))
    out = module(module.x)
    *options, tensors = calls[0]
    which, drawn = [*options[:4], options[5]], options[6:]
    leaves = [t.detach().requires_grad_() for t in tensors]
    torch.library.opcheck(run_forward, (*options, leaves))
    results = [t.detach() for t in run_forward(*calls[0])]
    out, saved = results[: len(out)], results[len(out) :]
    given = [t.detach() for t in tensors]
    grads = [torch.randn_like(t) for t in out]
    for upstream in (grads, [None, *grads[1:]]):
        arguments = (*which, *drawn, given, saved, upstream)
        torch.library.opcheck(run_backward, arguments)
