"""Maps of the hidden and memory vectors of a network over an image, layer by layer."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from gridlstm.experiments.images.confusion import shortened, show_image
from gridlstm.models.image_grid import ImageGridLSTM
from gridlstm.models.image_multidimensional import ImageMultidimensionalLSTM
from gridlstm.models.image_network import CORNERS, ImageNetwork

__all__ = ["draw_activations", "most_varied"]

NEURONS = 3
"""The number of single neurons shown per layer."""
ARROWS = {(False, False): "↘", (False, True): "↙", (True, True): "↖", (True, False): "↗"}


def most_varied(maps: Tensor, count: int) -> list[int]:
    """The neurons that vary most between positions, of maps ``[rows, columns, neurons]``."""
    variance = maps.flatten(0, 1).var(0, correction=0)
    neurons: list[int] = variance.argsort(descending=True)[:count].tolist()
    return neurons


@torch.no_grad()
def draw_activations(network: ImageNetwork, image: NDArray[np.uint8], inputs: Tensor) -> Figure:
    """Maps over the image, one column per layer, after the image itself.

    The first rows show the mean absolute value of hidden and memory vectors, the others the hidden
    values of the neurons that vary most between positions.

    Args:
        network: the network.
        image: ``[height, width]`` or ``[3, height, width]``, from 0 to 255.
        inputs: the image as the network reads it, ``[1, channels, height, width]``.
    """
    layers = network.layers(inputs)
    kinds = ["hidden", *(["memory"] if layers[-1].memory is not None else [])]
    rows = len(kinds) + NEURONS
    figure = Figure(figsize=(1.6 * (1 + len(layers)), 1.5 * rows), layout="constrained")
    panels = figure.subplots(rows, 1 + len(layers), squeeze=False)
    for axes in panels[:, 0]:
        axes.set_axis_off()
    panels[0, 0].set_axis_on()
    show_image(panels[0, 0], image, inverted=network.class_names is None)
    predicted = int(network(inputs).argmax())
    name = predicted if network.class_names is None else shortened(network.class_names[predicted])
    panels[0, 0].set_title(f"predicted {name}", fontsize=8)
    swept = isinstance(network, ImageGridLSTM | ImageMultidimensionalLSTM)
    for k, state in enumerate(layers):
        arrow = f" {ARROWS[CORNERS[k % len(CORNERS)]]}" if swept else ""
        panels[0, k + 1].set_title(f"layer {k + 1}{arrow}", fontsize=8)
        for row, kind in enumerate(kinds):
            vectors = getattr(state, kind)[0]
            _show(panels[row, k + 1], vectors.abs().mean(-1))
        hidden = state.hidden[0]
        for row, neuron in enumerate(most_varied(hidden, NEURONS), len(kinds)):
            _show(panels[row, k + 1], hidden[..., neuron], signed=True)
            panels[row, k + 1].set_xlabel(f"neuron {neuron}", fontsize=6)
    for row, kind in enumerate(kinds):
        panels[row, 1].set_ylabel(f"mean |{kind}|", fontsize=8)
    for axes in panels.flatten():
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def _show(axes: Axes, values: Tensor, *, signed: bool = False) -> None:
    limit = max(float(values.abs().max()), 1e-9)
    colours, lowest = ("RdBu_r", -limit) if signed else ("viridis", 0.0)
    axes.imshow(values.numpy(), cmap=colours, vmin=lowest, vmax=limit)
