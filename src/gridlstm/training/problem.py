"""What the trainer is given: a problem, and an observer of the training."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

__all__ = ["Measures", "Observer", "Problem"]

Measures = dict[str, float]
"""Measurements by name."""


class Problem(ABC):
    """A problem to train a network on.

    Attributes:
        adam_parameters: patterns of names of parameters that read or write data, which Muon leaves to
            Adam.
        matrix_rows: the number of rows of a hidden matrix, of which a parameter may stack several, one
            per gate; see :class:`Muon`. ``None`` if every parameter is one matrix.
        goal: the measurement that is 1 when the problem is solved; ``None`` if it never is.
    """

    adam_parameters: Sequence[str] = ()
    matrix_rows: int | None = None
    goal: str | None = None

    @abstractmethod
    def show(self, count: int) -> Iterator[str]:
        """Lines that show training samples 0 to ``count - 1``."""

    @abstractmethod
    def demonstrate(self, network: nn.Module) -> Iterator[str]:
        """Lines that show what a trained network does with a sample it has never seen."""

    @abstractmethod
    def network(self) -> nn.Module:
        """A new network, initialised from PyTorch's global random generator."""

    @abstractmethod
    def loss(self, network: nn.Module, first: int, count: int) -> Tensor:
        """The mean loss on training samples ``first`` to ``first + count - 1``."""

    @abstractmethod
    def evaluate(self, network: nn.Module, number: int) -> Measures:
        """Measurements on held-out samples, different ones at each evaluation ``number``."""

    @abstractmethod
    def test(self, network: nn.Module, samples: int | None, options: Any) -> Mapping[str, Any]:
        """Measurements on held-out samples that no evaluation uses; lists hold examples of them.

        Args:
            network: the network to measure.
            samples: how many samples to use. Default: the problem's own choice.
            options: what else the experiment lets a user choose about a test.
        """

    def data(self) -> dict[str, str]:
        """Checksums of the data by name. Default: there is no data."""
        return {}

    def solved(self, measures: Mapping[str, float]) -> bool:
        """Whether there is nothing left to learn: the goal is reached, if there is one."""
        return self.goal is not None and measures[self.goal] == 1.0

    def better(self, measures: Mapping[str, float], best: Mapping[str, float]) -> bool:
        """Whether a network replaces the best one so far.

        Args:
            measures: measurements of the network.
            best: those of the best one so far; empty if there is none.

        Returns:
            Always ``False`` if a run ends with its last network, not with its best one: the default.
        """
        return False

    def carried(self) -> dict[str, Tensor]:
        """State other than weights that is carried from one update to the next; part of a checkpoint.

        The first axis of each tensor is that of this process's samples of an update. Default: nothing.
        """
        return {}

    def carry(self, tensors: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Restores what :meth:`carried` returned."""


class Observer(Protocol):
    """Follows the training, and may ask it to stop."""

    def stepped(self, samples: int, loss: float) -> None:
        """Is called after each update."""

    def evaluated(self, row: Measures) -> None:
        """Is called after each evaluation with its measurements, the samples so far, the loss etc."""

    def interrupted(self) -> bool:
        """Whether to write a checkpoint and stop now."""
