"""The training loop of all experiments. It knows none of them.

Every random choice of an update, such as its samples and its dropout, is a function of the seed, the
number of the update and the process. So a run that was stopped continues from its last checkpoint as if
it had never stopped, bit for bit, and there is no iterator or generator state to store.
"""

import copy
import logging
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from gridlstm.errors import ExpectedError
from gridlstm.training.checkpoint import (
    BEST,
    CARRIED,
    NETWORK,
    Checkpoint,
    CheckpointError,
    load_newest,
    save_checkpoint,
    select_prefix,
)
from gridlstm.training.json_checks import check_numbers, check_object, check_seconds
from gridlstm.training.optimizer import make_optimizer, optimizer_state, restore_optimizer
from gridlstm.training.problem import Measures, Observer, Problem
from gridlstm.training.processes import Processes
from gridlstm.training.schedule import rate_factor
from gridlstm.training.settings import Training
from gridlstm.training.weights import WeightsError, load_weights, make_on_meta, set_weights, weights_of

__all__ = ["Outcome", "Trainer", "TrainingError"]

_log = logging.getLogger("gridlstm")

REASONS = ("solved", "samples", "minutes", "interrupted")


class TrainingError(ExpectedError):
    """Training cannot continue."""

    code = 1


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        reason: ``solved``, ``interrupted``, or the limit that was reached: ``samples`` or ``minutes``.
        samples: the number of samples trained on.
        seconds: the training time of all sessions.
        measures: the measurements of the last evaluation.
        best: those of the best network, and the samples it was trained on; empty if the problem keeps
            the last network.
    """

    reason: str
    samples: int
    seconds: float
    measures: Measures
    best: Measures


class Trainer:
    """A network in training, from its first update or from a checkpoint.

    Args:
        problem: the problem to train on.
        settings: the training options.
        folder: the folder of the checkpoints.
        processes: the processes that share the work. Default: this one alone.
        fingerprint: that of the run, which its checkpoints must have.
        fresh: start from the first update, ignoring checkpoints.

    Attributes:
        watch: a context manager around each part of an update, called with the name of the part, for
            measurements. Default: one that does nothing.

    Raises:
        TrainingError: if the batch is not a multiple of the number of processes, or the processes find
            different checkpoints.
        CheckpointError: if there are checkpoints, but none can be used.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Training,
        folder: Path,
        processes: Processes | None = None,
        *,
        fingerprint: str = "",
        fresh: bool = False,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.folder = folder
        self.fingerprint = fingerprint
        self.processes = processes or Processes()
        if settings.batch % self.processes.count:
            raise TrainingError(
                f"batch: expected a multiple of the {self.processes.count} processes, "
                f"got {settings.batch}"
            )
        # A checkpoint of another network is refused before memory is allocated for this one.
        expected = weights_of(make_on_meta(problem.network), NETWORK)
        shapes = {name: tensor.shape for name, tensor in expected.items()}
        checkpoint = None if fresh else load_newest(folder, fingerprint, shapes)
        torch.manual_seed(settings.seed)
        self.network = problem.network().to(self.processes.device)
        self.optimizer = make_optimizer(
            settings, self.network, problem.adam_parameters, problem.matrix_rows
        )
        self.watch: Callable[[str], AbstractContextManager[object]] = nullcontext
        self.step = 0
        self.seconds = 0.0
        self.losses: list[float] = []
        self.measures: Measures = {}
        self.best: Measures = {}
        self.best_weights: dict[str, Tensor] = {}
        self._saved_step = -1
        self._last_save = 0.0
        if checkpoint is not None:
            self._restore(checkpoint)
        newest, oldest = self.processes.maximum(self.step, -self.step)
        if newest != -oldest:
            raise TrainingError(f"{folder}: expected one folder for all processes, got several")
        self._parallel = self.processes.wrap(self.network)

    @property
    def samples(self) -> int:
        """The number of samples trained on."""
        return self.step * self.settings.batch

    def run(self, observer: Observer) -> Outcome:
        """Trains until the problem is solved, a limit is reached, or the observer interrupts.

        Raises:
            TrainingError: if the loss is not finite. The last checkpoint is from before that.
            CheckpointError: if a checkpoint cannot be written.
        """
        started = last_step = self._last_save = time.monotonic()
        while (reason := self._reason_to_stop(observer, started)) is None:
            loss = self.update()
            self.step += 1
            self.losses.append(loss)
            now = time.monotonic()
            self.seconds, last_step = self.seconds + now - last_step, now
            observer.stepped(self.samples, loss)
            if self._evaluations(self.samples) > self._evaluations(self.samples - self.settings.batch):
                self._evaluate(self._evaluations(self.samples), observer)
        if reason == "samples" and self.losses:  # The last updates have not been evaluated yet.
            self._evaluate(self._evaluations(self.samples) + 1, observer)
            self._saved_step = -1
            reason = "solved" if self._solved() else reason
        self.save()
        return Outcome(reason, self.samples, self.seconds, self.measures, self.best)

    def save(self) -> None:
        """Writes a checkpoint, unless one of this step exists. All processes must call it.

        Raises:
            TrainingError: if a weight is not finite. Nothing is written then.
            CheckpointError: if it cannot be written.
        """
        if self._saved_step != self.step:
            if not all(bool(t.isfinite().all()) for t in self.network.parameters()):
                raise TrainingError(
                    f"step {self.step}: a weight is not finite; {self._last_checkpoint()}"
                )
            checkpoint = self._checkpoint()
            if self.processes.first:
                save_checkpoint(self.folder, checkpoint, self.fingerprint)
            self._saved_step = self.step
        self._last_save = time.monotonic()

    def load_old_best(self, *paths: Path) -> None:
        """Loads the best weights from the first readable file, if they are not in the checkpoint.

        Older versions kept them in a separate file. If none can be read, the best network is that of
        the evaluations to come.
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
        _log.warning("the best weights so far are lost; keeping the best from step %d on", self.step)
        self.best = {}

    def use_best(self) -> None:
        """Sets the network to the best weights, if the problem keeps them. For use after training."""
        if self.best:
            set_weights(self.network, self.best_weights)

    def _last_checkpoint(self) -> str:
        """For error messages."""
        if self._saved_step < 0:
            return "there is no checkpoint yet"
        return f"the last checkpoint is that of step {self._saved_step}"

    def _reason_to_stop(self, observer: Observer, started: float) -> str | None:
        """The reason to stop, if any. Also writes a checkpoint when one is due.

        All processes agree, so they stop and save together.
        """
        settings, now = self.settings, time.monotonic()
        reasons = (
            self._solved(),
            self.samples >= settings.samples,
            settings.minutes is not None and now - started > 60 * settings.minutes,
            observer.interrupted(),
        )
        checkpoint_due = now - self._last_save > 60 * settings.checkpoint_minutes
        save, *agreed = self.processes.maximum(checkpoint_due, *reasons)
        if save:
            self.save()
        return next((name for name, yes in zip(REASONS, agreed, strict=True) if yes), None)

    def _solved(self) -> bool:
        return bool(self.measures) and self.problem.solved(self.measures)

    def update(self) -> float:
        """Does one update, and returns the mean loss of all processes."""
        settings, rank = self.settings, self.processes.rank
        share = settings.batch // self.processes.count
        self.processes.set_seed((settings.seed << 32) + self.step * self.processes.count + rank)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.rate * rate_factor(settings, self.samples)
        self.optimizer.zero_grad(set_to_none=True)
        with (
            self.watch("forward"),
            torch.autocast(self.processes.device.type, torch.bfloat16, enabled=settings.bfloat16),
        ):
            loss = self.problem.loss(self._parallel, self.samples + rank * share, share)
        with self.watch("backward"):
            loss.backward()
        with self.watch("clipping"):
            value = self.processes.mean(loss.item())
            norm = nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip or math.inf)
            if not math.isfinite(value) or not bool(norm.isfinite()):
                raise TrainingError(
                    f"step {self.step + 1}: the loss is {value}, the gradient's norm {norm.item()}; "
                    f"{self._last_checkpoint()}"
                )
        with self.watch("optimiser"):
            self.optimizer.step()
        return value

    def _evaluations(self, samples: int) -> int:
        return samples // self.settings.evaluate_every

    def _evaluate(self, number: int, observer: Observer) -> None:
        """Evaluates the network, and reports the measurements and the mean loss since the last ones."""
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
            tensors[f"{CARRIED}{name}"] = self.processes.gather(tensor)
        averages, scalars = optimizer_state(self.optimizer)
        state = {
            "seconds": self.seconds,
            "losses": self.losses,
            "measures": self.measures,
            "best": self.best,
            "optimizer": scalars,
        }
        return Checkpoint(self.step, {**tensors, **averages}, state)

    def _restore(self, checkpoint: Checkpoint) -> None:
        step, tensors, state = checkpoint
        device = self.processes.device
        try:
            set_weights(self.network, tensors, NETWORK)
            restore_optimizer(self.optimizer, tensors, check_object(state["optimizer"], "optimizer"))
            carried = select_prefix(tensors, CARRIED)
            self.problem.carry(
                {name: self.processes.local_part(t).to(device) for name, t in carried.items()}
            )
            self.step = self._saved_step = step
            self.seconds = check_seconds(state["seconds"], "seconds")
            self.losses = list(check_numbers(dict(enumerate(state["losses"])), "losses").values())
            self.measures = check_numbers(state["measures"], "measures")
            self.best = check_numbers(state.get("best", {}), "best")
            self.best_weights = select_prefix(tensors, BEST)
        except (LookupError, TypeError, ValueError, WeightsError) as error:
            message = f"{self.folder}: the checkpoint of step {step} is damaged ({error})"
            raise CheckpointError(message) from error
