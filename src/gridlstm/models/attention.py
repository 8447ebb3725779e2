"""An encoder–decoder with attention, to compare with the Reencoder."""

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

    The encoder reads the source sentence in both directions; :math:`a_i` are the outputs of both at
    word i. For every target word the decoder, in state s, reads a weighted mean c of them together with
    the previous word:

    .. math::
        e_i = v^\top \tanh(W s + U a_i)  \qquad  c = \sum_i \mathrm{softmax}(e)_i \, a_i

    Args:
        source_words: the size of the source vocabulary.
        target_words: the size of the target vocabulary, with the begin and end marks.
        hidden_size: the length of the hidden vectors of the decoder and of each direction of the
            encoder, and of v.
        num_layers: the number of layers of the decoder and of each direction of the encoder.
        depth_gates: connect the memories of adjacent layers, as in DGLSTM (Yao et al., 2015).
        embedding_size: the length of the word vectors. Default: ``hidden_size``.
        dropout: on word vectors, between layers, and before the scores, in training mode.
        forget_bias: the initial bias of the forget gates.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if a size is not positive, dropout is not at least 0 and below 1, or a single layer
            has depth gates.

    Notes:
        Unlike in the paper, cells are those of ``torch.nn.LSTM`` instead of gated recurrent units, and
        scores are read through one layer of tanh instead of maxout. The decoder starts from the output
        of the backward encoder at the first word, with a memory of zeros.

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
        """Initialises all weights."""
        for words in (self.source, self.target):
            nn.init.normal_(words.weight, std=words.embedding_dim**-0.5)
        for layers in (self.forwards, self.backwards, self.decoder):
            layers.reset_parameters()
        for linear in (self.initial, self.keys, self.query, self.energy, self.readout, self.scores):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                linear.bias.zero_()

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Decodes word by word, and scores all words at once."""
        return self.scores(self._decode(source, target, lengths)[0])  # type: ignore[no-any-return]

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """The attention weights: one map, in which the weights of each target word sum to 1."""
        return self._decode(source, target, lengths)[1].unsqueeze(0)

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        """The encoder's outputs, keys and padding, then the decoder's hidden and memory vectors."""
        words = self._drop(self.source(source))
        back = self.backwards(words, lengths, reverse=True)
        encoded = torch.cat((self.forwards(words, lengths), back), -1)
        padding = torch.arange(source.shape[1], device=source.device) >= lengths.unsqueeze(-1)
        hidden = self.initial(back[:, 0]).tanh().chunk(self.num_layers, -1)
        states = [vector for h in hidden for vector in (h, torch.zeros_like(h))]
        return encoded, self.keys(encoded), padding, *states

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        """Attends to the source, and reads one word."""
        readout, _, progress = self._step(self._drop(self.target(words)), progress)
        return self.scores(readout), progress

    def _decode(self, source: Tensor, target: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The readouts, ``[batch, target, hidden]``, and the attention weights."""
        progress = self.begin(source, lengths)
        readouts, weights = [], []
        for word in self._drop(self.target(target)).unbind(1):
            readout, weight, progress = self._step(word, progress)
            readouts.append(readout)
            weights.append(weight)
        return torch.stack(readouts, 1), torch.stack(weights, 1)

    def _step(self, word: Tensor, progress: Progress) -> tuple[Tensor, Tensor, Progress]:
        encoded, keys, padding, *vectors = progress
        states = [State(h, m) for h, m in zip(vectors[::2], vectors[1::2], strict=True)]
        query = self.query(states[-1].hidden).unsqueeze(1)
        energy = self.energy((keys + query).tanh()).squeeze(-1)
        weights = energy.masked_fill(padding, float("-inf")).softmax(-1)
        context = torch.bmm(weights.unsqueeze(1), encoded).squeeze(1)
        states = self.decoder.step(torch.cat((word, context), -1), states)
        readout = self.readout(torch.cat((states[-1].hidden, context, word), -1)).tanh()
        vectors = [vector for state in states for vector in state]
        return self._drop(readout), weights, (encoded, keys, padding, *vectors)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)
