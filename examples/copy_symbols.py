"""Trains a tied 2-LSTM to read a sequence of symbols and to repeat it, and shows its progress.

The network reads the symbols one by one, then blanks, during which it has to output the symbols in
order (section 4.2 of the paper, with shorter sequences). The task is solved when the network repeats
100 unseen sequences without an error.
"""

import argparse
import time

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm import SequenceGridLSTM

BLANK = 0


class Copier(nn.Module):
    """Symbols ``[batch, time]`` to scores ``[batch, time, symbols]``."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, forget_bias: float) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.grid = SequenceGridLSTM(
            vocabulary, hidden, layers, readout="both", forget_bias=forget_bias, batch_first=True
        )
        self.scores = nn.Linear(self.grid.output_size, vocabulary)

    def forward(self, symbols: Tensor) -> Tensor:
        """The scores at every time step."""
        output, _ = self.grid(F.one_hot(symbols, self.vocabulary).float())
        scores: Tensor = self.scores(output)
        return scores


def sample(count: int, length: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Inputs ``- a b c - - - -`` and targets ``- - - - a b c -``, each ``[count, 2 · length + 2]``."""
    symbols = torch.randint(1, vocabulary, (count, length))
    inputs = F.pad(symbols, (1, length + 1), value=BLANK)
    targets = F.pad(symbols, (length + 1, 1), value=BLANK)
    return inputs, targets


@torch.no_grad()
def accuracy(net: Copier, count: int, length: int) -> float:
    """The share of correctly repeated symbols, on new sequences."""
    inputs, targets = sample(count, length, net.vocabulary)
    right = net(inputs).argmax(-1) == targets
    return float(right[targets != BLANK].float().mean())


def main() -> None:
    """Trains until the task is solved or the number of samples is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=10, help="symbols in a sequence")
    parser.add_argument(
        "--vocabulary", type=int, default=17, help="different symbols, including the blank"
    )
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--samples", type=int, default=200_000, help="stop after this many")
    parser.add_argument("--rate", type=float, default=3e-3, help="Adam's learning rate")
    parser.add_argument("--forget-bias", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    net = Copier(args.vocabulary, args.hidden, args.layers, args.forget_bias)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.rate)
    columns = [
        TextColumn("{task.completed:>7,.0f} samples"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  accuracy {task.fields[accuracy]:6.1%}"),
        TimeElapsedColumn(),
    ]
    console = Console()
    started, solved = time.perf_counter(), False
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=args.samples, loss=float("nan"), accuracy=0.0)
        for step in range(1, args.samples // args.batch + 1):
            inputs, targets = sample(args.batch, args.length, args.vocabulary)
            loss = F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            if step % 25 == 0:
                share = accuracy(net, 100, args.length)
                progress.update(bar, completed=step * args.batch, loss=loss.item(), accuracy=share)
                solved = share == 1.0
                if solved:
                    break
    parameters = sum(parameter.numel() for parameter in net.parameters())
    console.print(
        f"A tied 2-LSTM of {args.layers} layers and {args.hidden} units ({parameters:,} parameters)\n"
        f"{'learned' if solved else 'did not learn'} to repeat {args.length} symbols out of "
        f"{args.vocabulary - 1} from {step * args.batch:,} samples in "
        f"{time.perf_counter() - started:.0f} s."
    )
    net.eval()
    inputs, _ = sample(1, args.length, args.vocabulary)
    with torch.no_grad():
        outputs = net(inputs).argmax(-1)
    for name, row in (("input", inputs[0]), ("output", outputs[0])):
        console.print(
            f"{name:>7} ", *(f"{s:>2}" if s != BLANK else " -" for s in row.tolist()), sep=" "
        )
    if not solved:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
