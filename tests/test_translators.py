"""Models that translate: what they compute, what can and cannot affect a prediction, and decoding."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.numpy_grid import Weights, block, lstm, sigmoid
from torch import Tensor, nn
from torch.nn import functional as F

from gridlstm import AttentionTranslator, Reencoder, State
from gridlstm.models.depth_gated import DepthGatedLSTM
from gridlstm.models.translator import Ensemble, Translator, select_sentences

SOURCE, TARGET = 11, 9


def reencoder(**options: object) -> Translator:
    return Reencoder(SOURCE, TARGET, 6, dtype=torch.float64, **options)  # type: ignore[arg-type]


def attention(**options: object) -> Translator:
    return AttentionTranslator(SOURCE, TARGET, 6, dtype=torch.float64, **options)  # type: ignore[arg-type]


MODELS: dict[str, Callable[[], Translator]] = {
    "reencoder": reencoder,
    "reencoder, one grid": lambda: reencoder(num_layers=1),
    "reencoder, three grids": lambda: reencoder(num_layers=3),
    "reencoder, words in every grid": lambda: reencoder(num_layers=3, entry="every"),
    "reencoder, words in every block": lambda: reencoder(entry="blocks"),
    "reencoder, all options": lambda: reencoder(entry="blocks", encoder=True, embedding_size=5),
    "reencoder, short word vectors": lambda: reencoder(embedding_size=5),
    "reencoder, encoder": lambda: reencoder(encoder=True),
    "reencoder, encoder and long word vectors": lambda: reencoder(encoder=True, embedding_size=17),
    "reencoder, reference": lambda: reencoder(engine="reference"),
    "attention": attention,
    "depth-gated": lambda: attention(num_layers=3, depth_gates=True, embedding_size=4),
    "ensemble": lambda: Ensemble([reencoder(), attention(), reencoder(num_layers=1)]),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Translator:
    torch.manual_seed(1)
    made = MODELS[request.param]()
    with torch.no_grad():
        for parameter in made.parameters():  # Biases too, and no peephole is zero.
            parameter.copy_(torch.randn_like(parameter) * 0.6)
    return made.eval()


def sentences(batch: int = 4, source: int = 7, target: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    lengths = torch.tensor([source, 3, source - 1, 1])[:batch]
    shapes = ((SOURCE, source), (TARGET, target))
    return *(torch.randint(0, n, (batch, size)) for n, size in shapes), lengths


def test_single_steps_are_the_whole_forward(model: Translator) -> None:
    source, target, lengths = sentences()
    whole = model(source, target, lengths)
    progress, found = model.start(source, lengths), []
    for words in target.unbind(1):
        scores, progress = model.step(words, progress)
        found.append(scores)
    torch.testing.assert_close(torch.stack(found, 1), whole, rtol=1e-9, atol=1e-9)


def test_a_word_has_no_effect_on_what_comes_before_it(model: Translator) -> None:
    source, target, lengths = sentences()
    before = model(source, target, lengths)
    for place in range(target.shape[1]):
        changed = target.clone()
        changed[:, place] = (target[:, place] + 1) % TARGET
        after = model(source, changed, lengths)
        assert torch.equal(after[:, :place], before[:, :place])
        # And it does on all that comes after it.
        assert ((after - before)[:, place:].abs().amax(-1) > 1e-9).all()


def test_padding_has_no_effect(model: Translator) -> None:
    source, target, lengths = sentences()
    beyond = torch.arange(source.shape[1]) >= lengths.unsqueeze(-1)
    upstream = torch.randn(len(source), target.shape[1], TARGET, dtype=torch.float64)

    def run(words: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        model.zero_grad()
        scores = model(words, target, lengths)
        (scores * upstream).sum().backward()
        return scores.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}

    scores, gradients = run(source.masked_fill(beyond, 0))
    other_scores, other_gradients = run(source.masked_fill(beyond, 5))
    assert torch.equal(scores, other_scores)
    total = dict.fromkeys(gradients, 0.0)
    for row, length in enumerate(lengths.tolist()):
        model.zero_grad()
        alone = model(source[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone[0], scores[row], rtol=1e-9, atol=1e-9)
        (alone[0] * upstream[row]).sum().backward()
        for name, parameter in model.named_parameters():
            total[name] = total[name] + parameter.grad
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, other_gradients[name], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(gradient, total[name], rtol=1e-7, atol=1e-9)


def test_every_source_word_has_an_effect_on_every_prediction(model: Translator) -> None:
    source, target, _ = sentences()
    before = model(source, target)
    for place in range(source.shape[1]):
        changed = source.clone()
        changed[:, place] = (source[:, place] + 1) % SOURCE
        assert ((model(changed, target) - before).abs().amax(-1) > 1e-9).all()


def test_sentences_under_way_can_be_reordered_repeated_and_dropped(model: Translator) -> None:
    source, target, lengths = sentences()
    rows = torch.tensor([2, 0, 0, 3, 2])
    _, progress = model.step(target[:, 0], model.start(source, lengths))
    found, _ = model.step(target[rows, 1], select_sentences(progress, rows))
    _, progress = model.step(target[rows, 0], model.start(source[rows], lengths[rows]))
    expected, _ = model.step(target[rows, 1], progress)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("entry", ["first", "every", "blocks"])
def test_the_reencoder_is_what_the_paper_says(entry: str) -> None:
    """Word by word and block by block in NumPy: sides, directions, stacking and where it is read."""
    torch.manual_seed(0)
    net = Reencoder(SOURCE, TARGET, 4, entry=entry, dtype=torch.float64)  # type: ignore[arg-type]
    source, target = torch.randint(0, SOURCE, (5,)), torch.randint(0, TARGET, (3,))
    tables = {name: p.detach().numpy() for name, p in net.named_parameters()}
    zero = np.zeros(4)

    def enter(table: str, word: int) -> tuple[np.ndarray, np.ndarray]:
        h, m = np.split(tables[f"{table}.weight"][word], 2)
        return h, m

    def run(layer: int, along_source, along_target, along_depth, order):
        """Rows of a grid; gives what leaves along source in each row, and along depth at each block."""
        grid = net.stack.layers[layer]
        weights = [
            Weights({kind: tables[f"stack.grids.{layer}.{kind}_{n}"] for kind in ("weight", "bias")})
            for n in ("source", "target", "depth")
        ]
        left, up = [], {}
        for row in range(len(target)):
            travelling = along_source[row]
            for column in order:
                arriving = [travelling, along_target[column], (along_depth[row, column], zero[:0])]
                leaving = block(grid, weights, arriving)
                travelling, along_target[column], (up[row, column], _) = leaving
            left.append(travelling)
        return left, up

    below = {(row, column): zero for row in range(3) for column in range(5)}
    if entry == "blocks":
        for row, column in below:
            below[row, column] = tables["blocks_source.linear.bias"] + sum(
                tables[f"blocks_{name}.linear.weight"] @ tables[f"{name}.weight"][word]
                for name, word in (("source", source[column]), ("target", target[row]))
            )
    words = [enter("target", word) for word in target.tolist()]
    columns = [enter("source", word) for word in source.tolist()]
    _, up = run(0, words, list(columns), below, range(5))
    if entry != "every":
        words, columns = [(zero, zero)] * 3, [(zero, zero)] * 5
    left, _ = run(1, words, columns, up, range(5)[::-1])
    read = np.array([np.concatenate(pair) for pair in left])
    expected = read @ tables["scores.weight"].T + tables["scores.bias"]
    found = net(source.unsqueeze(0), target.unsqueeze(0))[0].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_way_between_target_words_is_short_however_long_the_source_is() -> None:
    """A forget gate that is shut cuts all ways but the one through the first column."""
    net = Reencoder(SOURCE, TARGET, 6, dtype=torch.float64)
    with torch.no_grad():
        for grid in net.stack.layers:
            _, bias = grid.weights_of("target")
            for gate in bias.chunk(4)[:3]:
                gate.fill_(-1e3)
    target = torch.randint(0, TARGET, (1, 3))
    effects = []
    for length in (2, 40):
        entering = net.target(target).detach().requires_grad_()
        source = torch.full((1, length), 3)
        net.target.forward = lambda _, entering=entering: entering  # type: ignore[method-assign]
        scores = net(source, target)[0, 2]
        (gradient,) = torch.autograd.grad(scores.square().sum(), entering)
        assert (gradient[0, :2] == 0).all()
        effects.append(gradient[0, 2].norm().item())
    assert effects[1] > 0.2 * effects[0] > 0


def test_parameters_of_the_reencoder() -> None:
    """Two grids of 4 d + 4 d + d rows over 3 d columns; pairs of vectors for words and scores."""
    net = Reencoder(SOURCE, TARGET, 10)
    blocks = 2 * (90 * 30 + 90)
    assert sum(p.numel() for p in net.parameters()) == blocks + 20 * (SOURCE + 2 * TARGET) + TARGET


def test_projected_word_vectors_are_pairs_of_vectors() -> None:
    """A Reencoder without projections whose words have the projected pairs gives the same scores."""
    torch.manual_seed(0)
    short = Reencoder(SOURCE, TARGET, 6, embedding_size=5, dtype=torch.float64)
    pairs = Reencoder(SOURCE, TARGET, 6, dtype=torch.float64)
    pairs.stack.load_state_dict(short.stack.state_dict())
    assert short.enter_source is not None
    assert short.enter_target is not None
    assert short.leave is not None
    with torch.no_grad():
        pairs.source.weight.copy_(short.enter_source.linear(short.source.weight))
        pairs.target.weight.copy_(short.enter_target.linear(short.target.weight))
        pairs.scores.weight.copy_(short.scores.weight @ short.leave.weight)
        pairs.scores.bias.copy_(short.scores.bias.normal_())
    source, target, lengths = sentences()
    expected = pairs(source, target, lengths)
    torch.testing.assert_close(short(source, target, lengths), expected)
    assert short.source.weight.shape == (SOURCE, 5)
    assert short.scores.weight.shape == (TARGET, 5)


def test_the_encoder_of_a_reencoder_reads_the_whole_sentence() -> None:
    """What enters the first column depends on the last word of a sentence, and on none beyond it."""
    torch.manual_seed(0)
    net = Reencoder(SOURCE, TARGET, 6, encoder=True, dtype=torch.float64)
    source, _, lengths = sentences()
    entering = net.start(source, lengths)[1]
    for place, effect in ((2, True), (3, False)):  # The second sentence has three words.
        other = source.clone()
        other[1, place] = (source[1, place] + 1) % SOURCE
        changed = net.start(other, lengths)[1]
        assert (changed[1, 0] != entering[1, 0]).any() == effect
        assert torch.equal(changed[0], entering[0])


def test_alignment_is_the_change_of_memory_along_a_row() -> None:
    """Against grids over parts of the source: the memory that leaves after this many columns."""
    torch.manual_seed(0)
    net = Reencoder(SOURCE, TARGET, 6, dtype=torch.float64)
    source, target, lengths = sentences()
    maps = net.align(source, target, lengths)
    assert maps.shape == (2, 4, 5, 7)
    assert (maps[:, 1, :, 3:] == 0).all()
    assert (maps[:, 1, :, :3] > 0).all()
    first, second = net.stack.layers
    sides = {
        side: State(*words(sentence[:1]).unsqueeze(-2).chunk(2, -1))
        for side, words, sentence in (("target", net.source, source), ("source", net.target, target))
    }

    def left(columns: int) -> Tensor:
        """The memory of each row after this many columns of the first grid."""
        if not columns:
            return sides["source"].memory[:, :, 0]
        cut = sides["target"].map(lambda t: t[:, :columns])
        return first({"source": sides["source"], "target": cut})["source"].memory[:, :, 0]

    changes = torch.stack([(left(k + 1) - left(k)).norm(dim=-1)[0] for k in range(7)], -1)
    torch.testing.assert_close(maps[0, 0], changes)
    up = first(sides)["depth"]

    def back(column: int) -> Tensor:
        """The memory of each row after the columns from the last one to this, in the second grid."""
        if column == 7:
            return torch.zeros(1, 5, 6, dtype=torch.float64)
        return second({"depth": up.map(lambda t: t[:, column:])})["source"].memory[:, :, 0]

    changes = torch.stack([(back(k) - back(k + 1)).norm(dim=-1)[0] for k in range(7)], -1)
    torch.testing.assert_close(maps[1, 0], changes)


def test_attention_is_that_of_the_paper() -> None:
    """The first word, in NumPy: encoder, energies, mean, decoder, scores."""
    torch.manual_seed(0)
    net = AttentionTranslator(SOURCE, TARGET, 4, dtype=torch.float64)
    p = {name: value.detach().numpy() for name, value in net.named_parameters()}
    source = [3, 7, 1]

    def cell(name: str, x: np.ndarray, state: tuple[np.ndarray, np.ndarray]):
        W = np.hstack((p[f"{name}.layers.0.input.weight"], p[f"{name}.layers.0.recurrent.weight"]))
        H = np.concatenate((x, state[0]))
        b = p[f"{name}.layers.0.input.bias"]
        return lstm(H, state[1], Weights(weight=W, bias=b), "standard")

    def read(name: str, order: list[int]) -> dict[int, np.ndarray]:
        state, found = (np.zeros(4), np.zeros(4)), {}
        for place in order:
            state = cell(name, p["source.weight"][source[place]], state)
            found[place] = state[0]
        return found

    forwards, backwards = read("forwards", [0, 1, 2]), read("backwards", [2, 1, 0])
    said = [np.concatenate((forwards[i], backwards[i])) for i in range(3)]
    s = np.tanh(p["initial.weight"] @ backwards[0] + p["initial.bias"])
    query = p["query.weight"] @ s + p["query.bias"]
    e = np.array([p["energy.weight"][0] @ np.tanh(query + p["keys.weight"] @ a) for a in said])
    weights = np.exp(e) / np.exp(e).sum()
    c = sum(w * a for w, a in zip(weights, said, strict=True))
    word = p["target.weight"][1]
    s, _ = cell("decoder", np.concatenate((word, c)), (s, np.zeros(4)))
    t = np.tanh(p["readout.weight"] @ np.concatenate((s, c, word)) + p["readout.bias"])
    expected = p["scores.weight"] @ t + p["scores.bias"]
    given = torch.tensor([source]), torch.tensor([[1]])
    np.testing.assert_allclose(net(*given)[0, 0].detach().numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(net.align(*given)[0, 0, 0].numpy(), weights, rtol=1e-9)


def test_attention_adds_up_to_one() -> None:
    source, target, lengths = sentences()
    maps = attention().align(source, target, lengths)
    assert maps.shape == (1, 4, 5, 7)
    torch.testing.assert_close(maps.sum(-1), torch.ones(1, 4, 5, dtype=torch.float64))
    assert (maps[0, 1, :, 3:] == 0).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_layers_without_depth_gates_are_those_of_torch(reverse: bool) -> None:
    ours = DepthGatedLSTM(5, 6, 3, gated=False, dtype=torch.float64)
    theirs = nn.LSTM(5, 6, 3, batch_first=True, dtype=torch.float64)
    order = [0, 1, 3, 2]  # u f o c here, i f g o there.
    with torch.no_grad():
        for k, layer in enumerate(ours.layers):
            parts = {
                f"weight_ih_l{k}": layer.input.weight,
                f"weight_hh_l{k}": layer.recurrent.weight,
                f"bias_ih_l{k}": layer.input.bias,
            }
            for name, ours_part in parts.items():
                rows = ours_part.chunk(4)
                getattr(theirs, name).copy_(torch.cat([rows[gate] for gate in order]))
            getattr(theirs, f"bias_hh_l{k}").zero_()
    x, lengths = torch.randn(3, 7, 5, dtype=torch.float64), torch.tensor([7, 2, 5])
    found = ours(x, lengths, reverse=reverse)
    for row, length in enumerate(lengths.tolist()):
        own = x[row : row + 1, :length]
        expected = theirs(own.flip(1))[0].flip(1) if reverse else theirs(own)[0]
        torch.testing.assert_close(found[row : row + 1, :length], expected)


def test_a_depth_gate_lets_the_memory_below_pass() -> None:
    """The second layer at its first step, in NumPy (Yao et al., 2015)."""
    net = DepthGatedLSTM(5, 4, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn_like(parameter))
    p = {name: value.detach().numpy() for name, value in net.named_parameters()}
    x = torch.randn(1, 2, 5, dtype=torch.float64)
    m = [np.zeros(4), np.zeros(4)]
    h = [np.zeros(4), np.zeros(4)]
    for t in range(2):
        inputs = x[0, t].numpy()
        for layer in range(2):
            W, b = p[f"layers.{layer}.input.weight"], p[f"layers.{layer}.input.bias"]
            joint = np.hstack((W[:16], p[f"layers.{layer}.recurrent.weight"]))
            before = m[layer]
            gates = Weights(weight=joint, bias=b[:16])
            h[layer], m[layer] = lstm(np.concatenate((inputs, h[layer])), before, gates, "standard")
            if layer:
                peepholes = p["layers.1.before"] * before + p["layers.1.below"] * m[0]
                gate = sigmoid(W[16:] @ inputs + b[16:] + peepholes)
                g_o = h[1] / np.tanh(m[1])
                m[1] = m[1] + gate * m[0]
                h[1] = g_o * np.tanh(m[1])
            inputs = h[layer]
    found = net(x, torch.tensor([2]))[0, 1].detach().numpy()
    np.testing.assert_allclose(found, h[1], rtol=1e-9)


def test_an_ensemble_averages_probabilities() -> None:
    members = [reencoder(), attention()]
    source, target, lengths = sentences()
    expected = sum(member(source, target, lengths).softmax(-1) for member in members) / 2
    torch.testing.assert_close(Ensemble(members)(source, target, lengths).exp(), expected)
    assert Ensemble(members).align(source, target, lengths).shape == (3, 4, 5, 7)


@pytest.mark.parametrize(
    ("make", "option"),
    [(reencoder, "dropout"), (reencoder, "side_dropout"), (attention, "dropout")],
)
def test_dropout_is_for_training(make: Callable[..., Translator], option: str) -> None:
    model = make(**{option: 0.5})
    given = sentences()
    assert not torch.equal(model(*given), model(*given))
    model.eval()
    assert torch.equal(model(*given), model(*given))


@pytest.mark.parametrize("make", [reencoder, lambda: attention(num_layers=2, depth_gates=True)])
def test_a_few_sentences_are_learnt(make: Callable[[], Translator]) -> None:
    torch.manual_seed(0)
    model = make()
    source, target, lengths = sentences()
    target[:, 0] = 1
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(150):
        optimizer.zero_grad()
        scores = model(source, target[:, :-1], lengths)
        loss = F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1 < math.log(TARGET)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Reencoder(0, 5, 4), ValueError, "source_words: expected at least 1, got 0"),
        (lambda: Reencoder(5, 5.0, 4), TypeError, "target_words: expected an integer, got 5.0"),
        (lambda: Reencoder(5, 5, 4, 0), ValueError, "num_layers: expected at least 1, got 0"),
        (lambda: Reencoder(5, 5, 4, entry="last"), ValueError, "entry: expected one of first, every,"),
        (
            lambda: Reencoder(5, 5, 4, embedding_size=0),
            ValueError,
            "embedding_size: expected at least 1, got 0",
        ),
        (lambda: Reencoder(5, 5, 4, dropout=1.0), ValueError, "dropout: expected at least 0"),
        (lambda: Reencoder(5, 5, 4, side_dropout=-1), ValueError, "side_dropout: expected at least 0"),
        (lambda: AttentionTranslator(5, 5, 4, dropout=-1), ValueError, "dropout: expected at least 0"),
        (
            lambda: AttentionTranslator(5, 5, 4, depth_gates=True),
            ValueError,
            "num_layers: expected at least 2 for depth gates between them, got 1",
        ),
        (
            lambda: AttentionTranslator(5, 5, 4, embedding_size=0),
            ValueError,
            "embedding_size: expected at least 1, got 0",
        ),
        (lambda: Ensemble([]), ValueError, "members: expected at least one, got none"),
        (
            lambda: Ensemble([Reencoder(5, 5, 4), Reencoder(5, 6, 4)]),
            ValueError,
            r"members: expected equal numbers of words, got \[\(5, 5\), \(5, 6\)\]",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_built(call: Callable[[], object], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


WORDS = torch.tensor([[1, 2], [3, 4]])
SIZES = r"expected \[batch, source\], each at least 1, got "


@pytest.mark.parametrize(
    ("source", "target", "lengths", "error", "message"),
    [
        ([[1]], WORDS, None, TypeError, "source: expected a tensor of integers, got list"),
        (WORDS, WORDS.double(), None, TypeError, "target: expected a tensor of integers, got torch.f"),
        (WORDS[0], WORDS, None, ValueError, rf"source: {SIZES}\[2\]"),
        (WORDS[:, :0], WORDS, None, ValueError, rf"source: {SIZES}\[2, 0\]"),
        (WORDS, WORDS[:1], None, ValueError, r"target: expected \[2, target\], as many sentences"),
        (WORDS + 7, WORDS, None, ValueError, "source: expected words from 0 to 10, got 11"),
        (WORDS, WORDS - 2, None, ValueError, "target: expected words from 0 to 8, got -1"),
        (WORDS, WORDS, torch.tensor([2, 0]), ValueError, r"lengths: expected 1 to 2 \(.*, got 0"),
        (WORDS, WORDS, torch.tensor([2, 3]), ValueError, r"lengths: expected 1 to 2 \(.*, got 3"),
        (WORDS, WORDS, torch.tensor([2]), ValueError, r"lengths: expected \[2\] \(batch\), got \[1\]"),
        (WORDS, WORDS, [2, 2], TypeError, "lengths: expected a tensor of integers, got list"),
    ],
)
def test_what_cannot_be_read(
    source: Tensor, target: Tensor, lengths: Tensor, error: type, message: str
) -> None:
    for model in (reencoder(), attention()):
        with pytest.raises(error, match=message):
            model(source, target, lengths)
        with pytest.raises(error, match=message):
            model.align(source, target, lengths)
