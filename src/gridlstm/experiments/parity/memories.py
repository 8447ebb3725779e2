"""Memory vectors through the layers of a 1-LSTM, and its counting neurons (Figure 10)."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from gridlstm.experiments.parity.options import MemoriesOptions
from gridlstm.experiments.parity.problem import ParityNetwork
from gridlstm.experiments.trained import load
from gridlstm.figures.save import write_figure
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["counting_neurons", "draw_memories", "draw_runs", "memories", "plot"]

STRINGS = 64
"""The number of random strings on which counting neurons are searched."""


def plot(options: MemoriesOptions) -> None:
    """Draws the counting neurons of a run.

    Raises:
        RunError: if its network is not a 1-LSTM for parity.
    """
    figure = _draw_run(RunDir.open(options.run), options.input, options.neurons)
    write_figure(figure, options)


def draw_runs(runs: Sequence[RunDir]) -> Figure:
    """Figure 10 from runs: the counting neurons of the first one."""
    return _draw_run(runs[0], MemoriesOptions.input, MemoriesOptions.neurons)


def _draw_run(run: RunDir, string: str | None, neurons: int) -> Figure:
    network = load(run).network
    if not isinstance(network, ParityNetwork) or not isinstance(network.body, DeepGridLSTM):
        raise RunError(f"{run.path}: expected a 1-LSTM trained on parity, got something else")
    return draw_memories(network, network.body.input_size, string, neurons)


def memories(network: ParityNetwork, bits: Tensor) -> Tensor:
    """The memory vectors that leave every layer, ``[strings, layers, hidden]``, of ``[strings, k]``."""
    body = network.body
    assert isinstance(body, DeepGridLSTM), "only a 1-LSTM has memory vectors"
    with torch.no_grad():
        entering = body.projection(network.encode(bits))
        _, blocks = body.grid({"depth": entering}, trace=True)
    memory: Tensor | None = blocks["depth"].memory
    assert memory is not None, "an LSTM dimension has a memory"
    return memory


def counting_neurons(network: ParityNetwork, bits: int, count: int) -> list[int]:
    """The neurons whose memory depends most on the layer, whatever the string.

    They have the largest squared correlation between memory and layer, over all layers of many random
    strings. It is 1 for a memory that is a linear function of depth and the same for all strings.
    """
    generator = torch.Generator().manual_seed(0)
    strings = torch.randint(0, 2, (STRINGS, bits), generator=generator)
    values = memories(network, strings).double()
    layers = torch.arange(values.shape[1], dtype=torch.double)
    layers = (layers - layers.mean()).view(1, -1, 1)
    values = values - values.mean((0, 1))
    covariance = (values * layers).sum((0, 1))
    variances = values.square().sum((0, 1)) * layers.square().sum() * len(strings)
    score = covariance.square() / variances.clamp(min=1e-12)
    return score.argsort(descending=True)[:count].tolist()


def draw_memories(network: ParityNetwork, bits: int, string: str | None, count: int) -> Figure:
    """A heat map of the memory of counting neurons, one per row, against layers.

    Raises:
        ValueError: if the string does not have this number of bits.
    """
    string = "0" * (bits // 5) + "1" * (bits - bits // 5) if string is None else string
    if len(string) != bits or set(string) - {"0", "1"}:
        raise ValueError(f"--input: expected {bits} bits, 0 or 1, got {string!r}")
    neurons = counting_neurons(network, bits, count)
    inputs = torch.tensor([[int(bit) for bit in string]])
    shown = memories(network, inputs)[0][:, neurons].T
    rising = (shown[:, -1] - shown[:, 0]).argsort(descending=True)
    figure = Figure(figsize=(6.4, 1.6 + 0.18 * len(neurons)), layout="constrained")
    axes = figure.subplots()
    limit = float(shown.abs().max())
    image = axes.imshow(
        shown[rising].numpy(), aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit,
        extent=(0.5, shown.shape[1] + 0.5, len(neurons) - 0.5, -0.5),
    )  # fmt: skip
    axes.set_yticks(range(len(neurons)), [str(neurons[k]) for k in rising], fontsize=6)
    axes.set_ylabel("neuron")
    axes.set_xlabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    shortened = string if len(string) <= 50 else f"{string[:24]}…{string[-24:]}"
    axes.set_title(f"memory of counting neurons, input {shortened}", fontsize=8)
    figure.colorbar(image)
    return figure
