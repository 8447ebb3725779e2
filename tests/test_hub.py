"""Modules in folders and on the Hugging Face Hub, which a folder stands for here."""

import inspect
import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from gridlstm import DeepGridLSTM, Dim, GridLSTM, ImageGridLSTM, SequenceGridLSTM, StackedLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.hub import (
    CLASSES,
    NOT_SAVED,
    HubError,
    arguments_of,
    from_pretrained,
    push_to_hub,
    save_pretrained,
)
from gridlstm.training.weights import WeightsError

OPTIONS: dict[str, Any] = {
    "output": "standard", "forget_bias": 2.5, "dropout": 0.25, "engine": "reference", "recompute": True,
    "layer_norm": True, "dropout_tied": ["depth"], "dropout_between": ["depth"],
    "zoneout": {"depth": (0.1, 0.5)},
}  # fmt: skip
DIMS = [Dim("time", "gru", reverse=True), Dim("row", "peephole", 2, tied=False), Dim("depth", "relu")]
MODULES: dict[str, Callable[..., nn.Module]] = {
    "grid": partial(GridLSTM, ["time", Dim("depth", size=2, priority=True)], 4),
    "grid with options": partial(GridLSTM, [*DIMS, Dim("wide", hidden_size=6)], 4, **OPTIONS),
    "grid with lists": partial(GridLSTM, ["a", "b"], 4, layer_norm=["b"], zoneout=(0.25, 0.0)),
    "grid without a size": partial(GridLSTM, [Dim("time", hidden_size=3)], bias=False),
    "sequence": partial(SequenceGridLSTM, 5, 4),
    "sequence with options": partial(
        SequenceGridLSTM, 5, 4, 3, tied=False, depth="gru", priority=True, depth_size=6, readout="both",
        batch_first=True, reverse=True, **OPTIONS,
    ),
    "shared sequence": partial(SequenceGridLSTM, 5, 4, 3, shared=True, bias=False),
    "deep": partial(DeepGridLSTM, 5, 4, 3),
    "deep with options": partial(DeepGridLSTM, 5, 4, 3, tied=False, readout="both", **OPTIONS),
    "image": partial(ImageGridLSTM, 4, 4, 2, relu_size=3),
    "image with options": partial(
        ImageGridLSTM, (4, 8), 4, 5, channels=3, num_classes=7, patch_size=4, depth="relu", tied=True,
        relu_size=3, **OPTIONS,
    ),
    "backbone": partial(ImageGridLSTM, 4, 4, 2, num_classes=None),
}  # fmt: skip


def run(module: nn.Module) -> torch.Tensor:
    like = next(module.parameters())
    torch.manual_seed(1)
    if isinstance(module, ImageGridLSTM):
        return module(torch.randn(2, module.channels, *module.image_size).to(like))
    output = module(torch.randn(3, 2, 5).to(like))
    return output[0] if isinstance(output, tuple) else output


@pytest.mark.parametrize("name", MODULES)
def test_a_module_survives_a_folder(name: str, tmp_path: Path) -> None:
    module = MODULES[name]().eval()
    save_pretrained(module, tmp_path / "new" / "folder")
    loaded = from_pretrained(tmp_path / "new" / "folder")
    assert type(loaded) is type(module)
    assert not loaded.training
    assert arguments_of(loaded) == arguments_of(module)
    assert repr(loaded) == repr(module)
    weights = loaded.state_dict()
    assert weights.keys() == module.state_dict().keys()
    assert all(torch.equal(weights[key], value) for key, value in module.state_dict().items())
    assert len(list(loaded.parameters())) == len(list(module.parameters()))  # Tied ones stay tied.


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("grid")])
def test_outputs_are_the_same(name: str, tmp_path: Path) -> None:
    module = MODULES[name]().eval()
    save_pretrained(module, tmp_path)
    assert torch.equal(run(from_pretrained(tmp_path)), run(module))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["grid", "sequence", "deep", "image"])
def test_the_dtype_is_kept(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    """Also if it was changed after construction, and whatever the default is."""
    module = MODULES[name]().to(dtype)
    save_pretrained(module, str(tmp_path))
    loaded = from_pretrained(str(tmp_path))
    assert {parameter.dtype for parameter in loaded.parameters()} == {dtype}
    for a, b in zip(loaded.parameters(), module.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_every_argument_is_saved(kind: type[nn.Module]) -> None:
    """An argument that is new has to be an attribute, or part of ``_derived``."""
    module = next(made for made in (make() for make in MODULES.values()) if type(made) is kind)
    names = {*inspect.signature(kind).parameters}
    names |= {*GridOptions.__annotations__} if "options" in names else set()
    assert arguments_of(module).keys() == names - {*NOT_SAVED}


def test_what_changed_later_is_saved(tmp_path: Path) -> None:
    module = SequenceGridLSTM(5, 4)
    module.grid.dropout = 0.5
    save_pretrained(module, tmp_path)
    assert from_pretrained(tmp_path).grid.dropout == 0.5


def test_modules_that_cannot_be_saved(tmp_path: Path) -> None:
    def refused(module: nn.Module) -> str:
        with pytest.raises(TypeError) as error:
            save_pretrained(module, tmp_path / "folder")
        assert not (tmp_path / "folder").exists()
        return str(error.value)

    class Mine(SequenceGridLSTM):
        pass

    names = "GridLSTM, SequenceGridLSTM, DeepGridLSTM, ImageGridLSTM"
    assert refused(Mine(5, 4)) == f"module: expected one of {names}, got Mine"
    assert refused(StackedLSTM(5, 4)) == f"module: expected one of {names}, got StackedLSTM"
    expected = "expected a name or a number, which can be saved, got "
    assert refused(SequenceGridLSTM(5, 4, depth=torch.sigmoid)).startswith(f"depth: {expected}")
    assert refused(GridLSTM([Dim("a", torch.sigmoid)], 4)).startswith(
        f'dims: dimension "a": transform: {expected}'
    )
    mixed = SequenceGridLSTM(5, 4)
    mixed.projection.double()
    assert (
        refused(mixed) == "module: expected parameters of one dtype, got torch.float32, torch.float64"
    )


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"format": "other"}, "expected a 'gridlstm module 1', got something else"),
        ({"class": "Linear"}, "class: expected one of GridLSTM, .*, got 'Linear'"),
        ({"class": ["GridLSTM"]}, "class: expected one of GridLSTM, .*"),
        ({"arguments": [1]}, r"arguments: expected an object, got \[1\]"),
        ({"arguments": {}}, ".*missing.*"),
        ({"arguments": {"input_size": 5, "hidden_size": -1}}, "hidden_size: .*"),
        ({"arguments": {"input_size": 5, "hidden_size": 4, "x": 1}}, ".*argument x is unknown.*"),
        ({"arguments": {"input_size": 5, "hidden_size": {"x": 1}}}, "hidden_size: expected an int.*"),
        ({"class": "GridLSTM", "arguments": {"dims": [{"x": 1}]}}, ".*unexpected keyword.*"),
        ({"dtype": "load"}, "dtype: expected the name of a dtype, got 'load'"),
        ({"dtype": "int64"}, "dtype: expected a floating torch.dtype, got torch.int64"),
    ],
)
def test_folders_that_cannot_be_loaded(changed: dict[str, Any], line: str, tmp_path: Path) -> None:
    save_pretrained(SequenceGridLSTM(5, 4), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changed}))
    with pytest.raises(HubError, match=f"config.json: {line}$"):
        from_pretrained(tmp_path)


def test_damaged_folders(tmp_path: Path) -> None:
    with pytest.raises(HubError, match="No such file"):
        from_pretrained(tmp_path)
    save_pretrained(SequenceGridLSTM(5, 4), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    # As large as no machine is: refused before memory is allocated.
    config["arguments"] |= {"hidden_size": 10**7, "depth_size": 10**7}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError, match=r"expected F32 \["):
        from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(HubError):
        from_pretrained(tmp_path)
    save_pretrained(SequenceGridLSTM(5, 4), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(WeightsError):
        from_pretrained(tmp_path)


def test_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pushed is what is loaded; the calls are those that huggingface_hub documents."""
    calls: list[tuple[str, object]] = []

    def create_repo(repo_id: str, *, private: bool | None, exist_ok: bool) -> None:
        calls.append((repo_id, private))
        (tmp_path / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(*, repo_id: str, folder_path: str, commit_message: str) -> None:
        calls.append((repo_id, commit_message))
        shutil.copytree(folder_path, tmp_path / repo_id, dirs_exist_ok=True)

    def snapshot_download(repo_id: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        calls.append((revision or "", allow_patterns))
        return str(tmp_path / repo_id)

    fake = SimpleNamespace(
        create_repo=create_repo, upload_folder=upload_folder, snapshot_download=snapshot_download
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    module = SequenceGridLSTM(5, 4, 3).double()
    push_to_hub(module, "me/net", private=True)
    push_to_hub(module, "me/net", message="again")
    loaded = from_pretrained("me/net", revision="v1")
    assert torch.equal(run(loaded), run(module.eval()))
    assert calls == [
        ("me/net", True), ("me/net", "Upload a module of gridlstm"), ("me/net", None),
        ("me/net", "again"), ("v1", ["config.json", "model.safetensors"]),
    ]  # fmt: skip


def test_the_calls_are_those_of_the_package() -> None:
    hub = pytest.importorskip("huggingface_hub")
    inspect.signature(hub.create_repo).bind("me/net", private=None, exist_ok=True)
    inspect.signature(hub.upload_folder).bind(repo_id="me/net", folder_path="x", commit_message="m")
    inspect.signature(hub.snapshot_download).bind("me/net", revision=None, allow_patterns=["x"])


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError) as error:
        from_pretrained("me/net")
    install = "needs a package that is not installed: pip install 'gridlstm[hub]'"
    assert str(error.value) == f"me/net: not a folder; downloading it {install}"
    with pytest.raises(ImportError) as error:
        push_to_hub(SequenceGridLSTM(5, 4), "me/net")
    assert str(error.value) == f"gridlstm.hub.push_to_hub {install}"
    save_pretrained(SequenceGridLSTM(5, 4), tmp_path)  # A folder does not need it.
    from_pretrained(tmp_path)
