"""The Reencoder: translation with grids over source and target sentence (section 4.4)."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Unpack

from gridlstm.checks import check_choice, check_dropout, check_options, check_positive
from gridlstm.dim import Dim
from gridlstm.grid import GridLSTM
from gridlstm.grid_options import GridOptions
from gridlstm.models.depth_gated import DepthGatedLSTM
from gridlstm.models.grid_stack import GridStack
from gridlstm.models.projection import Projection, read
from gridlstm.models.translator import Progress, Translator
from gridlstm.state import State

__all__ = ["Entry", "Reencoder"]

Entry = Literal["first", "every", "blocks"]
"""Where words enter a Reencoder."""


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
            depth side of the grid below; with ``"every"``, the same vectors enter every grid. With
            ``"blocks"``, words also enter each block of the first grid, along depth: the sum of a
            projection of its source word and one of its target word.
        embedding_size: the length of the word vectors, which are projected into the hidden and memory
            vectors of a side, and of the vectors from which words are predicted. Default: a word has a
            hidden and a memory vector of its own, ``2 · hidden_size`` in all, without a projection.
        encoder: read the source sentence with an LSTM in each direction before it enters, so that the
            vectors of a source word depend on the whole sentence. Not in the paper.
        side_dropout: the probability of dropping each value of the word vectors and of the vectors from
            which words are predicted, in training mode.
        options: any further argument of :class:`GridLSTM`; ``dropout`` acts on the hidden vectors that
            the blocks read.

    Variables:
        source.weight: the vectors of source words, ``[source_words, 2 · hidden]``: hidden, then memory;
            ``[source_words, embedding]`` with a projection.
        target.weight: the same for target words.
        enter_source, enter_target: the projections of word vectors, if ``embedding_size`` is given, or
            of the encoder's output.
        blocks_source, blocks_target: the projections that enter every block, with ``"blocks"``.
        forwards, backwards: the two directions of the encoder.
        leave.weight: ``[embedding, 2 · hidden]``, if ``embedding_size`` is given.
        stack.grids.K: the grid of layer K. Weights are tied along source and target; every layer has
            its own.
        scores.weight: ``[target_words, 2 · hidden]`` or ``[target_words, embedding]``.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a size is not positive or an option is out of range.

    Notes:
        - Words are projected into both vectors of a side, and predictions are read from both, as in the
          paper's language model. Word vectors are initialised from a normal distribution with standard
          deviation ``hidden_size ** -0.5``, or ``embedding_size ** -0.5`` with a projection.
        - Depth is a non-LSTM dimension with the identity (Eq. 8), as in the paper. Nothing enters the
          first grid along it, except with ``"blocks"``, which is not in the paper; Bahar, Brix and Ney
          (2018) let words enter every block of a two-dimensional LSTM.
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
        embedding_size: int | None = None,
        encoder: bool = False,
        side_dropout: float = 0.0,
        **options: Unpack[GridOptions],
    ) -> None:
        super().__init__(source_words, target_words)
        check_options(self, options, GridOptions.__annotations__)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_choice("entry", entry, get_args(Entry))
        check_dropout(side_dropout, "side_dropout")
        if embedding_size is not None:
            check_positive("embedding_size", embedding_size)
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
        place: dict[str, Any] = {"device": options.get("device"), "dtype": options.get("dtype")}
        bias, pair = options.get("bias", True), 2 * hidden_size
        size = pair if embedding_size is None else embedding_size
        self.source = nn.Embedding(source_words, size, **place)
        self.target = nn.Embedding(target_words, size, **place)
        self.forwards: DepthGatedLSTM | None = None
        self.backwards: DepthGatedLSTM | None = None
        self.enter_source: Projection | None = None
        self.enter_target: Projection | None = None
        self.leave: nn.Linear | None = None
        if encoder:
            cells = {"forget_bias": options.get("forget_bias", 1.0), **place}
            self.forwards, self.backwards = (DepthGatedLSTM(size, hidden_size, **cells) for _ in "fb")
        if encoder or embedding_size is not None:
            width = pair if encoder else size
            self.enter_source = Projection(width, hidden_size, memory=True, bias=bias, **place)
        self.blocks_source: Projection | None = None
        self.blocks_target: Projection | None = None
        if entry == "blocks":
            width = pair if encoder else size
            self.blocks_source = Projection(width, hidden_size, memory=False, bias=bias, **place)
            self.blocks_target = Projection(size, hidden_size, memory=False, bias=False, **place)
        if embedding_size is not None:
            self.enter_target = Projection(size, hidden_size, memory=True, bias=bias, **place)
            self.leave = nn.Linear(pair, size, bias=False, **place)
        self.scores = nn.Linear(size, target_words, bias, **place)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises all weights."""
        for grid in self.stack.layers:
            grid.reset_parameters()
        for words, entering in ((self.source, self.enter_source), (self.target, self.enter_target)):
            size = self.hidden_size if entering is None else words.embedding_dim
            nn.init.normal_(words.weight, std=size**-0.5)
        projections = (self.enter_source, self.enter_target, self.blocks_source, self.blocks_target)
        for module in (self.forwards, self.backwards, *projections):
            if module is not None:
                module.reset_parameters()
        for linear in (self.leave, self.scores):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
        if self.scores.bias is not None:
            self.scores.bias.zero_()

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Runs all rows at once."""
        out = self.stack(self._sides(source, target, lengths), lengths={"source": lengths})
        return self._read(out[-1]["source"])

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """The lengths, and the hidden and memory vectors of each grid's target side.

        With ``entry="blocks"``, last what source words add to every block.
        """
        words = self._source_words(source, lengths)
        entering = _side(words, self.enter_source)
        above = entering if self.entry == "every" else entering.map(torch.zeros_like)
        others = [vector for _ in range(1, self.num_layers) for vector in above]
        return lengths, *entering, *others, *self._added(words)

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Runs one row of blocks in each grid."""
        lengths, *vectors = progress
        carried, added = vectors[: 2 * self.num_layers], vectors[2 * self.num_layers :]
        below = [State(h, m) for h, m in zip(carried[::2], carried[1::2], strict=True)]
        previous = self._target_words(words.unsqueeze(1))
        entering = self._enter({"source": _side(previous, self.enter_target)}, previous, *added)
        sides = [{**words, "target": target} for words, target in zip(entering, below, strict=True)]
        out = self.stack(sides, lengths={"source": lengths})
        carried = [vector for layer in out for vector in layer["target"]]
        return self._read(out[-1]["source"]).squeeze(1), (lengths, *carried, *added)

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """How much each block changes the memory of its row: ``‖m' - m‖`` along the source dimension.

        One map per grid. A row carries this memory across the source sentence to the prediction; a
        block that does not change it ignores its source word.
        """
        maps: list[Tensor] = []
        below: dict[str, State] = {}
        entering = self._sides(source, target, lengths)
        for grid, words in zip(self.stack.layers, entering, strict=True):
            sides = {**words, **below}
            out, blocks = grid(sides, lengths={"source": lengths}, trace=True)
            new = blocks["source"].memory.squeeze(-2)  # [batch, source, target, hidden]
            first = sides["source"].memory if "source" in sides else None
            first = torch.zeros_like(new[:, :1]) if first is None else first.transpose(1, 2)
            old = [new[:, 1:], first] if grid.dims[0].reverse else [first, new[:, :-1]]
            maps.append((new - torch.cat(old, 1)).norm(dim=-1).mT)
            below = {"depth": out["depth"]}
        return torch.stack(maps)

    def _sides(self, source: Tensor, target: Tensor, lengths: Tensor) -> list[dict[str, State]]:
        words, previous = self._source_words(source, lengths), self._target_words(target)
        sides = {
            "target": _side(words, self.enter_source),
            "source": _side(previous, self.enter_target),
        }
        return self._enter(sides, previous, *self._added(words))

    def _added(self, words: Tensor) -> tuple[Tensor, ...]:
        """What source words add to every block, ``[batch, source, hidden]``, if they do."""
        return () if self.blocks_source is None else (self.blocks_source(words).hidden,)

    def _enter(
        self, sides: dict[str, State], previous: Tensor, *added: Tensor
    ) -> list[dict[str, State]]:
        """The sides with which words enter each grid.

        Args:
            sides: those along source and target.
            previous: the vectors of target words, ``[batch, target, size]``.
            added: see :meth:`_added`.
        """
        above = sides if self.entry == "every" else {}
        if self.blocks_target is not None:
            along_target = self.blocks_target(previous).hidden.unsqueeze(1)
            sides = {**sides, "depth": State(added[0].unsqueeze(2) + along_target)}
        return [sides, *[above] * (self.num_layers - 1)]

    def _source_words(self, sentence: Tensor, lengths: Tensor) -> Tensor:
        words = self._drop(self.source(sentence))
        if self.forwards is not None and self.backwards is not None:
            both = self.forwards(words, lengths), self.backwards(words, lengths, reverse=True)
            words = self._drop(torch.cat(both, -1))
        return words

    def _target_words(self, sentence: Tensor) -> Tensor:
        return self._drop(self.target(sentence))

    def _read(self, side: State) -> Tensor:
        vectors = read(side, "both").squeeze(-2)
        if self.leave is not None:
            vectors = self.leave(vectors)
        scores: Tensor = self.scores(self._drop(vectors))
        return scores

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.side_dropout, self.training)


def _side(words: Tensor, project: Projection | None) -> State:
    """Word vectors as a side of a grid of depth 1, ``[batch, words, 1, hidden]`` each."""
    pair = State(*words.chunk(2, -1)) if project is None else project(words)
    return pair.map(lambda t: t.unsqueeze(-2))
