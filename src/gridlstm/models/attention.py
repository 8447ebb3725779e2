"""An encoder–decoder with attention, which the Reencoder is compared with."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm.checks import check_dropout, check_positive
from gridlstm.models.depth_gated import DepthGatedLSTM
from gridlstm.models.translator import Progress, Translator
from gridlstm.ranges import check_number
from gridlstm.state import State

__all__ = ["AttentionTranslator"]


class AttentionTranslator(Translator):
    r"""A recurrent encoder–decoder with soft attention (Bahdanau, Cho and Bengio, 2015).

    The encoder reads the source sentence in both directions; :math:`a_i` is what both say at word i.
    For every target word the decoder, in state s, forms a mean of them and reads it beside the word
    before:

    .. math::
        e_i = v^\top \tanh(W s + U a_i)  \qquad  c = \sum_i \mathrm{softmax}(e)_i \, a_i

    Args:
        source_words: the number of different words in source sentences.
        target_words: the number of different words in target sentences, marks included.
        hidden_size: the length of the hidden vectors of the decoder and of each direction of the
            encoder, and of v.
        num_layers: layers of the decoder and of each direction of the encoder.
        depth_gates: connect the memories of adjacent layers, as in DGLSTM (Yao et al., 2015).
        embedding_size: the length of the vectors of words. Default: ``hidden_size``.
        dropout: on vectors of words, between layers, and before the scores, in training mode.
        forget_bias: what the bias of the forget gates starts from.
        device: where the parameters live.
        dtype: the dtype of the parameters.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a size is not positive, dropout is no probability below 1, or there are to be
            depth gates in a single layer.

    Notes:
        Cells are those of ``torch.nn.LSTM`` instead of gated recurrent units, and scores are read
        through one layer of tanh instead of maxout. The decoder starts from what the backward encoder
        says at the first word, with an empty memory.

    >>> net = AttentionTranslator(source_words=9, target_words=7, hidden_size=8)
    >>> net(torch.tensor([[3, 4, 5]]), torch.tensor([[1, 4]])).shape
    torch.Size([1, 2, 7])
    """

    def __init__(
        self,
        source_words: int,
        target_words: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        depth_gates: bool = False,
        embedding_size: int | None = None,
        dropout: float = 0.0,
        forget_bias: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(source_words, target_words)
        embedding_size = hidden_size if embedding_size is None else embedding_size
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        check_positive("embedding_size", embedding_size)
        check_dropout(dropout)
        check_number("forget_bias", forget_bias)
        if depth_gates and num_layers == 1:
            raise ValueError("num_layers: expected at least 2 for depth gates between them, got 1")
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.dropout = dropout
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        cells = {"gated": depth_gates, "forget_bias": forget_bias, "dropout": dropout, **place}
        d, e = hidden_size, embedding_size
        self.source = nn.Embedding(source_words, e, **place)
        self.target = nn.Embedding(target_words, e, **place)
        self.forwards = DepthGatedLSTM(e, d, num_layers, **cells)
        self.backwards = DepthGatedLSTM(e, d, num_layers, **cells)
        self.decoder = DepthGatedLSTM(e + 2 * d, d, num_layers, **cells)
        self.initial = nn.Linear(d, num_layers * d, **place)
        self.keys = nn.Linear(2 * d, d, bias=False, **place)
        self.query = nn.Linear(d, d, **place)
        self.energy = nn.Linear(d, 1, bias=False, **place)
        self.readout = nn.Linear(e + 3 * d, d, **place)
        self.scores = nn.Linear(d, target_words, **place)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for words in (self.source, self.target):
            nn.init.normal_(words.weight, std=words.embedding_dim**-0.5)
        for layers in (self.forwards, self.backwards, self.decoder):
            layers.reset_parameters()
        for linear in (self.initial, self.keys, self.query, self.energy, self.readout, self.scores):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                linear.bias.zero_()

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Word after word; the scores of all at once."""
        return self.scores(self._decode(source, target, lengths)[0])  # type: ignore[no-any-return]

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """The weights of attention: one map, and the weights of a target word sum up to 1."""
        return self._decode(source, target, lengths)[1].unsqueeze(0)

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """What there is to attend to and where, then the decoder's hidden and memory vectors."""
        words = self._drop(self.source(source))
        back = self.backwards(words, lengths, reverse=True)
        said = torch.cat((self.forwards(words, lengths), back), -1)
        beyond = torch.arange(source.shape[1], device=source.device) >= lengths.unsqueeze(-1)
        hidden = self.initial(back[:, 0]).tanh().chunk(self.num_layers, -1)
        states = [vector for h in hidden for vector in (h, torch.zeros_like(h))]
        return said, self.keys(said), beyond, *states

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Attends, and reads a word."""
        read, _, progress = self._step(self._drop(self.target(words)), progress)
        return self.scores(read), progress

    def _decode(self, source: Tensor, target: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What scores are made of, ``[batch, target, hidden]``, and weights."""
        progress = self.begin(source, lengths)
        reads, weights = [], []
        for word in self._drop(self.target(target)).unbind(1):
            read, weight, progress = self._step(word, progress)
            reads.append(read)
            weights.append(weight)
        return torch.stack(reads, 1), torch.stack(weights, 1)

    def _step(self, word: Tensor, progress: Progress) -> tuple[Tensor, Tensor, Progress]:
        said, keys, beyond, *vectors = progress
        states = [State(h, m) for h, m in zip(vectors[::2], vectors[1::2], strict=True)]
        query = self.query(states[-1].hidden).unsqueeze(1)
        energy = self.energy((keys + query).tanh()).squeeze(-1)
        weights = energy.masked_fill(beyond, float("-inf")).softmax(-1)
        context = torch.bmm(weights.unsqueeze(1), said).squeeze(1)
        states = self.decoder.step(torch.cat((word, context), -1), states)
        read = self.readout(torch.cat((states[-1].hidden, context, word), -1)).tanh()
        left = [vector for state in states for vector in state]
        return self._drop(read), weights, (said, keys, beyond, *left)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)
