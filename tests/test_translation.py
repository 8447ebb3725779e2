"""Translation as an experiment: training, evaluation, translating text, and its picture."""

import io
import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.font_manager import FontEntry, FontProperties, findfont, fontManager, get_font
from safetensors.torch import load_file
from torch.nn import functional as F

from gridlstm import AttentionTranslator, Reencoder
from gridlstm.data.locate import DataError
from gridlstm.experiments.registry import EXPERIMENTS, flat, from_flat
from gridlstm.experiments.trained import open_run, options_of
from gridlstm.experiments.translation import TRANSLATION
from gridlstm.experiments.translation import commands as command
from gridlstm.experiments.translation import problem as translation
from gridlstm.experiments.translation.alignment import draw_alignment, draw_sentences
from gridlstm.experiments.translation.bleu import bleu
from gridlstm.experiments.translation.data import Parallel
from gridlstm.experiments.translation.options import TranslationEval, TranslationOptions
from gridlstm.experiments.translation.problem import TranslationProblem, measure
from gridlstm.experiments.translation.text_translator import (
    TextTranslator,
    load_translator,
    make_ensemble,
    make_model,
    read_languages,
)
from gridlstm.experiments.translation.vocabulary import BEGIN, END, MARKS, UNKNOWN
from gridlstm.figures.find_font import SHIPPED, _font, find_font
from gridlstm.training.rundir import RunDir
from gridlstm.training.settings import Training

from .figure_text import figure_text

TABLE = "".join(
    f"{a} {b} .\t{c} {d} .\n"
    for a, c in (("der", "the"), ("ein", "a"), ("kein", "no"))
    for b, d in (("Hund", "dog"), ("Mann", "man"), ("Tag", "day"), ("Weg", "way"))
    for _ in range(2)
)


def small(folder: Path, network: str = "reencoder", **changed: object) -> TranslationOptions:
    (folder / "t.tsv").write_text(TABLE)
    files = (str(folder / "t.tsv"),)
    layers = 1 if network == "attention" else 2
    chosen = TranslationOptions(
        train=files, valid=files, test=files, source="de", network=network, layers=layers,  # type: ignore[arg-type]
        hidden=8, dropout=0.0, beam=2, training=Training(batch=4, samples=40, evaluate_every=20),
    )  # fmt: skip
    return replace(chosen, **changed)


def train(out: Path, *options: str) -> Path:
    """The smoke preset, for a moment, in a process of its own."""
    arguments = ["--preset", "smoke", "--samples", "320", *options, "--out", str(out)]
    launch = [sys.executable, "-W", "error", "-m", "gridlstm", "train", "translation"]
    subprocess.run([*launch, *arguments], check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("translation") / "run", "--samples", "640")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(
        tmp_path_factory.mktemp("translation") / "other", "--seed", "1", "--network", "attention"
    )


@pytest.fixture
def translate(gridlstm, monkeypatch: pytest.MonkeyPatch):
    """Runs ``gridlstm translate`` on some bytes: exit code, output, errors."""

    def run(lines: bytes, *arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
        return gridlstm("translate", *arguments)

    return run


def test_processes_share_a_batch(tmp_path: Path) -> None:
    problem = TranslationProblem(small(tmp_path), None)
    network = problem.network()
    for update in range(3):
        whole = problem.loss(network, 4 * update, 4).item()
        parts = [problem.loss(network, 4 * update + 2 * rank, 2).item() for rank in range(2)]
        assert whole == pytest.approx(sum(parts) / 2, rel=1e-5)


def test_loss_and_perplexity_are_those_of_the_words(tmp_path: Path) -> None:
    problem = TranslationProblem(small(tmp_path), None)
    network = problem.network().eval()
    places = problem.buckets.at(1)
    nats, words = 0.0, 0
    for place in places:
        source, target = problem.pairs[place]
        scores = network(torch.tensor([source]), torch.tensor([[BEGIN, *target]]), None)[0]
        nats += F.cross_entropy(scores, torch.tensor([*target, END]), reduction="sum").item()
        words += len(target) + 1
    assert problem.loss(network, 4, 4).item() == pytest.approx(nats / words, rel=1e-5)
    assert measure(network, [problem.pairs[place] for place in places]) == {
        "perplexity": pytest.approx(np.exp(nats / words)), "sentences": 4, "words": words
    }  # fmt: skip


def test_long_sentences_are_measured_few_at_a_time() -> None:
    """What is kept in memory depends on the longest pair, and not on how many there are."""
    areas = []

    class Counting(Reencoder):
        def score(self, source: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor):
            areas.append(len(source) * source.shape[1] * target.shape[1])
            return torch.zeros(*target.shape, self.target_words)

    pairs = [([4] * size, [4] * size) for size in (300, 3, 200, 200, 2, 120, 120, 120, 120, 120)]
    assert measure(Counting(6, 6, 2), pairs)["perplexity"] == pytest.approx(6)
    assert sorted(areas)[-1] == 300 * 301  # Alone: it cannot be made smaller.
    assert all(area <= translation.BLOCKS for area in sorted(areas)[:-1])
    areas.clear()
    measure(Counting(6, 6, 2), [([4] * 20, [4] * 20)] * 120)
    assert areas == [50 * 20 * 21] * 2 + [20 * 20 * 21]


@pytest.mark.parametrize("network", ["reencoder", "attention", "depth-gated"])
def test_a_small_language_is_learnt(tmp_path: Path, network: str) -> None:
    """Twelve sentences, made of seven words; the end and the case of letters with them."""
    problem = TranslationProblem(small(tmp_path, network), None)
    torch.manual_seed(0)
    model = problem.network()
    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    for update in range(100):
        optimizer.zero_grad()
        problem.loss(model, 4 * update, 4).backward()
        optimizer.step()
    model.eval()
    assert problem.evaluate(model, 1)["perplexity"] < 1.3
    translations = problem.test(model, None, TranslationEval())["translations"]
    assert translations[0] == {
        "source": "der Hund .", "translation": "The dog.", "references": ("the dog .",)
    }  # fmt: skip
    for sample in translations:
        assert sample["translation"].lower() == sample["references"][0].replace(" .", ".")


def test_several_references_and_long_sentences(tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("ein Hund .\ta dog .\ta hound .\n" * 3)
    (tmp_path / "long.tsv").write_text(TABLE + "ein " * 9 + "\ta " * 9 + "\n" + "ja\tyes\tof course\n")
    files = {"valid": (str(tmp_path / "more.tsv"),), "train": (str(tmp_path / "long.tsv"),)}
    problem = TranslationProblem(small(tmp_path, longest=8, **files), None)
    assert len(problem.pairs) == 24 + 2  # Each translation is a pair; what is too long is none.
    assert UNKNOWN in problem.target.encode("of course")
    assert problem.text.valid[0].references == ("a dog .", "a hound .")
    assert len(TranslationProblem(small(tmp_path, pairs=9, **files), None).pairs) == 9


def test_bleu() -> None:
    one = bleu(["A b c d e"], [["a b c d f"]])
    assert one.score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert one.signature.startswith("nrefs:1|case:lc|eff:no|tok:13a")
    several = bleu(["a b c d e", "x y z u v"], [["a b c d f", "a b c d e"], ["x y z u v"]])
    assert several.score == pytest.approx(100)
    assert several.signature.startswith("nrefs:var")
    assert "tok:zh" in bleu(["我爱你们"], [["我爱你们"]], "zh").signature


def test_smoke(gridlstm, tmp_path: Path, trained: Path, other: Path) -> None:
    rows = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["loss"] < rows[0]["loss"]
    summary = json.loads((trained / "summary.json").read_text())
    assert summary["best"]["perplexity"] == min(row["perplexity"] for row in rows)
    sums = json.loads((trained / "config.json").read_text())["data"]
    assert sums == Parallel.tatoeba().sha256()

    code, output, _ = gridlstm("eval", trained, "--samples", 6)
    assert code == 0
    evaluation = json.loads(output)
    assert (evaluation["sentences"], evaluation["beam"]) == (6, 3)
    tested = Parallel.tatoeba().test[:6]
    written = json.loads((trained / "evaluation.json").read_text())["translations"]
    assert [sample["source"] for sample in written] == [pair.source for pair in tested]
    translations = [sample["translation"] for sample in written]
    for references, name in (
        ([p.references[:1] for p in tested], "1"),
        ([p.references for p in tested], "all"),
    ):
        score, signature = bleu(translations, references)
        assert evaluation[f"bleu {name}"] == pytest.approx(score)
        assert evaluation[f"signature {name}"] == signature

    code, output, _ = gridlstm("eval", trained, "--samples", 6, "--ensemble", other, "--beam", 2)
    both = json.loads(output)
    assert (code, both["beam"]) == (0, 2)
    members = [load_translator(RunDir(path)) for path in (trained, other)]
    problem = TranslationProblem(EXPERIMENTS["translation"].presets["smoke"], None)  # type: ignore[arg-type]
    pairs = [(problem.source.encode(p.source), problem.target.encode(p.references[0])) for p in tested]
    assert both["perplexity"] == pytest.approx(
        measure(make_ensemble(members), pairs)["perplexity"], rel=1e-4
    )
    assert evaluation["perplexity"] == pytest.approx(measure(members[0], pairs)["perplexity"], rel=1e-4)
    assert json.loads((trained / "ensemble.json").read_text())["ensemble"] == ["other"]

    assert gridlstm("plot", "curve", trained, "--out", tmp_path / "curve")[0] == 0
    assert {"perplexity", "translation, tatoeba", "Reencoder, 2 layers"} <= {
        *figure_text(tmp_path / "curve")
    }
    last = f"perplexity {rows[-1]['perplexity']:.4f}"
    assert last in gridlstm("list", "--folder", trained.parent)[1]
    assert gridlstm("collect", trained, "--out", tmp_path / "kept.json")[0] == 0
    (kept,) = json.loads((tmp_path / "kept.json").read_text())["runs"]
    assert kept["evaluation"]["bleu 1"] == evaluation["bleu 1"]
    assert kept["ensemble"]["perplexity"] == both["perplexity"]


def test_show(gridlstm) -> None:
    code, output, _ = gridlstm("train", "translation", "--preset", "smoke", "--show", 20)
    lines = output.splitlines()
    assert (code, len(lines)) == (0, 40)
    problem = TranslationProblem(EXPERIMENTS["translation"].presets["smoke"], None)  # type: ignore[arg-type]
    known = {
        tuple(
            f"{language.code}  {' '.join(language.vocabulary.decode(words))}"
            for language, words in zip((problem.source, problem.target), pair, strict=True)
        )
        for pair in problem.pairs
    }
    shown = {*zip(lines[::2], lines[1::2], strict=True)}
    assert shown <= known
    assert len(shown) > 15  # They are different pairs.


def test_a_run_is_enough_to_translate(
    translate, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No training data; in order; empty lines stay; the same alone and among others."""
    monkeypatch.setattr(Parallel, "tatoeba", None)
    lines = ["你好。", "", "我每天六点钟起床。", "   ", "𠮷\u200b!", "你好。"]
    code, output, errors = translate("\n".join(lines).encode(), trained, "--beam", 3)
    assert code == 0
    assert errors == f"6 sentences, {errors.split()[2]} s each\n"
    written = output.split("\n")
    assert len(written) == 7
    assert [bool(line) for line in written] == [True, False, True, False, True, True, False]
    assert written[0] == written[5]
    assert not any(mark in output for mark in MARKS)
    alone = translate("我每天六点钟起床。\r\n".encode(), trained, "--beam", 3)[1]
    assert alone == written[2] + "\n"
    assert translate(b"", trained)[:2] == (0, "")


def test_a_translator_comes_with_the_package(gridlstm, translate) -> None:
    """It is small, needs no words of Chinese, and was measured with the weights that it ships with."""
    run = open_run(None, "translation")
    assert run.model.stat().st_size < 7_000_000
    experiment = options_of(run, TRANSLATION)
    assert (experiment.network, experiment.chinese) == ("reencoder", "characters")
    sentences = "我想喝水。\n\n他不喜欢吃鱼。\n"
    code, output, _ = translate(sentences.encode())
    assert (code, output.count("\n")) == (0, 3)
    assert output.startswith("I want to drink")
    evaluation = json.loads((run.path / "evaluation.json").read_text())
    written = [sample["translation"] for sample in evaluation["translations"]]
    sources = "\n".join(sample["source"] for sample in evaluation["translations"])
    again = translate(sources.encode())[1].splitlines()
    # Rounding differs from machine to machine, and may decide between two candidates.
    assert sum(a == b for a, b in zip(written, again, strict=True)) >= 18
    assert "the network that comes with the package" in " ".join(
        gridlstm("translate", "--help")[1].replace("│", " ").split()
    )


def test_a_smaller_vocabulary(tmp_path: Path) -> None:
    """It has the words that occur often enough, and the others are unknown."""
    table = tmp_path / "some.tsv"
    table.write_text("der Hund\tthe dog\n" * 3 + "der Mann\tthe man\n" * 2)
    sizes = []
    for least in (2, 3, 4):
        problem = TranslationProblem(small(tmp_path, train=(str(table),), least=least), None)
        sizes.append((len(problem.source.vocabulary), len(problem.target.vocabulary)))
    assert sizes == [(7, 7), (6, 6), (5, 5)]


def test_chunks_stay_in_order(translate, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [pair.source for pair in Parallel.tatoeba().valid[:7]]
    lines = "\n".join(sources).encode()
    whole = translate(lines, trained, "--beam", 2)[1]
    monkeypatch.setattr(command, "LINES_AT_ONCE", 2)
    assert translate(lines, trained, "--beam", 2)[1] == whole
    assert len(whole.splitlines()) == 7


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_each_line_is_answered_until_it_is_interrupted(
    gridlstm, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = io.BytesIO("你好。\n\n再见。\n".encode())
    answers = iter(["Hello.", ""])

    def answer(self, sentences, beam):
        assert len(sentences) == 1
        sentence = next(answers, None)
        if sentence is None:
            raise KeyboardInterrupt
        return [(0, sentence)]

    monkeypatch.setattr(sys, "stdin", Terminal(lines))
    monkeypatch.setattr(TextTranslator, "translate", answer)
    errors = "Type sentences (zh to en), one per line; Ctrl-D ends.\ngridlstm translate: interrupted\n"
    assert gridlstm("translate", trained) == (130, "Hello.\n\n", errors)


def test_a_closed_input_is_refused(gridlstm, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    message = "gridlstm translate: standard input: expected one sentence per line, but it is closed\n"
    assert gridlstm("translate", trained) == (2, "", message)


def test_translating_stops_with_its_reader(tmp_path: Path, trained: Path) -> None:
    """Before the second chunk of lines is written, nobody reads any more."""
    (tmp_path / "in").write_text("你好。\n" * 2 * command.LINES_AT_ONCE)
    launch = [sys.executable, "-m", "gridlstm", "translate", str(trained), "--beam", "1"]
    with (tmp_path / "in").open("rb") as lines:
        writer = subprocess.Popen(
            launch, stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
    assert writer.stdout is not None
    assert writer.stdout.read(1)
    writer.stdout.close()
    _, errors = writer.communicate(timeout=60)
    assert (writer.returncode, errors) == (0, b"")


def test_an_ensemble_translates(translate, trained: Path, other: Path) -> None:
    ensemble = make_ensemble([load_translator(RunDir(path)) for path in (trained, other)])
    sentences = [pair.source for pair in Parallel.tatoeba().valid[:4]]
    expected = dict(ensemble.translate([ensemble.source.encode(s) for s in sentences], 2))
    lines = "\n".join(sentences).encode()
    code, output, _ = translate(lines, trained, other, "--beam", 2, "--threads", 1)
    assert code == 0
    assert output.splitlines() == [expected[place] for place in range(4)]
    assert output != translate(lines, trained, "--beam", 2)[1]


@pytest.mark.parametrize(
    ("third", "line"),
    [
        ("好" * 11, "line 3: expected at most 10 words, got 11; --longest allows more"),
        ("好" * 400_000, "line 3: expected at most 1,048,576 bytes, got more"),
        (b"\xff\xfe", "line 3: expected text in UTF-8, got invalid start byte"),
    ],
)
def test_a_line_is_refused_by_its_number(
    translate, trained: Path, third: str | bytes, line: str
) -> None:
    before = "你好。\n\n".encode()
    lines = before + (third if isinstance(third, bytes) else third.encode()) + b"\nok\n"
    code, output, errors = translate(lines, trained, "--longest", 10, "--beam", 1)
    assert (code, errors) == (2, f"gridlstm translate: {line}\n")
    assert output == translate(before, trained, "--beam", 1)[1]


def test_runs_that_cannot_translate(gridlstm, translate, tmp_path: Path, trained: Path) -> None:
    code, _, errors = translate(b"", tmp_path)
    assert (code, "not a run directory (no config.json)" in errors) == (2, True)
    parity = tmp_path / "parity"
    assert gridlstm("train", "parity", "--preset", "smoke", "--samples", 15, "--out", parity)[0] == 0
    message = "expected a run of translation, got one of parity"
    assert message in translate(b"", parity)[2]
    assert message in gridlstm("eval", parity, "--beam", 2)[2]
    assert message in gridlstm("plot", "alignment", parity, "--source", "x")[2]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "config.json").write_text((trained / "config.json").read_text())
    assert "expected a trained network, got no checkpoint yet" in translate(b"", tmp_path / "new")[2]
    (tmp_path / "new" / "model.safetensors").write_bytes(b"\x80\x04pickle")
    code, _, errors = translate(b"", tmp_path / "new")
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith(f"gridlstm translate: {tmp_path / 'new' / 'model.safetensors'}: ")


def test_languages_that_differ_make_no_ensemble(tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text(TABLE.replace("dog", "hound"))
    problems = [
        TranslationProblem(small(tmp_path, train=files), None)
        for files in ((str(tmp_path / "t.tsv"),), (str(tmp_path / "other.tsv"),))
    ]
    same, other = (problem.network() for problem in problems)
    with pytest.raises(ValueError, match="run 3: expected the languages and words of the first, got"):
        make_ensemble([same, same, other])


def test_languages_are_kept_with_the_weights(tmp_path: Path, trained: Path) -> None:
    problem = TranslationProblem(small(tmp_path), None)
    network = make_model(problem.options, problem.source, problem.target)
    assert read_languages(bytes(network.languages.tolist())) == (problem.source, problem.target)
    with pytest.raises(DataError, match="languages: expected two with their words"):
        read_languages(bytes(3))
    assert load_file(trained / "model.safetensors")["languages"].dtype == torch.uint8


def test_alignment(gridlstm, tmp_path: Path, trained: Path, other: Path) -> None:
    plot = ("plot", "alignment", trained, "--out", tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gridlstm(*plot, "--source", "你好，汤姆。", "--target", "Hello, Tom.")[0] == 0
    words = ["Hello", ",", "Tom", ".", "(end)"]
    assert {*words, "layer 1", "layer 2"} <= {*figure_text(tmp_path / "a")}
    # Without --target, with its own translation.
    translator = load_translator(RunDir(trained))
    ((_, translation),) = translator.translate([translator.source.encode("你好。")])
    assert gridlstm(*plot, "--source", "你好。")[0] == 0
    words = [*translator.target.tokeniser.split(translation), "(end)"]
    assert {*words} <= {*figure_text(tmp_path / "a")}
    assert gridlstm("plot", "alignment", other, "--source", "你好。", "--target", "Hi.")[0] == 0
    assert {"Hi", ".", "(end)", "attention"} <= {*figure_text(other / "alignment")}
    for wrong in ([], ["--source", " "]):
        code, _, errors = gridlstm(*plot, *wrong)
        assert (code, "--source: expected a sentence, got" in errors) == (2, True)
    code, _, errors = gridlstm(*plot[:2], other, *plot[2:], "--source", "你")
    assert (code, "unexpected argument" in errors) == (2, True)


@pytest.mark.parametrize(
    ("network", "layers", "titles"),
    [
        ("reencoder", 2, ["layer 1", "layer 2"]),
        ("reencoder", 1, ["layer 1"]),
        ("attention", 1, ["attention"]),
    ],
)
def test_a_picture_says_what_it_shows(
    tmp_path: Path, network: str, layers: int, titles: list[str]
) -> None:
    model = TranslationProblem(small(tmp_path, network, layers=layers), None).network().eval()
    figure = draw_sentences(model, "der Hund .", "the dog .")
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == titles


def test_words_are_shown_in_a_font_that_has_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Circled letters are not in the usual font, but in another one that comes with Matplotlib."""

    def labels(word: str) -> tuple[list[str], set[str]]:
        """The labels of an alignment and the files of their fonts."""
        figure = draw_alignment(np.ones((1, 2, 1), np.float32), ["1"], [word], ["hi", "(end)"])
        shown = [*figure.axes[0].get_xticklabels(), *figure.axes[0].get_yticklabels()]
        return [t.get_text() for t in shown], {str(t.get_fontproperties().get_file()) for t in shown}

    usual = str(findfont(FontProperties()))
    removed = FontEntry(fname="/nowhere.ttf", name="removed")
    monkeypatch.setattr(fontManager, "ttflist", [removed, *fontManager.ttflist])
    assert labels("abc") == (["abc", "hi", "(end)"], {usual})
    shown, (font,) = labels("Ⓐb")
    assert shown == ["Ⓐb", "hi", "(end)"]
    assert font != usual
    assert {*map(ord, "Ⓐb(hiend)")} <= get_font(font).get_charmap().keys()
    assert not caplog.text
    assert labels("\U0010fffda") == (["U+10FFFDa", "hi", "(end)"], {usual})
    assert caplog.text.count("no font has all characters") == 1


def test_chinese_is_legible_where_no_font_for_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    default = [font for font in fontManager.ttflist if font.name.startswith("DejaVu")]
    monkeypatch.setattr(fontManager, "ttflist", default)
    _font.cache_clear()
    text = Parallel.tatoeba()
    sentences = [pair.source for part in (text.train, text.valid, text.test) for pair in part]
    words = sorted({c for sentence in sentences for c in sentence if "\u4e00" <= c <= "\u9fff"})
    font, shown = find_font(words, ["hi", "(end)"])
    _font.cache_clear()
    assert font.get_file() == str(SHIPPED)
    assert shown == [words, ["hi", "(end)"]]
    assert not caplog.text


def test_a_stopped_run_goes_on_bit_for_bit(gridlstm, tmp_path: Path, trained: Path) -> None:
    resume = ("train", "translation", "--preset", "smoke", "--out", tmp_path / "parts", "--resume")
    for samples in (112, 640):
        assert gridlstm(*resume, "--samples", samples, "--dropout", 0.0)[0] == 0
    a, b = (
        load_file(run / "checkpoints/step-40/tensors.safetensors")
        for run in (trained, tmp_path / "parts")
    )
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_other_text_is_not_resumed(gridlstm, tmp_path: Path) -> None:
    chosen = small(tmp_path)
    files = [
        str(option) for part in ("train", "valid", "test") for option in (f"--{part}", *chosen.train)
    ]
    options = [*files, "--source", "de", "--preset", "smoke", "--batch", 4, "--samples", 8]
    command = ("train", "translation", *options, "--out", tmp_path / "run")
    assert gridlstm(*command)[0] == 0
    (tmp_path / "t.tsv").write_text(TABLE * 2)
    code, _, errors = gridlstm(*command, "--resume")
    assert (code, "cannot be resumed with other data: train, valid, test" in errors) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--network", "depth-gated", "--layers", "1"], "layers: expected at least 2 for depth gates"),
        (["--dropout", "1"], "dropout: expected at least 0 and below 1, got 1.0"),
        (
            ["--network", "attention", "--side-dropout", "0.1"],
            "side_dropout: expected 0 for attention, got 0.1",
        ),
        (
            ["--network", "attention", "--entry", "every"],
            "entry: expected first for attention, got every",
        ),
        (
            ["--network", "attention", "--encoder"],
            "encoder: expected False for attention, which has one, got True",
        ),
        (["--word-size", "0"], "word_size: expected at least 1 or None, got 0"),
        (["--beam", "0"], "beam: expected at least 1, got 0"),
        (["--source", "de"], "source, target: expected zh to en for tatoeba, got de to en"),
        (["--corpus", "multi30k"], "expected de to en or en to de for multi30k, got zh to en"),
        (["--train", "x.tsv"], "train, valid, test: expected files for all of them, got train"),
        (["--batch", "999"], "batch: expected at most the"),
        (
            ["--train", "x.tsv", "--valid", "x.tsv", "--test", "x.tsv"],
            "x.tsv: file not found",
        ),
    ],
)
def test_one_line_says_what_is_wrong(gridlstm, arguments: list[str], line: str) -> None:
    code, _, errors = gridlstm("train", "translation", "--preset", "smoke", *arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert line in errors


def test_the_networks_of_the_comparison_are_equally_large() -> None:
    """Those of docs/translation.md, with the words of Tatoeba: within 2 % of the Reencoder."""
    words = (3045, 7614)
    counts = [
        sum(p.numel() for p in network.parameters())
        for network in (
            Reencoder(*words, 256, device="meta"),
            AttentionTranslator(*words, 384, 1, device="meta"),
            AttentionTranslator(*words, 320, 2, depth_gates=True, device="meta"),
        )
    ]
    assert all(abs(count / counts[0] - 1) < 0.02 for count in counts), counts


@pytest.mark.parametrize("network", ["reencoder", "depth-gated"])
def test_bfloat16(tmp_path: Path, network: str) -> None:
    problem = TranslationProblem(small(tmp_path, network), None)
    model = problem.network()
    exact = problem.loss(model, 0, 4)
    with torch.autocast("cpu", torch.bfloat16):
        loss = problem.loss(model, 0, 4)
    loss.backward()
    assert loss.item() == pytest.approx(exact.item(), rel=0.02)
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_presets() -> None:
    paper = EXPERIMENTS["translation"].presets["paper"]
    assert isinstance(paper, TranslationOptions)
    assert (paper.hidden, paper.layers, paper.dropout, paper.beam) == (450, 2, 0.5, 20)
    assert (paper.training.optimizer, paper.training.rate) == ("adam", 1e-3)
    for chosen in EXPERIMENTS["translation"].presets.values():
        again = from_flat(EXPERIMENTS["translation"], json.loads(json.dumps(flat(chosen))))
        assert again == chosen
