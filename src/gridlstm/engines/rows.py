"""A buffer with a row for each block: of the whole grid, of two steps, or of one."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gridlstm.engines.workspace import Workspace
from gridlstm.geometry import Plan

__all__ = ["Rows", "make_rows"]

Keep = Literal["all", "two", "one"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``[rows, batch, columns]``, found by the step they belong to.

    ``keep="all"`` has a row for every block; ``"two"`` only for a step and its neighbour, in turn;
    ``"one"`` only for one step at a time.
    """

    data: Tensor
    keep: Keep
    plan: Plan

    def at(self, s: int) -> Tensor:
        """The rows of step ``s``, ``[blocks of the step, batch, columns]``."""
        step = self.plan.steps[s]
        turn = s % 2 if self.keep == "two" else 0
        start = step.start if self.keep == "all" else turn * self.plan.widest
        return self.data[start : start + step.stop - step.start]


def make_rows(
    workspace: Workspace,
    plan: Plan,
    keep: Keep,
    batch: int,
    columns: int,
    like: Tensor,
    dtype: torch.dtype | None = None,
) -> Rows:
    """Takes uninitialised rows from a workspace, of the type and on the device of ``like``."""
    count = {"all": plan.blocks, "two": 2 * plan.widest, "one": plan.widest}[keep]
    return Rows(workspace.take((count, batch, columns), like, dtype), keep, plan)
