"""The Triton backend without a GPU: kernels compiled ahead, no synchronisation, and reasons against it.

``test_triton_interpreted.py`` compares its results with the reference.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from gridlstm import Dim, GridLSTM, State
from gridlstm.engines.gpu import TritonBackend, triton_backend
from gridlstm.engines.native import use_native

from .test_engines import CASES, Case, run, tensors

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs Triton: make test-extras installs it"
)
compiles = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="TRITON_INTERPRET=1 is set: nothing is compiled"
)
TRANSFORMS = ["lstm", "gru", "identity", "tanh", "relu"]
OPTIONS = Case(
    (Dim("a"), Dim("b", size=2, tied=False, priority=True)),
    (1, 2),
    options={"dropout": 0.3, "recompute": True},
    mask=True,
)
Specialisation = tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, Any], ...]]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    """The kernels that the backend, used for any device, would launch. Nothing is computed."""
    recorded: list[tuple[str, Mapping[str, Any]]] = []
    monkeypatch.setattr(TritonBackend, "not_supported_reasons", lambda *_: [])
    monkeypatch.setattr(triton_backend, "launch", lambda *launch: recorded.append(launch))
    with use_native(False):
        yield recorded


def specialise(name: str, arguments: Mapping[str, Any]) -> Specialisation:
    """What Triton compiles a kernel for: the types of its arguments, and the values of constants."""
    from triton.runtime.jit import mangle_type

    from gridlstm.engines.gpu import triton_kernels

    given = {"ROWS": triton_kernels.ROWS, "COLUMNS": triton_kernels.COLUMNS, **arguments}
    kernel = getattr(triton_kernels, name)
    assert all(p.is_constexpr or p.do_not_specialize for p in kernel.params)
    constants = {p.name: given[p.name] for p in kernel.params if p.is_constexpr}
    types = {n: "constexpr" if n in constants else mangle_type(given[n]) for n in kernel.arg_names}
    return name, tuple(types.items()), tuple(constants.items())


def specialisations(launched: list[tuple[str, Mapping[str, Any]]]) -> set[Specialisation]:
    """All that calls with all cells and dtypes, without and with options, have compiled."""
    plain = [Case((Dim("a", transform, size=2),), (2,)) for transform in TRANSFORMS]
    several = [
        replace(OPTIONS, dims=tuple(replace(dim, transform=transform) for dim in OPTIONS.dims))
        for transform in TRANSFORMS
    ]
    cases = [*plain, *several]
    cases += [replace(c, options={**c.options, "output": "standard"}) for c in (plain[0], several[0])]
    for case in cases:
        for dtype, low in (
            (torch.float64, None),
            (torch.float32, None),
            (torch.float32, torch.bfloat16),
            (torch.float32, torch.float16),
        ):
            case = replace(case, dtype=dtype)
            grid = case.grid()
            sides, call = case.sides(grid), case.call()
            with torch.autocast("cpu", low, enabled=low is not None):
                run(case, grid, sides, call)
    return {specialise(*launch) for launch in launched}


@needs_triton
@compiles
@pytest.mark.parametrize("target", [("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64)], ids=str)
def test_every_kernel_compiles_ahead(
    target: tuple[str, int | str, int],
    launched: list[tuple[str, Mapping[str, Any]]],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from gridlstm.engines.gpu import triton_kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # Compiled here and now.
    found = specialisations(launched)
    names = [name for name, _, _ in found]
    # Six cells and four pairs of dtypes: options have kernels of their own nowhere.
    expected = {"enter": 2, "read": 4, "forward": 24, "backward": 24, "finish": 4}
    assert {name: names.count(name) for name in expected} == expected
    assert len(names) == sum(expected.values())
    for name, types, constants in found:
        source = ASTSource(getattr(triton_kernels, name), dict(types), dict(constants))
        code = triton.compile(source, target=GPUTarget(*target)).asm
        if target[0] == "cuda":
            assert f".target sm_{target[1]}" in code["ptx"]
            assert f".entry {name}(" in code["ptx"]
            assert code["cubin"].startswith(b"\x7fELF")
            if name == "forward" and "*bf16" in dict(types).values():
                assert "cvt.rn.bf16" in code["ptx"]  # The interpreter truncates, a GPU rounds.
        else:
            assert f"amdgcn-amd-amdhsa--{target[1]}" in code["amdgcn"]
            assert f".amdhsa_kernel {name}" in code["amdgcn"]
            assert code["hsaco"].startswith(b"\x7fELF")


class HostAccess(TorchDispatchMode):
    """Records operations that wait for the device or copy from the host, among the launches."""

    def __init__(self, events: list[Any]) -> None:
        super().__init__()
        self.events = events

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        leaves = torch.utils._pytree.tree_leaves((args, kwargs, result))
        devices = {value.device.type for value in leaves if isinstance(value, torch.Tensor)}
        if len(devices) > 1 or "_local_scalar_dense" in str(operation):
            self.events.append(str(operation))
        return result


@needs_triton
@pytest.mark.parametrize(
    "case",
    [
        CASES["2-LSTM"],
        CASES["GRU"],
        CASES["mask"],
        CASES["untied along both"],
        CASES["Reencoder layer"],
    ],
    ids=["2-LSTM", "GRU", "mask", "untied", "Reencoder layer"],
)
def test_steps_are_launches_only(case: Case, launched: list[Any]) -> None:
    """On meta tensors, which have no values: reading one would raise an error."""
    case = replace(case, dtype=torch.float32, lengths={})
    grid = case.grid().to("meta")
    sides = {
        name: state.map(lambda t: t.detach().to("meta")) for name, state in case.sides(grid).items()
    }
    mask = case.call()["mask"]
    with HostAccess(launched):
        out = grid(sides, mask=None if mask is None else mask.to("meta"))
        count = len(launched)
        torch.autograd.grad(sum(t.sum() for t in tensors(out)), list(grid.parameters()))
    for events in (launched[:count], launched[count:]):
        kernels = [place for place, event in enumerate(events) if isinstance(event, tuple)]
        assert len(kernels) >= len(grid.dims)
        between = events[kernels[0] : kernels[-1]]
        assert [event for event in between if not isinstance(event, tuple)] == []
    pointers = [
        v for _, given in filter(lambda e: isinstance(e, tuple), launched) for v in given.values()
    ]
    assert {v.device.type for v in pointers if isinstance(v, torch.Tensor)} == {"meta"}


@needs_triton
def test_a_second_call_uses_the_same_table(launched: list[Any]) -> None:
    """So a graph that is captured after a first call does not copy from the host."""
    grid = GridLSTM(["a", Dim("b", size=2)], 3, device="meta")
    for _ in range(2):
        grid({"b": State(torch.empty(1, 3, 3, device="meta"))})
    half = len(launched) // 2
    for (_, first), (_, second) in zip(launched[:half], launched[half:], strict=True):
        assert first["table"].untyped_storage()._cdata == second["table"].untyped_storage()._cdata


def reasons(grid: GridLSTM, like: torch.Tensor, product: torch.dtype = torch.float32) -> list[str]:
    return TritonBackend.not_supported_reasons(grid.block, like, product)


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """A tensor on a GPU as far as devices go, where Triton is installed."""
    monkeypatch.setattr(triton_backend, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    monkeypatch.setattr("gridlstm.engines.backend.is_recorded", lambda: False)
    with FakeTensorMode():
        return torch.empty(1, device="cuda")


RECORDED = ["operations are being recorded, and it is not a PyTorch operation"]  # It is a fake tensor.


def test_it_runs_on_gpus(on_cuda: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = GridLSTM(
        [Dim(name, transform) for name, transform in zip("abcde", TRANSFORMS, strict=True)], 3
    )
    for product in (torch.float32, torch.bfloat16, torch.float16):
        assert reasons(grid, on_cuda, product) == RECORDED
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (6, 1))
    (old,) = reasons(grid, on_cuda)[1:]
    assert old == "it needs a GPU of compute capability 7.0 or more, not 6.1"
    monkeypatch.setattr(torch.version, "hip", "6.4")  # AMD's numbers are others.
    assert reasons(grid, on_cuda) == RECORDED


def test_reasons_against_it(on_cuda: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    grid = GridLSTM([Dim("a", "peephole"), "b"], 3)
    for device in ("cpu", "meta"):
        like = torch.empty(1, device=device)
        assert reasons(grid, like) == [f"it runs on CUDA and ROCm, not on {device}"]
    assert reasons(grid, on_cuda)[1:] == ["it does not implement these cells: peephole"]
    (dtypes,) = reasons(GridLSTM(["a"], 3), on_cuda, torch.float64)[1:]
    assert dtypes.endswith("not torch.float32 with products in torch.float64")
    monkeypatch.setattr(triton_backend, "find_spec", lambda name: None)
    (missing,) = reasons(GridLSTM(["a"], 3), on_cuda)[1:]
    assert missing == "it is not installed: pip install 'gridlstm[triton]'"
