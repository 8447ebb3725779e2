"""Random grids of all kinds, forward and backward with the compiled kernel; run under its sanitisers.

python random_grids.py COUNT    runs this many
python random_grids.py beyond   has the kernel read one number too many
"""

import random
import sys

import numpy as np
import torch

from gridlstm import Dim, GridLSTM, SequenceGridLSTM, State
from gridlstm.bench.accuracy import call_kernel
from gridlstm.engines.native.build import library
from gridlstm.engines.workspace import Workspace, pitch
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.native_stepper import NativeStepper
from gridlstm.models.stepper import make_stepper

TRANSFORMS = ["lstm", "lstm", "gru", "tanh", "relu", "identity"]


def take(self, shape, like, dtype=None):
    """A buffer of its own for every request: the kernel cannot stray into another one unseen."""
    return torch.empty(*shape[:-1], pitch(shape[-1]), dtype=dtype or like.dtype)[..., : shape[-1]]


def run(draw: random.Random) -> None:
    """One grid: with autocast to bfloat16, in single or in double precision."""
    precision = draw.choice(["low", torch.float32, torch.float64])
    dtype = torch.float32 if precision == "low" else precision
    sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 4))]
    dims = [
        Dim(
            f"d{i}",
            draw.choice(TRANSFORMS),
            size=size,
            tied=draw.random() < 0.7,
            priority=draw.random() < 0.4,
            reverse=draw.random() < 0.3,
            hidden_size=draw.choice([1, 3, 8, 17]),
        )
        for i, size in enumerate(sizes)
    ]
    options = {
        "bias": draw.random() < 0.8,
        "output": draw.choice(["paper", "standard"]),
        "dropout": draw.choice([0.0, 0.3]),
        "dropout_tied": draw.choice([[], ["d0"]]),
        "dropout_between": draw.choice([None, ["d0"]]),
        "recompute": draw.random() < 0.5,
    }
    grid = GridLSTM(dims, dtype=dtype, **options)
    batch, sides = draw.choice([0, 1, 2, 5]), {}
    for i, dim in enumerate(grid.dims):
        if draw.random() < 0.7 or i == 0:
            shape = (batch, *sizes[:i], *sizes[i + 1 :], dim.hidden_size)
            hidden = torch.randn(shape, dtype=dtype, requires_grad=True)
            sides[dim.name] = State(hidden, torch.randn_like(hidden) if dim.has_memory else None)
    mask = torch.rand(batch, *sizes) < 0.7 if draw.random() < 0.4 else None
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "low"):
        found = grid(sides, mask=mask, trace=draw.random() < 0.5)
    out, blocks = found if isinstance(found, tuple) else (found, {})
    results = [t for state in (*out.values(), *blocks.values()) for t in state if t is not None]
    assert all(t.isfinite().all() for t in results)
    used = draw.sample(results, draw.randint(1, len(results)))
    sum(t.float().square().sum() for t in used).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in grid.parameters())


def run_steps(draw: random.Random) -> None:
    """A random network, one symbol at a time."""
    hidden, symbols = draw.choice([1, 3, 8, 17]), draw.choice([1, 5, 70])
    options = {"tied": draw.random() < 0.5, "readout": draw.choice(["hidden", "both"])}
    body = SequenceGridLSTM(symbols, hidden, draw.randint(1, 3), batch_first=True, **options)
    model = CharacterModel(bytes(range(symbols)), body).eval()
    step = make_stepper(model, int8=draw.random() < 0.5)
    assert isinstance(step, NativeStepper)
    assert all(np.isfinite(step(draw.randrange(symbols))).all() for _ in range(3))


def main(what: str) -> None:
    assert library() is not None, "the kernel cannot be compiled with its sanitisers"
    torch.set_num_threads(1)
    if what == "beyond":
        whole = np.zeros(100, np.float32)
        call_kernel("map_tanh", np.lib.stride_tricks.as_strided(whole, (101,)))
        return
    Workspace.take = take
    draw = random.Random(0)
    torch.manual_seed(0)
    for _ in range(int(what)):
        run(draw)
        run_steps(draw)
    sys.stdout.write("clean\n")


if __name__ == "__main__":
    main(sys.argv[1])
