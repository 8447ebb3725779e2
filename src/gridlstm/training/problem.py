"""What an experiment gives the trainer, which knows no experiment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

__all__ = ["Measures", "Problem"]

Measures = dict[str, float]
"""Named measurements, as they are written down."""


class Problem(Protocol):
    """Something to be learnt."""

    @property
    def outer(self) -> Sequence[str]:
        """Patterns of the names of weights that read or write data, which Muon leaves to Adam."""

    @property
    def goal(self) -> str | None:
        """The measurement that is 1 when the problem is solved; ``None`` if it never is."""

    def data(self) -> dict[str, str]:
        """What tells the data from other data under the same name: checksums by name."""

    def show(self, count: int) -> Iterator[str]:
        """Lines that show training samples 0 to ``count - 1``."""

    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """Lines that show what a trained network makes of something that it has never seen."""

    def network(self) -> nn.Module:
        """A new network, its weights drawn from PyTorch's random numbers."""

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """The mean loss on training samples ``first`` to ``first + count - 1``."""

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Measurements on held-out samples, other ones at every evaluation ``number``."""

    def test(self, network: nn.Module, samples: int | None, streams: int) -> Mapping[str, Any]:
        """Measurements on held-out samples that no evaluation looks at; lists are samples of them.

        Args:
            network: what to measure.
            samples: how many to take; as many as the problem thinks right unless given.
            streams: how many pieces of a long sequence to read side by side.
        """

    def solved(self, measures: Mapping[str, float]) -> bool:
        """Whether there is nothing left to learn."""

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Whether to keep a network in place of the best so far, if any; no if the last counts."""

    def carried(self) -> dict[str, Tensor]:
        """What goes over from one update to the next beside the weights; part of a checkpoint.

        The first axis of each tensor is that of the samples that this process has of an update.
        """

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes back what :meth:`carried` gave."""
