"""How much memory an experiment needs, before any of it is taken."""

from torch import nn

from gridlstm.experiments.record import Options
from gridlstm.provenance import memory_bytes

__all__ = ["check_memory"]

FLOAT = 4
"""Bytes of a number."""
VECTORS = 4
"""Vectors of a block: the hidden and the memory vectors of two dimensions."""
COPIES = {"sgd": 2, "adagrad": 3}
"""Numbers for each weight in training: itself, its gradient, what the optimiser keeps; else 4."""


def check_memory(options: Options, samples: int, trained: nn.Module | None = None) -> None:
    """Checks that this machine has enough memory.

    What is counted is a lower bound: the weights with all that belongs to them in
    training, and hidden and memory vectors, of all layers in training and of one otherwise.

    Args:
        options: those of the experiment.
        samples: how many are processed at once.
        trained: the :func:`make_on_meta` of the network, if it is to be trained.

    Raises:
        ValueError: with the bytes that would be needed, and those that there are.
    """
    layers = 1 if trained is None else options.stored_layers
    vectors = FLOAT * VECTORS * samples * options.positions * layers * options.hidden
    parameters = sum(p.numel() for p in trained.parameters()) if trained is not None else 0
    weights = FLOAT * parameters * COPIES.get(options.training.optimizer, 4)
    memory = memory_bytes()
    if memory is not None and vectors + weights > memory:
        parts = [f"{_shown(vectors)} for the vectors of {samples:,} samples"]
        if parameters:
            parts.insert(0, f"{_shown(weights)} to train {parameters:,} parameters")
        raise ValueError(
            f"not enough memory: {' and '.join(parts)} would be needed at least, and this machine has "
            f"{_shown(memory)}"
        )


def _shown(count: int) -> str:
    """A number of bytes as people write it."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min(max(0, int(count).bit_length() - 1) // 10, len(units) - 1)
    return f"{count / 1024**power:,.3g} {units[power]}"
