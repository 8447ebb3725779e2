"""PyTorch compiles, exports, records and transforms modules: done, or refused in a sentence."""

import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

import gridlstm
from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.native import use_native

each_engine = pytest.mark.parametrize("engine", ["reference", "wavefront"])
x, y = (torch.randn(2, 4, 2, 3, dtype=torch.float64) for _ in range(2))


class Net(nn.Module):
    """A grid of three dimensions, whose steps are no contiguous ranges."""

    def __init__(self, engine: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        dims = ["a", Dim("b", size=2, priority=True), Dim("c", "tanh", size=2)]
        self.grid = GridLSTM(dims, 3, engine=engine, dtype=torch.float64)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out = self.grid({"b": State(x, x)})
        return out["b"].hidden, out["a"].memory


def loss(outputs: Sequence[Tensor]) -> Tensor:
    return sum(t.square().sum() for t in outputs)


def gradients(net: nn.Module) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss(net(x)), list(net.parameters()))


@each_engine
def test_fake_tensors_leave_nothing_behind(engine: str) -> None:
    """A geometry that is met for the first time among fake tensors is a real one afterwards."""
    net = Net("reference")
    side = torch.randn(2, 5, 2, 3, dtype=torch.float64)  # Of a length that no other test has.
    expected = net(side)
    net.grid.engine = engine
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        out = net(mode.from_tensor(side))
        loss(out).backward()
    assert [t.shape for t in out] == [t.shape for t in expected]
    for compiled in (False, True):
        with use_native(compiled):
            assert_close(net(side), expected)


@each_engine
@pytest.mark.parametrize("pre_dispatch", [False, True])
def test_recorded_without_gradients(engine: str, pre_dispatch: bool) -> None:
    """The graph computes what the grid does, for other values too."""
    net = Net(engine)
    with torch.no_grad():
        recorded = make_fx(net, pre_dispatch=pre_dispatch)(x)
    assert_close(recorded(y), net(y))


@each_engine
def test_exported_without_gradients(engine: str) -> None:
    net = Net(engine)
    with torch.no_grad():
        exported = torch.export.export(net, (x,), strict=False).module()
    assert_close(exported(y), net(y))


@each_engine
def test_exported_with_gradients(engine: str) -> None:
    net = Net(engine)
    assert_close(gradients(torch.export.export(net, (x,), strict=False).module()), gradients(net))


@each_engine
def test_recorded_with_gradients(engine: str) -> None:
    """Of the loss, and of its gradient."""
    net = Net(engine)
    assert_close(make_fx(lambda x: loss(net(x)))(x)(y), loss(net(y)))

    def slope(x: Tensor) -> Tensor:
        return torch.autograd.grad(loss(net(x)), net.grid.weight_a)[0]

    assert_close(make_fx(slope)(x)(y), slope(y))


def test_a_graph_recorded_without_gradients_has_none() -> None:
    net = Net("wavefront")
    with torch.no_grad():
        recorded = make_fx(net)(x)
    assert not any(t.requires_grad for t in recorded(x.clone().requires_grad_()))


@each_engine
def test_other_dispatch_modes(engine: str) -> None:
    """Counting operations changes nothing, and none is missed."""
    net = Net(engine)
    expected = net(x)
    with FlopCounterMode(display=False) as counter:
        assert_close(net(x), expected)
    batch, blocks, H, rows = 2, 16, 9, 4 * 3 + 4 * 3 + 3
    assert counter.get_total_flops() == 2 * batch * blocks * H * rows


def test_strict_export_of_the_reference_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"strict torch.export: pass strict=False, or .*wavefront"):
        torch.export.export(Net("reference"), (x,), strict=True)


def stacked(function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    return torch.stack([function(one) for one in inputs])


def batched(net: Net) -> Tensor:
    out = net(x)[0]
    along = torch.eye(out.numel(), dtype=out.dtype).view(-1, *out.shape)[:3]
    (grad,) = torch.autograd.grad(out, [net.grid.weight_a], along, is_grads_batched=True)
    return grad


def one_by_one(net: Net) -> Tensor:
    values = net(x)[0].flatten()[:3]
    weight = [net.grid.weight_a]
    return torch.stack([torch.autograd.grad(v, weight, retain_graph=True)[0] for v in values])


def func_grad(net: Net) -> tuple[Tensor, ...]:
    def function(parameters: dict[str, Tensor]) -> Tensor:
        return loss(torch.func.functional_call(net, parameters, (x,)))

    return tuple(torch.func.grad(function)(dict(net.named_parameters())).values())


def vjp(net: Net) -> Tensor:
    out, back = torch.func.vjp(lambda x: net(x)[0], x)
    return back(torch.ones_like(out))[0]


def by_backward(net: Net) -> Tensor:
    side = x.clone().requires_grad_()
    return torch.autograd.grad(net(side)[0].sum(), side)[0]


def jacobian(net: Net, **options: bool) -> Tensor:
    return torch.autograd.functional.jacobian(lambda x: net(x)[0], x, **options)


def call(net: Net, parameters: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.func.functional_call(net, parameters, (x,))


def twice(net: Net) -> dict[str, Tensor]:
    """Two sets of parameters, stacked."""
    return {name: torch.stack([p, 2 * p]).detach() for name, p in net.named_parameters()}


def each(net: Net) -> list[dict[str, Tensor]]:
    """The same two sets, one by one."""
    return [{name: p[i] for name, p in twice(net).items()} for i in (0, 1)]


def slopes(net: Net, parameters: dict[str, Tensor], x: Tensor) -> tuple[Tensor, ...]:
    """The gradients of a loss by ``torch.func.grad``."""
    return tuple(torch.func.grad(lambda p: loss(call(net, p, x)))(parameters).values())


def stack_all(results: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    return tuple(torch.stack(values) for values in zip(*results, strict=True))


both = torch.stack([x, y])
TRANSFORMS = {
    "grad": (func_grad, gradients),
    "vjp": (vjp, by_backward),
    "jacrev": (lambda net: torch.func.jacrev(lambda x: net(x)[0])(x), jacobian),
    "vmap": (
        lambda net: torch.vmap(lambda x: net(x)[0])(both),
        lambda net: stacked(lambda x: net(x)[0], both),
    ),
    "vmap along other axes": (
        lambda net: torch.vmap(net, in_dims=2, out_dims=1)(both.movedim(0, 2)),
        lambda net: tuple(t.transpose(0, 1) for t in stack_all([net(x), net(y)])),
    ),
    "vmap of vmap": (
        lambda net: torch.vmap(torch.vmap(net))(torch.stack([both, 2 * both])),
        lambda net: stack_all([stack_all([net(x) for x in pair]) for pair in (both, 2 * both)]),
    ),
    "vmap with a mask": (
        lambda net: torch.vmap(lambda x, m: net.grid({"b": State(x, x)}, mask=m)["a"])(both, masks),
        lambda net: State(
            *stack_all(
                [net.grid({"b": State(x, x)}, mask=m)["a"] for x, m in zip(both, masks, strict=True)]
            )
        ),
    ),
    "gradient of each sample": (
        lambda net: torch.vmap(lambda x: slopes(net, dict(net.named_parameters()), x))(both),
        lambda net: stack_all([slopes(net, dict(net.named_parameters()), x) for x in both]),
    ),
    "ensemble": (
        lambda net: torch.vmap(lambda p: call(net, p, x))(twice(net)),
        lambda net: stack_all([call(net, p, x) for p in each(net)]),
    ),
    "gradients of an ensemble": (
        lambda net: torch.vmap(lambda p: slopes(net, p, x))(twice(net)),
        lambda net: stack_all([slopes(net, p, x) for p in each(net)]),
    ),
    "backward of vmap": (
        lambda net: torch.autograd.grad(loss(torch.vmap(net)(both)), list(net.parameters())),
        lambda net: torch.autograd.grad(loss(net(x)) + loss(net(y)), list(net.parameters())),
    ),
}
masks = torch.rand(2, 2, 4, 2, 2) < 0.7


@each_engine
@pytest.mark.parametrize(("transform", "plain"), TRANSFORMS.values(), ids=TRANSFORMS.keys())
def test_transforms(transform: Callable, plain: Callable, engine: str) -> None:
    net = Net(engine)
    net.grid.recompute = transform is func_grad
    assert_close(transform(net), plain(net))
    if plain is jacobian or transform is vjp:  # By the input alone.
        assert_close(transform(net.requires_grad_(False)), plain(net))


REFUSED = {
    "jacfwd": (
        lambda net: torch.func.jacfwd(lambda x: net(x)[0])(x),
        jacobian,
        "forward-mode derivatives",
    ),
    "is_grads_batched": (batched, one_by_one, "batched gradients"),
    "jacobian, vectorised": (lambda net: jacobian(net, vectorize=True), jacobian, "batched gradients"),
    "second derivative": (
        lambda net: torch.func.grad(lambda x: torch.func.grad(lambda x: loss(net(x)))(x).sum())(x),
        lambda net: torch.autograd.functional.hessian(lambda x: loss(net(x)), x).sum((0, 1, 2, 3)),
        "second derivatives",
    ),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # Of PyTorch's own use of it.
@pytest.mark.parametrize(("transform", "plain", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_transforms_of_the_reference(transform: Callable, plain: Callable, what: str) -> None:
    """The reference engine supports them, which is what the fast one says."""
    net = Net("reference")
    assert_close(transform(net), plain(net))
    with pytest.raises(RuntimeError, match=rf'does not support {what}: .*engine="reference"'):
        transform(Net("wavefront"))


def test_a_refusal_leaves_the_graph_as_it_was() -> None:
    net = Net("wavefront")
    out = net(x)
    parameters = list(net.parameters())
    expected = torch.autograd.grad(loss(out), parameters, retain_graph=True)
    with pytest.raises(RuntimeError, match="batched gradients"):
        torch.autograd.grad(out[0], parameters, torch.ones(2, *out[0].shape), is_grads_batched=True)
    assert_close(torch.autograd.grad(loss(out), parameters), expected)


@each_engine
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_jit_script_is_refused(engine: str) -> None:
    for module in (Net(engine), Net(engine).grid):
        with pytest.raises(RuntimeError, match=r'torch.jit.script: .* engine="reference"'):
            torch.jit.script(module)


@pytest.mark.parametrize("names", [["GridLSTM"], gridlstm.__all__], ids=["GridLSTM", "all names"])
def test_importing_does_not_import_the_compiler(names: list[str]) -> None:
    code = f"import sys; from gridlstm import {', '.join(names)}; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


NET = """
import io, operator
import torch
from torch import nn
from torch.testing import assert_close
from gridlstm import Dim, GridLSTM, State

class Net(nn.Module):
    def __init__(self, engine):
        super().__init__()
        self.grid = GridLSTM(["a", Dim("b", size=2, priority=True)], 3, engine=engine)
    def forward(self, x):
        return self.grid({"b": State(x * 2)})["b"].hidden * 3

few, many = torch.randn(2, 4, 3), torch.randn(5, 4, 3)
"""
COMPILED = """
def backend(graph, inputs):
    seen.update(node.target for node in graph.graph.nodes if node.op.startswith("call"))
    return graph

for engine in ("reference", "wavefront"):
    seen = set()
    net = Net(engine)
    compiled = torch.compile(net, backend=backend)
    for x in (few, few, torch.randn(2, 5, 3)):
        results = []
        for run in (net, compiled):
            out = run(x)
            results.append((out, torch.autograd.grad(out.square().sum(), list(net.parameters()))))
        assert_close(results[1], results[0])
    # What is around the grid is compiled; the grid of the reference is not.
    assert (seen == {operator.mul}) == (engine == "reference"), seen
"""
EXPORTED = """
for engine in ("reference", "wavefront"):
    net, batch = Net(engine), torch.export.Dim("batch", min=2)
    with torch.no_grad():
        exported = torch.export.export(net, (few,), dynamic_shapes=({0: batch},), strict=False)
    assert_close(exported.module()(many), net(many))
"""
TRACED = """
net, file = Net("reference"), io.BytesIO()
torch.jit.save(torch.jit.trace(net, few), file)
file.seek(0)
traced = torch.jit.load(file)
for x in (few, many):
    assert_close(traced(x), net(x))
for grad in (False, True):
    with torch.set_grad_enabled(grad):
        try:
            torch.jit.trace(Net("wavefront"), few)
        except RuntimeError as error:
            assert 'torch.jit.trace: build the grid with engine="reference"' in str(error), error
        else:
            raise AssertionError("not refused")
"""


@pytest.mark.parametrize(
    "code", [COMPILED, EXPORTED, TRACED], ids=["compiled", "any number of samples", "jit.trace"]
)
def test_in_a_process_without_checked_shapes(code: str) -> None:
    """The checks of these tests cannot be compiled, and know no sizes that stand for any number."""
    command = [sys.executable, "-c", NET + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
