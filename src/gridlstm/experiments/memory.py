"""Estimates how much memory an experiment needs, before any of it is allocated."""

from torch import nn

from gridlstm.experiments.record import Options
from gridlstm.provenance import memory_bytes

__all__ = ["check_memory"]

FLOAT = 4
"""Bytes per number."""
VECTORS = 4
"""Vectors per block: the hidden and memory vectors of two dimensions."""
COPIES = {"sgd": 2, "adagrad": 3}
"""Numbers per weight in training: the weight, its gradient and the optimiser's state. Default: 4."""


def check_memory(options: Options, samples: int, trained: nn.Module | None = None) -> None:
    """Checks that this machine has enough memory.

    It compares with a lower bound: the weights, their gradients and the optimiser's state, and the
    hidden and memory vectors, of all layers in training and of one layer otherwise.

    Args:
        options: the options of the experiment.
        samples: how many samples are processed at once.
        trained: the network on the meta device, if it is to be trained.

    Raises:
        ValueError: if there is not enough memory.
    """
    layers = 1 if trained is None else options.stored_layers
    vectors = FLOAT * VECTORS * samples * options.positions * layers * options.hidden
    parameters = sum(p.numel() for p in trained.parameters()) if trained is not None else 0
    weights = FLOAT * parameters * COPIES.get(options.training.optimizer, 4)
    memory = memory_bytes()
    if memory is not None and vectors + weights > memory:
        parts = [f"{_format_bytes(vectors)} for the vectors of {samples:,} samples"]
        if parameters:
            parts.insert(0, f"{_format_bytes(weights)} to train {parameters:,} parameters")
        raise ValueError(
            f"not enough memory: {' and '.join(parts)} would be needed at least, and this machine has "
            f"{_format_bytes(memory)}"
        )


def _format_bytes(count: int) -> str:
    """A number of bytes with a unit."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min(max(0, int(count).bit_length() - 1) // 10, len(units) - 1)
    return f"{count / 1024**power:,.3g} {units[power]}"
