"""Beam search: against greedy choice, all possible translations, and a plain one on lists."""

import json
import math
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from gridlstm import AttentionTranslator, Reencoder
from gridlstm.bench.beam_search_speed import RecomputingTranslator, SearchCase, measure_search
from gridlstm.experiments.translation.data import make_batch
from gridlstm.models.beam_search import MAX_BLOCKS, Rules, beam_search, search_all
from gridlstm.models.translator import Ensemble, Progress, Translator

BEGIN, END = 1, 2
PLAIN = Rules(BEGIN, END, banned=(0, BEGIN))


def model(seed: int, kind: str = "reencoder", words: int = 6) -> Translator:
    """With weights so large that probabilities are far from equal."""
    torch.manual_seed(seed)
    if kind == "ensemble":
        return Ensemble([model(seed, "reencoder", words), model(seed + 100, "attention", words)])
    made = (Reencoder if kind == "reencoder" else AttentionTranslator)(10, words, 6)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return made.eval()


def texts(count: int = 5, longest: int = 6) -> list[list[int]]:
    return [torch.randint(0, 10, (1 + k % longest,)).tolist() for k in range(count)]


def logs(translator: Translator, source: list[int], words: list[int]) -> Tensor:
    """The logarithms of the probabilities of the word after some, all computed anew."""
    with torch.no_grad():
        scores = translator(torch.tensor([source]), torch.tensor([[BEGIN, *words]]))[0, -1]
    return F.log_softmax(scores, -1)


def scores(translator: Translator, source: list[int], candidates: list[list[int]]) -> list[float]:
    """The logarithms of the probabilities of whole translations, without any search."""
    batch = make_batch([([], words) for words in candidates])
    with torch.no_grad():
        own = translator(
            torch.tensor([source] * len(candidates)), torch.from_numpy(batch.target)
        ).log_softmax(-1)
    following = torch.from_numpy(batch.following)
    words = own.gather(-1, following.unsqueeze(-1)).squeeze(-1)
    return words.masked_fill(following == 0, 0).sum(-1).tolist()


@pytest.mark.parametrize("kind", ["reencoder", "attention", "ensemble"])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_translations(kind: str, seed: int) -> None:
    translator, sentences = model(seed, kind, words=5), texts()
    rules = Rules(BEGIN, END, (0, BEGIN), beam=5**4, shortest=0.5, longest=(0.0, 4))
    for place, found in search_all(translator, sentences, rules):
        source = sentences[place]
        allowed = [
            list(words)
            for length in range(math.ceil(len(source) / 2), 5)
            for words in product((3, 4), repeat=length)
        ]
        best, words = max(zip(scores(translator, source, allowed), allowed, strict=True))
        assert found.words == words
        assert found.score == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("kind", ["reencoder", "attention", "ensemble"])
def test_a_beam_of_one_is_greedy(kind: str) -> None:
    translator, sentences = model(3, kind), texts(12)
    rules = PLAIN._replace(beam=1, shortest=0.0)
    for place, found in search_all(translator, sentences, rules):
        words: list[int] = []
        most = 2 * len(sentences[place]) + 10
        while True:
            next_logs = logs(translator, sentences[place], words)
            next_logs[[0, BEGIN]] = -math.inf
            word = int(next_logs.argmax()) if len(words) < most else END
            if word == END:
                break
            words.append(word)
        assert found.words == words


def plain_search(translator: Translator, source: list[int], rules: Rules) -> tuple[list[int], float]:
    """Beam search on lists, one sentence, everything computed anew, and to the very end."""
    beam: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    least, most = math.ceil(rules.shortest * len(source)), 2 * len(source) + 1
    while beam:
        grown = []
        for total, words in beam:
            for word, log in enumerate(logs(translator, source, words).tolist()):
                early = word == END and len(words) < least
                late = word != END and len(words) == most
                if word not in rules.banned and not early and not late:
                    grown.append((total + log, [*words, word]))
        grown.sort(reverse=True)
        kept = grown[: rules.beam]
        ended += [(total, words[:-1]) for total, words in kept if words[-1] == END]
        beam = [(total, words) for total, words in kept if words[-1] != END]
    return max(ended)[1], max(ended)[0]


@pytest.mark.parametrize("beam", [2, 5])
def test_many_sentences_at_once_are_each_by_itself(beam: int) -> None:
    """And what is left out because it cannot win would not have won."""
    translator, sentences = model(7), texts(8, 4)
    rules = PLAIN._replace(beam=beam, longest=(2.0, 1))
    found = dict(search_all(translator, sentences, rules))
    assert sorted(found) == list(range(8))
    for place, source in enumerate(sentences):
        words, total = plain_search(translator, source, rules)
        assert found[place].words == words
        assert found[place].score == pytest.approx(total, abs=1e-4)


def test_incremental_search_is_that_with_everything_computed_anew() -> None:
    translator, sentences = model(2), texts(8)
    rules = PLAIN._replace(beam=4)
    fast, slow = (
        dict(search_all(t, sentences, rules)) for t in (translator, RecomputingTranslator(translator))
    )
    for place, found in fast.items():
        assert found.words == slow[place].words
        assert found.score == pytest.approx(slow[place].score, abs=1e-4)


class Scripted(Translator):
    """Always the same scores; counts the rows of its steps."""

    def __init__(self, scores: list[float]) -> None:
        super().__init__(10, len(scores))
        self.given = torch.nn.Parameter(torch.tensor(scores))
        self.rows: list[int] = []

    def score(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        return self.given.expand(*target.shape, -1)

    def map_alignment(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        raise NotImplementedError

    def begin(self, source: Tensor, lengths: Tensor) -> Progress:
        return (lengths,)

    def step(self, words: Tensor, progress: Progress) -> tuple[Tensor, Progress]:
        assert len(progress[0]) == len(words)
        self.rows.append(len(words))
        return self.given.expand(len(words), -1), progress


def test_short_candidates_are_discarded_and_long_ones_have_to_end() -> None:
    eager = Scripted([0.0, 0.0, 9.0, 1.0, 0.0])
    lengths = torch.tensor([1, 4, 7])
    found = beam_search(eager, torch.zeros(3, 7, dtype=torch.int64), lengths, PLAIN._replace(beam=3))
    assert [len(candidate.words) for candidate in found] == [1, 2, 4]
    endless = Scripted([0.0, 0.0, -90.0, 1.0, 0.0])
    rules = PLAIN._replace(beam=2, longest=(1.0, 2))
    found = beam_search(endless, torch.zeros(3, 7, dtype=torch.int64), lengths, rules)
    assert [candidate.words for candidate in found] == [[3] * 3, [3] * 6, [3] * 9]


def test_banned_words_are_never_written() -> None:
    tempting = Scripted([5.0, 5.0, 0.0, 9.0, 1.0])
    rules = PLAIN._replace(banned=(0, BEGIN, 3), beam=4)
    (found,) = beam_search(tempting, torch.zeros(1, 4, dtype=torch.int64), torch.tensor([4]), rules)
    assert set(found.words) == {4}


def test_a_word_costs_a_step_and_only_for_candidates_that_can_win() -> None:
    """One candidate at first; none any more once a likely end has come."""
    counted = Scripted([0.0, 0.0, 4.0, 2.0, 1.0])
    source, lengths = torch.zeros(6, 2, dtype=torch.int64), torch.full((6,), 2)
    beam_search(counted, source, lengths, PLAIN._replace(beam=2))
    assert counted.rows == [6, 12]


def test_memory_is_bounded_by_the_longest_sentence() -> None:
    counted = Scripted([0.0, 0.0, 0.1, 0.2, 0.3])
    sentences = [[1] * 50] * 40
    assert len(list(search_all(counted, sentences, PLAIN._replace(beam=20)))) == 40
    assert 0 < max(counted.rows) * 50 <= MAX_BLOCKS


def test_a_beam_has_a_place() -> None:
    with pytest.raises(ValueError, match="beam: expected at least 1, got 0"):
        beam_search(model(0), torch.zeros(1, 2).long(), torch.tensor([2]), PLAIN._replace(beam=0))
    with pytest.raises(ValueError, match="beam: expected at least 1, got 0"):
        list(search_all(model(0), [[1, 2]], PLAIN._replace(beam=0)))


def test_no_words_are_translated_as_none() -> None:
    translator, rules = model(0), PLAIN._replace(beam=2)
    found = dict(search_all(translator, [[], [1, 2], [], [3]], rules))
    assert found[0] == found[2] == ([], 0.0)
    alone = dict(search_all(translator, [[1, 2], [3]], rules))
    assert (found[1], found[3]) == (alone[0], alone[1])
    assert list(search_all(translator, [[]], rules)) == [(0, ([], 0.0))]


def test_ways_to_search_are_compared(gridlstm, tmp_path: Path) -> None:
    code, output, _ = gridlstm("bench", "search", "--quick", "--out", tmp_path / "search.json")
    assert code == 0
    assert "batched, recomputing" in output
    found = json.loads((tmp_path / "search.json").read_text())
    assert (found["kind"], found["case"]["beam"]) == ("search", 20)
    (result,) = found["results"]
    assert result["ratio"]["batched, incremental"] == 1
    assert {len(seconds) for seconds in result["seconds"].values()} == {2}


def test_ways_that_differ_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    step = RecomputingTranslator.step
    monkeypatch.setattr(
        RecomputingTranslator, "step", lambda self, words, given: step(self, words.flip(0) * 0, given)
    )
    with pytest.raises(RuntimeError, match="batched, recomputing: finds other translations"):
        measure_search(SearchCase(sentences=1, source=3, target=2, hidden=8, words=9, beam=2), 1)
