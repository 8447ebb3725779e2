"""The training loop of all experiments. It knows none of them.

Every random choice of an update is a function of the seed, the update's number and the process: which
samples it takes, and what dropout drops. So a run that was stopped anywhere goes on from its last
checkpoint as if it had never stopped, bit for bit, and there is no iterator or generator to store.
"""

import copy
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from gridlstm.errors import ExpectedError
from gridlstm.training.checkpoint import Checkpoint, CheckpointError, load_newest, save
from gridlstm.training.optimizer import make_optimizer, restore_optimizer, state_of
from gridlstm.training.problem import Measures, Problem
from gridlstm.training.processes import Processes
from gridlstm.training.records import duration, measures, table
from gridlstm.training.schedule import rate_factor
from gridlstm.training.settings import Training
from gridlstm.training.weights import WeightsError, load_weights, outline, put_weights, weights_of

__all__ = ["BEST", "NETWORK", "Observer", "Outcome", "Trainer", "TrainingError", "named"]

NETWORK, BEST, CARRIED = "network.", "best.", "carried."
"""What the names of tensors begin with in a checkpoint: the network as it is and as it was at its best,
and what goes over from one update to the next beside the weights."""

_log = logging.getLogger("gridlstm")

REASONS = ("solved", "samples", "minutes", "interrupted")


class TrainingError(ExpectedError):
    """Training cannot go on, and why."""

    code = 1


class Observer(Protocol):
    """Who is told how training goes, and may ask it to stop."""

    def stepped(self, samples: int, loss: float) -> None:
        """After every update."""

    def evaluated(self, row: Measures) -> None:
        """After every evaluation: measurements, samples, loss and the like."""

    def interrupted(self) -> bool:
        """Whether to stop now, with a checkpoint."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        reason: ``solved``; ``samples`` or ``minutes``, which are used up; or ``interrupted``.
        samples: how many have been learnt from.
        seconds: how long that took, over all sessions.
        measures: those of the last evaluation.
        best: those of the best network and its samples; empty if the last one counts.
    """

    reason: str
    samples: int
    seconds: float
    measures: Measures
    best: Measures


class Trainer:
    """A network in training, from its first update or from a checkpoint.

    Args:
        problem: what is to be learnt.
        settings: how.
        folder: where checkpoints are, and go.
        processes: those that share the work.
        origin: which run the checkpoints have to be of.
        fresh: start from the first update, whatever checkpoints there are.

    Raises:
        TrainingError: if the batch cannot be shared out evenly, or the processes do not find the same
            checkpoint.
        CheckpointError: if there are checkpoints, but none that can be read.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Training,
        folder: Path,
        processes: Processes | None = None,
        *,
        origin: str = "",
        fresh: bool = False,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.folder = folder
        self.origin = origin
        self.processes = processes or Processes()
        if settings.batch % self.processes.count:
            raise TrainingError(
                f"batch: expected a multiple of the {self.processes.count} processes, "
                f"got {settings.batch}"
            )
        # A checkpoint of another network is refused before there is memory for this one.
        drawn = weights_of(outline(problem.network), NETWORK)
        shapes = {name: tensor.shape for name, tensor in drawn.items()}
        found = None if fresh else load_newest(folder, origin, shapes)
        torch.manual_seed(settings.seed)
        self.network = problem.network().to(self.processes.device)
        self.optimizer = make_optimizer(settings, self.network, problem.outer)
        self.step = 0
        self.seconds = 0.0
        self.losses: list[float] = []
        self.measures: Measures = {}
        self.best: Measures = {}
        self.best_weights: dict[str, Tensor] = {}
        self._saved = -1
        self._last_save = 0.0
        if found is not None:
            self._restore(found)
        newest, oldest = self.processes.most(self.step, -self.step)
        if newest != -oldest:
            raise TrainingError(f"{folder}: expected one place for all processes, got several")
        self._parallel = self.processes.wrap(self.network)

    @property
    def samples(self) -> int:
        """How many samples have been learnt from."""
        return self.step * self.settings.batch

    def run(self, observer: Observer) -> Outcome:
        """Trains until solved, interrupted, or samples or minutes are used up.

        Raises:
            TrainingError: if the loss is no number any more; the last checkpoint is from before that.
            CheckpointError: if a checkpoint cannot be written.
        """
        started = last_step = self._last_save = time.monotonic()
        while (reason := self._reason(observer, started)) is None:
            loss = self._update()
            self.step += 1
            self.losses.append(loss)
            now = time.monotonic()
            self.seconds, last_step = self.seconds + now - last_step, now
            observer.stepped(self.samples, loss)
            if self._evaluations(self.samples) > self._evaluations(self.samples - self.settings.batch):
                self._evaluate(self._evaluations(self.samples), observer)
        if reason == "samples" and self.losses:  # The last word, unless it has been said.
            self._evaluate(self._evaluations(self.samples) + 1, observer)
            self._saved = -1
            reason = "solved" if self._solved() else reason
        self.save()
        return Outcome(reason, self.samples, self.seconds, self.measures, self.best)

    def save(self) -> None:
        """Writes a checkpoint, unless there is one of this step. All processes take part.

        Raises:
            TrainingError: if a weight is no number any more; that is not worth keeping.
            CheckpointError: if it cannot be written.
        """
        if self._saved != self.step:
            if not all(bool(t.isfinite().all()) for t in self.network.parameters()):
                raise TrainingError(f"step {self.step}: a weight is not finite; {self._last()}")
            checkpoint = self._checkpoint()
            if self.processes.first:
                save(self.folder, checkpoint, self.origin)
            self._saved = self.step
        self._last_save = time.monotonic()

    def adopt_best(self, *paths: Path) -> None:
        """Takes the best weights from the first file that has them, if the checkpoint did not.

        They were in a file of their own before they became part of a checkpoint. If none can be read,
        the best network is that of the evaluations to come.
        """
        if not self.best or self.best_weights:
            return
        for path in paths:
            network = copy.deepcopy(self.network)
            try:
                load_weights(network, path)
            except WeightsError as error:
                _log.warning("cannot read the best weights: %s", error)
            else:
                self.best_weights = weights_of(network)
                return
        _log.warning("the best weights so far are lost: the best from step %d on count", self.step)
        self.best = {}

    def take_best(self) -> None:
        """Gives the network the best weights, where they are kept, once training has ended."""
        if self.best:
            put_weights(self.network, self.best_weights)

    def _last(self) -> str:
        if self._saved < 0:
            return "there is no checkpoint yet"
        return f"the last checkpoint is that of step {self._saved}"

    def _reason(self, observer: Observer, started: float) -> str | None:
        """Why to stop, if there is a reason; saves where it is time to.

        Processes agree on both: they stop and save together.
        """
        settings, now = self.settings, time.monotonic()
        reasons = (
            self._solved(),
            self.samples >= settings.samples,
            settings.minutes is not None and now - started > 60 * settings.minutes,
            observer.interrupted(),
        )
        due = now - self._last_save > 60 * settings.checkpoint_minutes
        save, *agreed = self.processes.most(due, *reasons)
        if save:
            self.save()
        return next((name for name, yes in zip(REASONS, agreed, strict=True) if yes), None)

    def _solved(self) -> bool:
        return bool(self.measures) and self.problem.solved(self.measures)

    def _update(self) -> float:
        """One update; the mean loss of all processes."""
        settings, rank = self.settings, self.processes.rank
        share = settings.batch // self.processes.count
        torch.manual_seed((settings.seed << 32) + self.step * self.processes.count + rank)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.rate * rate_factor(settings, self.samples)
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.processes.device.type, torch.bfloat16, enabled=settings.bfloat16):
            loss = self.problem.loss(self._parallel, self.samples + rank * share, share)
        loss.backward()
        value = self.processes.mean(loss.item())
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip or math.inf)
        if not math.isfinite(value) or not bool(norm.isfinite()):
            raise TrainingError(
                f"step {self.step + 1}: the loss is {value}, the gradient's norm {norm.item()}; "
                f"{self._last()}"
            )
        self.optimizer.step()
        return value

    def _evaluations(self, samples: int) -> int:
        return samples // self.settings.evaluate_every

    def _evaluate(self, number: int, observer: Observer) -> None:
        """Tells the measurements of the network as it is, and the loss since the last ones."""
        self.network.eval()
        with torch.no_grad():
            self.measures = self.problem.evaluate(self.network, number)
        self.network.train()
        row = {
            "samples": self.samples,
            "step": self.step,
            "seconds": round(self.seconds, 3),
            "loss": sum(self.losses) / len(self.losses),
            **self.measures,
        }
        self.losses = []
        observer.evaluated(row)
        if self.problem.better(self.measures, self.best):
            self.best = {"samples": self.samples, **self.measures}
            copies = {n: t.detach().cpu().clone() for n, t in weights_of(self.network).items()}
            self.best_weights = copies

    def _checkpoint(self) -> Checkpoint:
        tensors = weights_of(self.network, NETWORK)
        tensors |= {f"{BEST}{name}": tensor for name, tensor in self.best_weights.items()}
        for name, tensor in self.problem.carried().items():
            tensors[f"{CARRIED}{name}"] = self.processes.join_up(tensor)
        gathered, scalars = state_of(self.optimizer)
        state = {
            "seconds": self.seconds,
            "losses": self.losses,
            "measures": self.measures,
            "best": self.best,
            "optimizer": scalars,
        }
        return Checkpoint(self.step, {**tensors, **gathered}, state)

    def _restore(self, found: Checkpoint) -> None:
        state = found.state
        try:
            put_weights(self.network, found.tensors, NETWORK)
            restore_optimizer(self.optimizer, found.tensors, table(state["optimizer"], "optimizer"))
            carried = named(found.tensors, CARRIED)
            self.problem.carry(
                {name: self.processes.own(t).to(self.processes.device) for name, t in carried.items()}
            )
            self.step = self._saved = found.step
            self.seconds = duration(state["seconds"], "seconds")
            self.losses = list(measures(dict(enumerate(state["losses"])), "losses").values())
            self.measures = measures(state["measures"], "measures")
            self.best = measures(state.get("best", {}), "best")
            self.best_weights = named(found.tensors, BEST)
        except (LookupError, TypeError, ValueError, WeightsError) as error:
            message = f"{self.folder}: the checkpoint of step {found.step} is damaged ({error})"
            raise CheckpointError(message) from error


def named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
