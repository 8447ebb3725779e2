"""The Reencoder: translation with grids over source and target sentence (section 4.4)."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Unpack

from gridlstm.checks import check_choice, check_dropout, check_options, check_positive
from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.grid_stack import GridStack
from gridlstm.models.projection import read
from gridlstm.models.translator import Progress, Translator
from gridlstm.state import State

__all__ = ["Entry", "Reencoder"]

Entry = Literal["first", "every"]
"""The grids of a Reencoder that words enter."""


class Reencoder(Translator):
    """The 3-LSTM that re-encodes the source sentence for every target word (section 4.4, Figure 7).

    A grid has one block per pair of source and target words; two or more such grids are stacked along
    depth. The vectors of source word i enter the first grid along the *target* dimension at column i,
    those of target word j - 1 along the *source* dimension at row j. So row j scans the source sentence
    once in every grid, in alternating directions, and reads what previous target words have left in
    each column. Word j is predicted from the hidden and memory vectors of row j that leave the last
    grid along the source dimension. Row 1 starts with the begin mark. The target dimension is always
    travelled forwards, so a word depends only on the words before it.

    Args:
        source_words: the size of the source vocabulary.
        target_words: the size of the target vocabulary, with the begin and end marks.
        hidden_size: the length of the hidden and memory vectors.
        num_layers: the number of grids. The first scans the source forwards, the second backwards, and
            so on. With an even number, the last block of a row is above the block where the previous
            target word entered, so the path from one target word to the next is ``num_layers`` blocks
            long, whatever the length of the source.
        entry: with ``"first"``, words enter the first grid only, and the grids above receive only the
            depth side of the grid below; with ``"every"``, the same vectors enter every grid.
        side_dropout: the probability of dropping each value of the hidden and memory vectors with which
            words enter and from which they are predicted, in training mode.
        options: any further argument of :class:`GridLSTM`; ``dropout`` acts on the hidden vectors that
            the blocks read.

    Variables:
        source.weight: the vectors of source words, ``[source_words, 2 · hidden]``: hidden, then memory.
        target.weight: the same for target words.
        stack.grids.K: the grid of layer K. Weights are tied along source and target; every layer has
            its own.
        scores.weight: ``[target_words, 2 · hidden]``.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a size is not positive or an option is out of range.

    Notes:
        - Words are projected into both vectors of a side, and predictions are read from both, as in the
          paper's language model. Word vectors are initialised from a normal distribution with standard
          deviation ``hidden_size ** -0.5``.
        - Depth is a non-LSTM dimension with the identity (Eq. 8), as in the paper. Nothing enters the
          first grid along it.
        - The paper does not say whether words enter the grids above the first: ``entry`` chooses. With
          ``"first"`` those sides are zero.
        - Source sentences are masked by their lengths: a block beyond the end passes its vectors on.
        - In the paper, dropout acts on the hidden values that blocks read (``dropout``). The memories
          of words are not dropped, so a model can overfit a small corpus through them; hence
          ``side_dropout``.

    >>> net = Reencoder(source_words=9, target_words=7, hidden_size=8)
    >>> source, target = torch.tensor([[3, 4, 5], [8, 0, 0]]), torch.tensor([[1, 4], [1, 5]])
    >>> scores = net(source, target, lengths=torch.tensor([3, 1]))
    >>> scores.shape
    torch.Size([2, 2, 7])
    >>> first, progress = net.step(target[:, 0], net.start(source, torch.tensor([3, 1])))
    >>> bool(torch.allclose(first, scores[:, 0], atol=1e-6))
    True
    """

    def __init__(
        self,
        source_words: int,
        target_words: int,
        hidden_size: int,
        num_layers: int = 2,
        *,
        entry: Entry = "first",
        side_dropout: float = 0.0,
        **options: Unpack[GridOptions],
    ) -> None:
        super().__init__(source_words, target_words)
        check_options(self, options, GridOptions.__annotations__)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_choice("entry", entry, get_args(Entry))
        check_dropout(side_dropout, "side_dropout")
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.entry = entry
        self.side_dropout = side_dropout
        self.stack = GridStack(
            [
                GridLSTM(
                    [
                        Dim("source", reverse=layer % 2 == 1),
                        Dim("target"),
                        Dim("depth", "identity", size=1),
                    ],
                    hidden_size,
                    **options,
                )
                for layer in range(num_layers)
            ],
            along="depth",
        )
        device, dtype = options.get("device"), options.get("dtype")
        pair = 2 * hidden_size
        self.source = nn.Embedding(source_words, pair, device=device, dtype=dtype)
        self.target = nn.Embedding(target_words, pair, device=device, dtype=dtype)
        bias = options.get("bias", True)
        self.scores = nn.Linear(pair, target_words, bias, device=device, dtype=dtype)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises all weights."""
        for grid in self.stack.layers:
            grid.reset_parameters()
        for words in (self.source, self.target):
            nn.init.normal_(words.weight, std=self.hidden_size**-0.5)
        nn.init.xavier_uniform_(self.scores.weight)
        if self.scores.bias is not None:
            self.scores.bias.zero_()

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Runs all rows at once."""
        out = self.stack(self._sides(source, target), lengths={"source": lengths})
        return self._read(out[-1]["source"])

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """The lengths, then the hidden and memory vectors of each grid's target side."""
        entering = self._side(self.source, source)
        above = entering if self.entry == "every" else entering.map(torch.zeros_like)
        return lengths, *entering, *[vector for _ in range(1, self.num_layers) for vector in above]

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Runs one row of blocks in each grid."""
        lengths, *vectors = progress
        carried = [State(h, m) for h, m in zip(vectors[::2], vectors[1::2], strict=True)]
        entering = self._enter({"source": self._side(self.target, words.unsqueeze(1))})
        sides = [{**words, "target": target} for words, target in zip(entering, carried, strict=True)]
        out = self.stack(sides, lengths={"source": lengths})
        vectors = [vector for layer in out for vector in layer["target"]]
        return self._read(out[-1]["source"]).squeeze(1), (lengths, *vectors)

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """How much each block changes the memory of its row: ``‖m' - m‖`` along the source dimension.

        One map per grid. A row carries this memory across the source sentence to the prediction; a
        block that does not change it ignores its source word.
        """
        maps: list[Tensor] = []
        below: dict[str, State] = {}
        for grid, words in zip(self.stack.layers, self._sides(source, target), strict=True):
            sides = {**words, **below}
            out, blocks = grid(sides, lengths={"source": lengths}, trace=True)
            new = blocks["source"].memory.squeeze(-2)  # [batch, source, target, hidden]
            first = sides["source"].memory if "source" in sides else None
            first = torch.zeros_like(new[:, :1]) if first is None else first.transpose(1, 2)
            old = [new[:, 1:], first] if grid.dims[0].reverse else [first, new[:, :-1]]
            maps.append((new - torch.cat(old, 1)).norm(dim=-1).mT)
            below = {"depth": out["depth"]}
        return torch.stack(maps)

    def _sides(self, source: Tensor, target: Tensor) -> list[dict[str, State]]:
        return self._enter(
            {"target": self._side(self.source, source), "source": self._side(self.target, target)}
        )

    def _enter(self, sides: dict[str, State]) -> list[dict[str, State]]:
        """The sides with which words enter each grid."""
        return [sides, *[sides if self.entry == "every" else {}] * (self.num_layers - 1)]

    def _read(self, side: State) -> Tensor:
        scores: Tensor = self.scores(self._drop(read(side, "both").squeeze(-2)))
        return scores

    def _side(self, words: nn.Embedding, sentence: Tensor) -> State:
        """Word vectors as a side of a grid of depth 1, ``[batch, words, 1, hidden]`` each."""
        return State(*self._drop(words(sentence)).unsqueeze(-2).chunk(2, -1))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.side_dropout, self.training)
