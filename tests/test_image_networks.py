"""Networks on images: against the appendix in NumPy and PyTorch's own modules; their arguments."""

import copy
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from gridlstm import (
    ConvolutionalNetwork,
    ImageGridLSTM,
    ImageMultidimensionalLSTM,
    MultidimensionalLSTM,
    ReNet,
    State,
)
from gridlstm.experiments.images.data import ImageSet
from gridlstm.experiments.images.options import PRESETS
from gridlstm.experiments.images.problem import as_input, classify, make_network
from gridlstm.experiments.registry import EXPERIMENTS, from_flat
from gridlstm.models.image_network import CORNERS, ImageNetwork
from gridlstm.training.weights import load_weights

from .numpy_grid import Array, Pair, Weights, block

FAMILIES = [ImageGridLSTM, ImageMultidimensionalLSTM, ReNet, ConvolutionalNetwork]
STARTS = [("top", "left"), ("top", "right"), ("bottom", "right"), ("bottom", "left")]


def make(family: type[ImageNetwork], **changed: object) -> ImageNetwork:
    """A small network of 2 layers on images of 8 × 12 with 3 channels, and 4 classes."""
    sizes = {"channels": 3, "num_classes": 4, "relu_size": 5, "dtype": torch.float64}
    return family((8, 12), 6, 2, **{**sizes, **changed})  # type: ignore[arg-type]


def some_images(batch: int = 2) -> torch.Tensor:
    return torch.rand(batch, 3, 8, 12, dtype=torch.float64)


def linear(layer: nn.Linear, x: Array) -> Array:
    return layer.weight.detach().numpy() @ x + layer.bias.detach().numpy()


def appendix(net: ImageGridLSTM, image: Array) -> tuple[list[Array], Array]:
    """Figure 11 for one image, patch by patch: what leaves each layer along depth, and the scores."""
    p, d = net.patch_size, net.hidden_size
    rows, columns = image.shape[1] // p, image.shape[2] // p
    cells = net.projection.memory
    along_depth: dict[tuple[int, int], Pair] = {}
    for r in range(rows):
        for c in range(columns):
            patch = image[:, r * p : (r + 1) * p, c * p : (c + 1) * p].reshape(-1)
            projected = linear(net.projection.linear, patch)
            along_depth[r, c] = (projected[:d], projected[d:])
    maps = []
    for k, grid in enumerate(net.stack.layers):
        down, right = STARTS[k % 4]
        weights = [
            Weights(
                zip(
                    ("weight", "bias"), (t.detach().numpy() for t in grid.weights_of(name)), strict=True
                )
            )
            for name in ("row", "column", "depth")
        ]
        zero = (np.zeros(d), np.zeros(d))
        along_rows, along_columns = [zero] * columns, [zero] * rows
        for r in range(rows) if down == "top" else reversed(range(rows)):
            for c in range(columns) if right == "left" else reversed(range(columns)):
                arriving = [along_rows[c], along_columns[r], along_depth[r, c]]
                along_rows[c], along_columns[r], along_depth[r, c] = block(grid, weights, arriving)
        layer = [
            [
                np.concatenate(along_depth[r, c] if cells else along_depth[r, c][:1])
                for c in range(columns)
            ]
            for r in range(rows)
        ]
        maps.append(np.array(layer))
    active = np.maximum(linear(net.relu, maps[-1].reshape(-1)), 0)
    return maps, linear(net.scores, active)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("depth", ["lstm", "relu"])
def test_equals_the_appendix(depth: str, tied: bool) -> None:
    """Five layers, so that the first corner comes again; more columns than rows."""
    net = ImageGridLSTM(
        (6, 9), 4, 5, channels=2, num_classes=3, patch_size=3, depth=depth, tied=tied, relu_size=7,
        dtype=torch.float64,
    )  # fmt: skip
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    images = torch.rand(2, 2, 6, 9, dtype=torch.float64)
    scores, maps = net(images), net.layers(images)
    for b in range(2):
        layers, expected = appendix(net, images[b].numpy())
        np.testing.assert_allclose(scores[b].detach(), expected, rtol=1e-9, atol=1e-11)
        for layer, state in zip(layers, maps, strict=True):
            vectors = state.hidden if state.memory is None else torch.cat(state, -1)
            np.testing.assert_allclose(vectors[b].detach(), layer, rtol=1e-9, atol=1e-11)
    assert (maps[0].memory is None) == (depth == "relu")


def test_tied_layers_are_untied_ones_with_the_same_weights() -> None:
    tied, untied = (make(ImageGridLSTM, tied=tied, patch_size=4) for tied in (True, False))
    untied.load_state_dict(tied.state_dict())
    images = some_images()
    torch.testing.assert_close(tied(images), untied(images))
    tied(images).sum().backward()
    untied(images).sum().backward()
    together = [g.weight_row.grad for g in untied.stack.layers]
    torch.testing.assert_close(tied.stack.layers[1].weight_row.grad, sum(together))
    one_layer = sum(p.numel() for p in untied.stack.layers[0].parameters())
    assert sum(p.numel() for p in untied.parameters()) - one_layer == sum(
        p.numel() for p in tied.parameters()
    )
    again = copy.deepcopy(tied)
    assert again.stack.layers[0].weight_row is again.stack.layers[1].weight_row


@pytest.mark.parametrize(
    ("depth", "patch", "relu", "side", "projected", "read"),
    [("lstm", 2, 4096, 28, 200, 200), ("relu", 3, 2048, 27, 100, 100)],
)
def test_networks_have_the_sizes_of_the_paper(
    depth: str, patch: int, relu: int, side: int, projected: int, read: int
) -> None:
    net = ImageGridLSTM(side, 100, 4, patch_size=patch, depth=depth, relu_size=relu, device="meta")
    along_depth = 100 * (4 if depth == "lstm" else 1)
    layer = (400 + 400 + along_depth) * (300 + 1)
    features = (side // patch) ** 2 * read
    expected = projected * (patch**2 + 1) + 4 * layer + relu * (features + 1) + 10 * (relu + 1)
    assert sum(p.numel() for p in net.parameters()) == expected


def test_the_multidimensional_layers_are_one_stack() -> None:
    net = make(ImageMultidimensionalLSTM, patch_size=2)
    stack = MultidimensionalLSTM(
        12, 6, 2, num_layers=2, directions=CORNERS[:2], dtype=torch.float64, forget_bias=0.0
    )
    for layer, sweep in zip(stack.layers, net.sweeps, strict=True):
        layer.load_state_dict(sweep.layers[0].state_dict())
    images = some_images()
    patches = images.view(2, 3, 4, 2, 6, 2).permute(0, 2, 4, 1, 3, 5).reshape(2, 4, 6, 12)
    torch.testing.assert_close(net.features(images), stack(patches).hidden)


def test_memories_of_the_multidimensional_network_do_not_grow_across_an_image() -> None:
    """What the default of its forget bias is for: a quarter of each of two memories is kept."""
    grown = []
    for forget_bias in (-1.0, 1.0):
        net = ImageMultidimensionalLSTM(28, 32, 1, relu_size=2, forget_bias=forget_bias)
        patches = torch.rand(4, 14, 14, 4)
        grown.append(net.sweeps[0](patches).memory[:, -1, -1].abs().mean().item())
    assert grown[0] < 1 < 1000 < grown[1]


@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_renet_runs_along_columns_and_then_rows(unit: str) -> None:
    """Column by column and row by row, one image at a time."""
    net = make(ReNet, unit=unit)
    images = some_images()
    maps = net.layers(images)
    for b in range(2):
        below = images[b]
        for k, shown in enumerate(maps):
            rows, columns = below.shape[1] // 2, below.shape[2] // 2
            vertical = torch.stack(
                [
                    net.down[k](
                        torch.stack(
                            [
                                below[:, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2].reshape(-1)
                                for r in range(rows)
                            ]
                        )
                    )[0]
                    for c in range(columns)
                ],
                1,
            )
            horizontal = torch.stack([net.across[k](vertical[r])[0] for r in range(rows)])
            torch.testing.assert_close(shown.hidden[b], horizontal)
            below = horizontal.permute(2, 0, 1)


def test_the_convolutional_network_is_a_sequence_of_torch() -> None:
    net = make(ConvolutionalNetwork)
    images = some_images()
    first, second = net.convolutions
    assert [c.weight.shape for c in (first[0], first[2], second[0], second[2])] == [
        (6, 3, 3, 3), (6, 6, 3, 3), (12, 6, 3, 3), (12, 12, 3, 3),
    ]  # fmt: skip
    x = images
    for layer in (first, second):
        x = nn.functional.max_pool2d(layer[2](layer[0](x).relu()).relu(), 2)
    torch.testing.assert_close(net.features(images), x.permute(0, 2, 3, 1))


@pytest.mark.parametrize("family", FAMILIES)
def test_all_families_have_one_interface(family: type[ImageNetwork]) -> None:
    net, images = make(family), some_images(3)
    features = net.features(images)
    rows, columns = 8 // net.scale, 12 // net.scale
    assert features.shape == (3, rows, columns, net.feature_size)
    scores = net.scores(net.relu(features.flatten(1)).relu())
    torch.testing.assert_close(net(images), scores)
    assert scores.shape == (3, 4)
    # Samples are independent of each other.
    torch.testing.assert_close(net(images[1:2]), scores[1:2])
    maps = net.layers(images)
    assert len(maps) == 2
    assert all(isinstance(state, State) for state in maps)
    last = maps[-1].hidden
    torch.testing.assert_close(features[..., : last.shape[-1]], last)
    # A backbone reads images of any size that the patches divide, the classifier only its own.
    larger = torch.rand(1, 3, 16, 20, dtype=torch.float64)
    assert net.features(larger).shape[1:3] == (16 // net.scale, 20 // net.scale)
    with pytest.raises(ValueError, match=r"images: expected \[batch, 3, 8, 12\], got \[1, 3, 16, 20\]"):
        net(larger)
    net(images).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in net.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_backbone_has_no_classifier(family: type[ImageNetwork]) -> None:
    backbone, whole = make(family, num_classes=None), make(family)
    body = {k: v for k, v in whole.state_dict().items() if not k.startswith(("relu.", "scores."))}
    backbone.load_state_dict(body)
    images = some_images(3)
    torch.testing.assert_close(backbone(images), whole.features(images))
    assert torch.equal(backbone(images), backbone.features(images))
    backbone(images).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in backbone.parameters())
    larger = torch.rand(1, 3, 16, 20, dtype=torch.float64)
    rows_and_columns = (16 // backbone.scale, 20 // backbone.scale)
    assert backbone(larger).shape == (1, *rows_and_columns, backbone.feature_size)
    with pytest.raises(ValueError, match=r"images: expected \[batch, 3, height, width\]"):
        backbone(images[:, :1])
    assert repr(copy.deepcopy(backbone)) == repr(backbone)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_classifier_has_128_units(family: type[ImageNetwork]) -> None:
    assert family(28).relu.out_features == 128


def test_the_network_that_comes_with_the_package_loads() -> None:
    """With its classifier, and as a backbone without."""
    place = Path(str(files("gridlstm"))) / "embedded" / "images"
    options = json.loads((place / "config.json").read_text())["options"]
    experiment = from_flat(EXPERIMENTS["images"], options)
    network = make_network(experiment)
    load_weights(network, place / "model.safetensors")
    images, labels = ImageSet.sample().test.part(None, 200)
    assert (classify(network, images, experiment).argmax(1) == labels).mean() > 0.95
    sizes = (experiment.side, experiment.hidden, experiment.layers)
    backbone = ImageGridLSTM(*sizes, patch_size=experiment.patch, num_classes=None)
    lost = backbone.load_state_dict(load_file(place / "model.safetensors"), strict=False)
    assert not lost.missing_keys
    assert {key.split(".")[0] for key in lost.unexpected_keys} == {"relu", "scores"}
    some = as_input(images[:5], experiment)
    torch.testing.assert_close(backbone(some), network.features(some))


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_say_how_large_their_classifier_is(preset: str) -> None:
    with torch.device("meta"):
        network = make_network(PRESETS[preset])
    assert (
        network.relu.out_features
        == PRESETS[preset].relu
        == {"smoke": 32, "small": 256, "laptop": 512, "paper": 4096}[preset]
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16(family: type[ImageNetwork]) -> None:
    net, images = make(family, dtype=torch.float32), some_images().float()
    exact = net(images)
    with torch.autocast("cpu", torch.bfloat16):
        scores = net(images)
        loss = nn.functional.cross_entropy(scores, torch.tensor([0, 3]))
    loss.backward()
    torch.testing.assert_close(scores.float(), exact, rtol=0.1, atol=0.1)
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in net.parameters())


@pytest.mark.parametrize(
    ("family", "arguments", "error", "message"),
    [
        (
            ImageGridLSTM, {"image_size": 28, "patch_size": 3}, ValueError,
            "image_size: expected height and width to be multiples of patch_size 3, got 28 × 28",
        ),
        (
            ReNet, {"image_size": (28, 30)}, ValueError,
            "image_size: expected height and width to be multiples of patch_size 2 to the power of "
            "num_layers 2, got 28 × 30",
        ),
        (
            ConvolutionalNetwork, {"image_size": 28, "num_layers": 3}, ValueError,
            "patch_size 2 to the power of num_layers 3, got 28 × 28",
        ),
        (ImageGridLSTM, {"image_size": (28, 28, 1)}, ValueError, "expected height and width, got"),
        (ImageGridLSTM, {"image_size": 0}, ValueError, "image_size: expected at least 1, got 0"),
        (ImageGridLSTM, {"image_size": 2.5}, TypeError, "image_size: expected an integer, got 2.5"),
        (ImageGridLSTM, {"hidden_size": 0}, ValueError, "hidden_size: expected at least 1, got 0"),
        (ImageGridLSTM, {"depth": "cells"}, ValueError, "transform: expected one of lstm"),
        (ImageGridLSTM, {"tied": 1}, TypeError, "tied: expected True or False, got 1"),
        (ImageMultidimensionalLSTM, {"num_layers": 0}, ValueError, "num_layers: expected at least 1"),
        (ReNet, {"unit": "rnn"}, ValueError, "unit: expected one of gru, lstm, got 'rnn'"),
        (ReNet, {"channels": -1}, ValueError, "channels: expected at least 1, got -1"),
        (ConvolutionalNetwork, {"num_layers": "2"}, TypeError, "num_layers: expected an integer"),
        (ConvolutionalNetwork, {"hidden_size": None}, TypeError, "hidden_size: expected an integer"),
        (ConvolutionalNetwork, {"relu_size": 0}, ValueError, "relu_size: expected at least 1, got 0"),
        (ConvolutionalNetwork, {"num_classes": 0}, ValueError, "num_classes: expected at least 1"),
        (ConvolutionalNetwork, {"patch_size": 0}, ValueError, "patch_size: expected at least 1, got 0"),
    ],
)  # fmt: skip
def test_arguments_are_checked(
    family: type[ImageNetwork], arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        family(**{"image_size": 28, "relu_size": 4, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
def test_images_are_checked(family: type[ImageNetwork]) -> None:
    net = make(family)
    for wrong, message in (
        (torch.rand(2, 8, 12, dtype=torch.float64), r"expected \[batch, 3, height, width\]"),
        (torch.rand(2, 1, 8, 12, dtype=torch.float64), r"got \[2, 1, 8, 12\]"),
        (torch.rand(2, 3, 9, 12, dtype=torch.float64), "images: expected height and width to be mult"),
        (torch.rand(2, 3, 0, 12, dtype=torch.float64), "got 0 × 12"),
    ):
        with pytest.raises(ValueError, match=message):
            net.features(wrong)
    with pytest.raises(TypeError, match=r"images: expected dtype torch\.float64"):
        net(torch.zeros(2, 3, 8, 12, dtype=torch.uint8))


def test_repr_shows_what_the_parts_do_not() -> None:
    assert repr(make(ImageGridLSTM, tied=True)).startswith(
        "ImageGridLSTM(\n  8 × 12, patch_size=2, tied=True\n"
    )
