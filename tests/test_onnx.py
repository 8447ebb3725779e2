"""Networks as ONNX files: equal to PyTorch in onnxruntime, for sizes that were not recorded.

What needs onnxruntime is skipped without it; ``make test-extras`` installs it.
"""

import json
import re
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gridlstm import (
    Cell,
    DeepGridLSTM,
    Dim,
    FeedForward,
    GridLSTM,
    ImageGridLSTM,
    SequenceGridLSTM,
    StackedLSTM,
    State,
    load,
)
from gridlstm.export import (
    ExportError,
    Input,
    Interface,
    interface_of,
    largest_difference,
    to_onnx,
    use_scan,
)
from gridlstm.hub import save_pretrained
from gridlstm.models.character_model import CharacterModel

from .test_load import make_run

ROOT = Path(__file__).parent.parent
needs_onnx = pytest.mark.skipif(
    find_spec("onnxruntime") is None, reason="needs onnxruntime: make test-extras installs it"
)


class Leaky(Cell):
    name, reads_hidden = "leaky", True

    def forward(self, preactivation: Tensor, old: State, peephole: Tensor | None) -> State:
        return State(0.9 * old.hidden + 0.1 * preactivation.tanh())


class Deciding(Leaky):
    name = "deciding"

    def forward(self, preactivation: Tensor, old: State, peephole: Tensor | None) -> State:
        return State(preactivation if float(preactivation.sum()) > 0 else old.hidden)


def randomised(module: nn.Module) -> nn.Module:
    """Without biases and peepholes of zero, which would hide that they are exchanged."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.eval()


DIMS = [
    Dim("time", "gru", reverse=True),
    Dim("row", "peephole", 2, tied=False, priority=True, hidden_size=3),
    Dim("depth", torch.sigmoid),
]
UNTIED = [Dim("time"), Dim("depth", size=3, tied=False, reverse=True)]
CASES: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "sequence": (partial(SequenceGridLSTM, 5, 4, 3), {}),
    "sequence with everything": (
        partial(
            SequenceGridLSTM, 5, 4, 2, batch_first=True, bidirectional=True, readout="both",
            output="standard", dropout=0.5, engine="reference",
        ),
        {"state": True, "lengths": True},
    ),
    "own cell, shared readout of a wider depth": (
        partial(SequenceGridLSTM, 5, 4, 2, depth=Leaky(), depth_size=6, reverse=True), {}
    ),
    "step": (
        partial(SequenceGridLSTM, 5, 4, 3, tied=False, depth="gru", priority=True, bias=False),
        {"step": True},
    ),
    "shared, double": (partial(SequenceGridLSTM, 5, 4, 2, shared=True, dtype=torch.float64), {}),
    "deep": (partial(DeepGridLSTM, 5, 4, 3), {}),
    "untied deep": (partial(DeepGridLSTM, 5, 4, 3, tied=False, readout="both"), {}),
    "image": (partial(ImageGridLSTM, (4, 6), 4, 1, relu_size=3, channels=2), {}),
    "backbone": (partial(ImageGridLSTM, 4, 4, 3, num_classes=None, tied=True, depth="relu"), {}),
    "grid of one dimension": (partial(GridLSTM, [Dim("depth", "peephole", size=3)], 4), {}),
    "grid of two dimensions": (partial(GridLSTM, UNTIED, 4), {"lengths": True}),
    "grid of three dimensions": (partial(GridLSTM, DIMS, 4), {}),
}  # fmt: skip


STATE = {"hidden": (3, "batch", 4), "memory": (3, "batch", 4)}
NEW_STATE = {f"new_{name}": shape for name, shape in STATE.items()}
SHAPES: dict[str, dict[str, tuple[int | str, ...]]] = {
    "sequence": {"x": ("time", "batch", 5), "output": ("time", "batch", 4), **NEW_STATE},
    "sequence with everything": {
        "x": ("batch", "time", 5), "lengths": ("batch",), "output": ("batch", "time", 16),
        "hidden": (4, "batch", 4),
    },
    "step": {"x": ("batch", 5), "output": ("batch", 4), **STATE, **NEW_STATE},
    "backbone": {
        "images": ("batch", 1, "2*rows", "2*columns"), "features": ("batch", "rows", "columns", 4)
    },
    "grid of three dimensions": {
        "row_memory": ("batch", "time", "depth", 3), "new_depth_hidden": ("batch", "time", 2, 4)
    },
}  # fmt: skip
"""Some of the inputs and outputs."""


@needs_onnx
@pytest.mark.parametrize("name", CASES)
def test_a_file_equals_its_module(name: str, tmp_path: Path) -> None:
    make, options = CASES[name]
    module = randomised(make())
    exported = to_onnx(module, tmp_path / "new" / "net.onnx", **options)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["net.onnx"]
    assert exported.bytes == exported.path.stat().st_size
    shapes = {port.name: port.shape for port in (*exported.inputs, *exported.outputs)}
    assert shapes.items() >= SHAPES.get(name, {}).items()
    axes = exported.interface.axes
    sizes = [dict(zip(axes, lengths, strict=False)) for lengths in ((1, 1, 1), (4, 11, 2), (9, 2, 5))]
    difference = largest_difference(exported, module, *sizes)
    assert difference < (1e-12 if "double" in name else 3e-6)
    with torch.no_grad():  # That it can be different at all:
        next(iter(module.parameters())).add_(0.1)
    assert largest_difference(exported, module, *sizes[1:]) > 1e-3
    with torch.no_grad():
        next(iter(module.parameters())).fill_(torch.nan)
    assert isnan(largest_difference(exported, module, *sizes[1:]))


@needs_onnx
def test_the_graph_does_not_grow_with_the_grid(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")

    def operators(layers: int) -> list[str]:
        to_onnx(DeepGridLSTM(5, 4, layers), tmp_path / "net.onnx")
        return [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node]

    few = operators(3)
    assert few == operators(30)
    assert few.count("Scan") == 1


def session(path: Path) -> Any:
    return pytest.importorskip("onnxruntime").InferenceSession(path)


@needs_onnx
def test_characters_are_streamed(gridlstm, tmp_path: Path) -> None:
    """One character at a time in onnxruntime, against all at once in PyTorch."""
    path = tmp_path / "step.onnx"
    code, out, err = gridlstm("export", "characters", "--step", "--out", path)
    assert (code, err) == (0, "")
    printed = json.loads(out)
    assert printed["file"] == str(path)
    assert printed["bytes"] == path.stat().st_size
    assert printed["largest_difference"] < 2e-5
    state = ["float32", [4, "batch", 128]]
    assert printed["inputs"] == {"symbols": ["int64", ["batch"]], "hidden": state, "memory": state}
    net, model = session(path), load("characters")
    alphabet = bytes(json.loads(net.get_modelmeta().custom_metadata_map["alphabet"]))
    assert alphabet == bytes(model.alphabet.tolist())
    symbols = torch.tensor([[alphabet.index(c) for c in b"ROMEO:\nBut soft!"]])
    with torch.no_grad():
        expected, end = model(symbols)
    hidden = memory = torch.zeros(4, 1, 128).numpy()
    for t in range(symbols.shape[1]):
        inputs = {"symbols": symbols[:, t].numpy(), "hidden": hidden, "memory": memory}
        scores, hidden, memory = net.run(None, inputs)
        torch.testing.assert_close(torch.from_numpy(scores), expected[:, t], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.from_numpy(memory), end.memory, rtol=1e-4, atol=1e-4)


class Tagger(nn.Module):
    """A network of a user: a grid between an embedding and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 8)
        self.grid = GridLSTM(["time", Dim("depth", size=2)], 4)
        self.tags = nn.Linear(4, 3)

    def forward(self, words: Tensor) -> Mapping[str, Tensor]:
        out = self.grid({"depth": State(*self.words(words).chunk(2, -1))})
        return {"tags": self.tags(out["depth"].hidden)}


TAGGER = Interface([Input("words", ("batch", "time"), most=9)], ["tags"], metadata={"tags": "NVA"})


@needs_onnx
def test_own_modules_and_that_nothing_says_where_they_were_made(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    module = randomised(Tagger())
    exported = to_onnx(module, tmp_path / "tagger.onnx", interface=TAGGER)
    assert [(p.name, p.dtype, p.shape) for p in exported.outputs] == [
        ("tags", "float32", ("batch", "time", 3))
    ]
    assert largest_difference(exported, module) < 1e-6
    content = exported.path.read_bytes()
    host = [socket.gethostname()] if len(socket.gethostname()) > 4 else []  # Others may be in it.
    places = [str(ROOT), str(Path.home()), sys.prefix, str(tmp_path), "site-packages", ".py", *host]
    for word in (*places, "torch", "File ", "Traceback", "class_hierarchy", "gridlstm."):
        assert word.encode() not in content, word
    proto = onnx.load(exported.path)
    assert {entry.key: entry.value for entry in proto.metadata_props} == {"tags": "NVA"}
    assert (proto.producer_name, proto.doc_string, proto.domain) == ("gridlstm", "", "")
    proto.ClearField("metadata_props")
    assert "metadata_props" not in str(proto)
    assert "doc_string" not in str(proto)
    onnx.checker.check_model(proto, full_check=True)


def test_recorded_without_onnx() -> None:
    """``torch.export`` of nested scans; the module itself is unchanged."""
    net = randomised(SequenceGridLSTM(5, 4, 3, tied=False, bidirectional=True)).train()
    time, batch = torch.export.Dim("time"), torch.export.Dim("batch")
    x = torch.randn(4, 3, 5)
    lengths = torch.tensor([4, 0, 2])
    program = torch.export.export(
        use_scan(net),
        (x,),
        {"lengths": lengths},
        dynamic_shapes={"x": {0: time, 1: batch}, "lengths": {0: batch}},
        strict=False,
    )
    assert net.training
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert "forward" not in vars(net.grid)
    longer = torch.randn(7, 5, 5)
    lengths = torch.tensor([7, 1, 0, 3, 6])
    actual, expected = program.module()(longer, lengths=lengths), net.eval()(longer, lengths=lengths)
    torch.testing.assert_close(actual, expected)


def refused(module: Any, tmp_path: Path, **options: Any) -> str:
    path = tmp_path / "net.onnx"
    path.write_text("an older file")
    with pytest.raises(ExportError) as error:
        to_onnx(module, path, **options)
    assert error.value.__suppress_context__ or error.value.__context__ is None  # No foreign stack.
    assert [file.name for file in tmp_path.iterdir()] == ["net.onnx"]
    assert path.read_text() == "an older file"
    return str(error.value)


def test_options_that_do_not_apply() -> None:
    def message(module: nn.Module, **options: bool) -> str:
        with pytest.raises(ExportError) as error:
            interface_of(module, **options)
        return str(error.value)

    sequence, characters = SequenceGridLSTM(3, 4), CharacterModel(b"abc", SequenceGridLSTM(3, 4))
    assert message(DeepGridLSTM(5, 4, 2), step=True) == "step: does not apply to DeepGridLSTM"
    assert message(ImageGridLSTM(4, 4), lengths=True) == "lengths: does not apply to ImageGridLSTM"
    assert message(GridLSTM(["time"], 4), state=True) == "state: does not apply to GridLSTM"
    assert message(characters, lengths=True) == "lengths: does not apply to CharacterModel"
    assert message(sequence, step=True, lengths=True) == "lengths: cannot be combined with step"
    forwards = "step: expected a network that travels forwards, got one that starts at the end"
    assert message(SequenceGridLSTM(5, 4, reverse=True), step=True) == forwards
    assert message(SequenceGridLSTM(5, 4, bidirectional=True), step=True) == forwards
    assert message(nn.Linear(2, 2)) == (
        "Linear cannot be exported without an interface: expected a network of gridlstm, or the "
        "argument interface"
    )
    assert message(load("translation")) == (
        "TextTranslator cannot be exported: its beam search is not part of the graph of a network"
    )


@needs_onnx
def test_modules_that_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Mine(GridLSTM):
        def forward(self, sides: Any, **options: Any) -> Any:
            return super().forward(sides, **options)

    class Tracing(Tagger):
        def forward(self, words: Tensor) -> Any:
            return self.grid({"depth": State(*self.words(words).chunk(2, -1))}, trace=True)

    cannot = " cannot be exported: "
    assert refused(Mine(["time"], 4), tmp_path) == f"Mine{cannot}its forward is not that of GridLSTM"
    deciding = refused(SequenceGridLSTM(5, 4, 2, depth=Deciding()), tmp_path)
    assert re.match(f"SequenceGridLSTM{cannot}PyTorch cannot record it .Could not guard on", deciding)
    assert "\n" not in deciding
    stacked = CharacterModel(b"abc", StackedLSTM(3, 4, batch_first=True))
    expected = f"CharacterModel{cannot}its graph would fit only one length of time"
    assert refused(stacked, tmp_path) == expected
    assert refused(Tracing(), tmp_path, interface=TAGGER) == (
        "a call of GridLSTM with trace=True cannot be exported"
    )
    two = Interface([Input("x", ("batch", 5))], ["output", "another"])
    assert refused(DeepGridLSTM(5, 4, 2), tmp_path, interface=two) == (
        "interface: expected the names of 1 outputs, got 2"
    )
    dtype = "module: expected parameters of dtype float32 or float64, got "
    assert refused(DeepGridLSTM(5, 4, 2).bfloat16(), tmp_path) == f"{dtype}torch.bfloat16"
    assert refused(nn.ReLU(), tmp_path) == f"{dtype}none"
    with pytest.raises(TypeError, match=r"^module: expected a torch.nn.Module, got dict$"):
        to_onnx({}, tmp_path / "net.onnx")  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "")  # Not a word of PyTorch's.


def test_missing_packages(gridlstm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridlstm.export.onnx_file.find_spec", lambda name: None)
    message = "gridlstm.export needs packages that are not installed: pip install 'gridlstm[onnx]'"
    with pytest.raises(ImportError) as error:
        to_onnx(DeepGridLSTM(5, 4, 2), tmp_path / "net.onnx")
    assert str(error.value) == message
    make_run(tmp_path / "run", "parity")
    assert gridlstm("export", tmp_path / "run") == (2, "", f"gridlstm export: {message}\n")


@needs_onnx
@pytest.mark.parametrize(
    ("name", "metadata"),
    [("memorization", {"symbols": '["-", "1", "2'}), ("parity", {}), ("images", {})],
)
def test_runs(name: str, metadata: dict[str, str], gridlstm, tmp_path: Path, monkeypatch) -> None:
    make_run(tmp_path / "run", name)
    monkeypatch.chdir(tmp_path)
    code, out, err = gridlstm("export", "run")
    assert (code, err) == (0, "")
    assert json.loads(out)["largest_difference"] < 1e-5
    stored = session(tmp_path / "run.onnx").get_modelmeta().custom_metadata_map
    assert {key: text[: len(metadata[key])] for key, text in stored.items()} == metadata


@needs_onnx
def test_modules_in_files_and_folders(gridlstm, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_pretrained(DeepGridLSTM(5, 4, 2), tmp_path / "saved")
    code, out, _ = gridlstm("export", "saved", "--out", "a.onnx")
    assert (code, json.loads(out)["inputs"]) == (0, {"x": ["float32", ["batch", 5]]})
    source = "from gridlstm import DeepGridLSTM\ndef make():\n    return DeepGridLSTM(3, 4, 2)\n"
    (tmp_path / "networks.py").write_text(f"{source}net = make()\nnumber = 3\n")
    for where in ("networks:make", "networks:net"):
        code, out, err = gridlstm("export", "--module", where, "--out", "b.onnx")
        assert (code, err) == (0, "")
        assert json.loads(out)["inputs"] == {"x": ["float32", ["batch", 3]]}
    differs = "gridlstm.commands.export_network.largest_difference"
    monkeypatch.setattr(differs, lambda *_: float("nan"))
    expected = "gridlstm export: b.onnx: onnxruntime differs from PyTorch by nan\n"
    assert gridlstm("export", "saved", "--out", "b.onnx") == (1, "", expected)


def test_wrong_arguments(gridlstm, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers_only.py").write_text("number = 3\n")

    def error(*arguments: object) -> str:
        code, out, err = gridlstm("export", *arguments)
        assert (code, out) == (2, "")
        return re.sub(r"^gridlstm( export)?: ", "", err).rstrip("\n")

    assert error() == "RUN: expected either a run or --module, got neither"
    assert error("characters", "--module", "a:b") == "RUN: expected either a run or --module, got both"
    expected = "module: expected package.module:name of a torch.nn.Module, got "
    assert error("--module", "numbers_only") == f"{expected}'numbers_only'"
    assert error("--module", "numbers_only:number") == f"{expected}numbers_only:number of type int"
    assert error("--module", "nowhere:net") == "module: No module named 'nowhere'"
    assert "has no attribute 'net'" in error("--module", "numbers_only:net")
    assert "expected a run directory or one of characters, images" in error("nothing")
    if find_spec("onnx") is not None:
        assert "its beam search is not part of the graph" in error("translation")
        assert error("images", "--step") == "step: does not apply to ImageGridLSTM"


def test_random_inputs_are_as_described() -> None:
    interface = Interface([Input("x", ("batch", "2*rows", 5)), Input("n", ("batch",), most="rows")], [])
    x, n = interface.draw(FeedForward(5, 4, 1).double(), {"batch": 100, "rows": 3})
    assert (x.shape, x.dtype) == ((100, 6, 5), torch.float64)
    assert sorted({*n.tolist()}) == [0, 1, 2, 3]
    assert interface.axes == ["batch", "rows"]
