"""What an experiment gives the trainer, which knows no experiment."""

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor, nn

__all__ = ["Measures", "Problem"]

Measures = dict[str, float]
"""Named measurements, as they are written down."""


class Problem(Protocol):
    """Something to be learnt."""

    def network(self) -> nn.Module:
        """A new network, its weights drawn from PyTorch's random numbers."""

    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """The mean loss on training samples ``first`` to ``first + count - 1``."""

    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Measurements on held-out samples, other ones at every evaluation ``number``."""

    def test(self, network: nn.Module, samples: int) -> Measures:
        """Measurements on held-out samples that no evaluation looks at."""

    def solved(self, measures: Mapping[str, float]) -> bool:
        """Whether there is nothing left to learn."""

    def carried(self) -> dict[str, Tensor]:
        """What goes over from one update to the next beside the weights; part of a checkpoint."""

    def carry(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes back what :meth:`carried` gave."""
