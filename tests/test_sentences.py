"""Sentences and their translations: files, words, vocabularies, and batches of equal length."""

import gzip
import hashlib
import marshal
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from gridlstm import data
from gridlstm.data.locate import DataError, Source
from gridlstm.experiments.translation import data as parallel
from gridlstm.experiments.translation.data import Buckets, Pair, Parallel, make_batch, read_pairs
from gridlstm.experiments.translation.tokens import make_tokeniser
from gridlstm.experiments.translation.vocabulary import BEGIN, END, UNKNOWN, Vocabulary

DATA = Path(os.environ.get("GRIDLSTM_DATA") or Path(__file__).parents[2] / "shared" / "data")


def write(folder: Path, **files: str) -> list[Path]:
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    return [folder / name for name in files]


def test_a_table_and_plain_files_say_the_same(tmp_path: Path) -> None:
    table = write(tmp_path, table="eins\tone\tan one\nzwei \t two\n")
    plain = write(tmp_path, de="eins\r\nzwei\r\n", en="one\r\ntwo\r\n", more="an one\r\n\r\n")
    expected = [Pair("eins", ("one", "an one")), Pair("zwei", ("two",))]
    assert read_pairs(table) == expected
    assert read_pairs(plain) == expected
    # A line can have what Python takes for the end of one.
    odd = Pair("a\u2028b", ("c\x85d", "e\rf"))
    assert read_pairs(write(tmp_path, odd="a\u2028b\tc\x85d\te\rf\r\n")) == [odd]
    marked = write(tmp_path, a="\ufeffeins\nzwei\n", b="\ufeffone\ntwo\n", c="\ufeffan one\n\n")
    assert read_pairs(marked) == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"t": "a\tb\nc\n"}, "t: line 2: expected a sentence and its translation, got no translation"),
        ({"t": "a\tb\n\tc\n"}, "t: line 2: expected a sentence and its translation, got no sentence"),
        (
            {"t": "a\tb\n\nc\td\n"},
            "t: line 2: expected a sentence and its translation, got no sentence",
        ),
        ({"a": "1\n2\n", "b": "1\n"}, "b: expected 2 lines as in .*a, got 1"),
        ({"a": "1\n2\n", "b": "1\n\n"}, "a: line 2: .* got no translation"),
    ],
)
def test_lines_that_do_not_fit(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_pairs(write(tmp_path, **files))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none: file not found"):
        read_pairs([tmp_path / "none"])
    with pytest.raises(DataError, match="expected a file, got a folder"):
        read_pairs([tmp_path])
    with pytest.raises(DataError, match=r"expected .*, got none$"):
        read_pairs([])
    (tmp_path / "latin").write_bytes(b"caf\xe9\tcoffee\n")
    with pytest.raises(DataError, match=r"latin: cannot be read .*invalid continuation byte"):
        read_pairs([tmp_path / "latin"])


def test_tatoeba_comes_with_the_package() -> None:
    text = Parallel.tatoeba()
    assert sum(len(pair.references) for pair in text.valid) == 2338
    assert sum(len(pair.references) for pair in text.test) == 2328
    assert all(len(pair.references) == 1 for pair in text.train)
    seen = {pair.source for pair in text.train}
    assert not any(pair.source in seen for pair in text.valid + text.test)
    notice = (Path(data.__file__).with_name("embedded") / "NOTICE").read_text()
    assert "Creative Commons Attribution 2.0 France" in notice
    sums = text.sha256()
    assert len({*sums.values()}) == 3
    text.valid.pop()
    assert [name for name, old in sums.items() if text.sha256()[name] != old] == ["valid"]


def test_multi30k_is_found_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "multi30k").mkdir()
    known = {}
    for part in ("train", "val", "test_2016_flickr"):
        for language, text in (("de", f"Ein {part}.\n"), ("en", f"A {part}.\n")):
            name, content = f"{part}.{language}", text.encode()
            (tmp_path / "multi30k" / f"{name}.gz").write_bytes(gzip.compress(content))
            digest = hashlib.sha256(content).hexdigest()
            known[name] = Source(f"multi30k/{name}", len(content), digest, "http://nowhere.test")
    assert parallel.MULTI30K.keys() == known.keys()
    monkeypatch.setattr(parallel, "MULTI30K", known)
    text = Parallel.multi30k("de", "en", tmp_path)
    assert text.train == [Pair("Ein train.", ("A train.",))]
    assert Parallel.multi30k("en", "de", tmp_path).test == [
        Pair("A test_2016_flickr.", ("Ein test_2016_flickr.",))
    ]


@pytest.mark.data
@pytest.mark.skipif(
    not (DATA / "multi30k").exists(), reason="needs multi30k in GRIDLSTM_DATA or ../shared/data"
)
def test_multi30k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path))
    text = Parallel.multi30k("de", "en", DATA)
    assert [len(part) for part in (text.train, text.valid, text.test)] == [29_000, 1014, 1000]


@pytest.mark.parametrize(
    ("language", "sentence", "words", "written"),
    [
        ("en", "Tom isn’t here.", ["Tom", "isn", "'t", "here", "."], "Tom isn't here."),
        ("en", '"no," he said.', ['"', "no", ",", '"', "he", "said", "."], '"No," he said.'),
        ("en", "at 7:30 p.m. today", ["at", "7", ":", "30", "p.m.", "today"], "At 7:30 p.m. today"),
        ("en", "go? stay!", ["go", "?", "stay", "!"], "Go? Stay!"),
        ("en", "a\u200b\tb & <c>", ["a", "b", "&", "<", "c", ">"], "A b & < c >"),
        ("de", "Das ist z.B. gut.", ["Das", "ist", "z.B.", "gut", "."], "Das ist z.B. gut."),
        ("de", "Ein „Ja“.", ["Ein", '"', "Ja", '"', "."], 'Ein "Ja".'),
        ("de", "Ein ‚Ja‘.", ["Ein", "'", "Ja", "'", "."], "Ein 'Ja'."),
        ("zh", "我 爱 New York。", ["我", "爱", "New", "York", "。"], "我爱New York。"),
        ("zh", "12月", ["1", "2", "月"], "12月"),
        ("en", " \u200b", [], ""),
        ("zh", "", [], ""),
    ],
)
def test_words(language: str, sentence: str, words: list[str], written: str) -> None:
    tokeniser = make_tokeniser(language)
    assert tokeniser.split(sentence) == words
    assert tokeniser.join(words) == written


def test_words_of_chinese() -> None:
    words = make_tokeniser("zh", "jieba").split("他在北京大学学习 hello。")
    assert "".join(words) == "他在北京大学学习hello。"
    assert {"hello", "北京大学", "。"} <= {*words}


def test_words_of_chinese_are_cached_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where everybody can write, a file with words may be a trap."""
    shared = tmp_path / "shared"
    shared.mkdir()
    trap = marshal.dumps(({"他在北": 10**9, "京大": 10**9}, 1))
    (shared / "jieba.cache").write_bytes(trap)
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    make_tokeniser.cache_clear()
    words = make_tokeniser("zh", "jieba").split("他在北京大学学习")
    assert "北京大学" in words
    assert (tmp_path / "cache" / "jieba" / "jieba.cache").is_file()
    (tmp_path / "cache" / "jieba").chmod(0o777)
    (tmp_path / "cache" / "jieba" / "jieba.cache").write_bytes(trap)
    make_tokeniser.cache_clear()
    assert make_tokeniser("zh", "jieba").split("他在北京大学学习") == words
    make_tokeniser.cache_clear()
    assert [path.name for path in shared.iterdir()] == ["jieba.cache"]


def test_english_survives_being_cut_and_joined() -> None:
    tokeniser = make_tokeniser("en")
    quotes = str.maketrans("’‘“”", "''\"\"")
    sentences = [pair.references[0].translate(quotes) for pair in Parallel.tatoeba().train[:2000]]
    same = sum(tokeniser.join(tokeniser.split(s)) == s[:1].upper() + s[1:] for s in sentences)
    assert same > 0.995 * len(sentences)


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(DataError, match=r"expected the package sacremoses, got none; pip install"):
        make_tokeniser("it")


def test_words_seen_once_are_unknown() -> None:
    sentences = [["The", "cat", "sat"], ["a", "cat", "."], ["the", "dog", "."]]
    vocabulary = Vocabulary.build(sentences)
    assert vocabulary.words == (".", "cat", "the")
    assert len(vocabulary) == 7
    assert vocabulary.encode(["THE", "dog", "cat"]) == [6, UNKNOWN, 5]
    assert vocabulary.decode([BEGIN, 6, UNKNOWN, END]) == ["<begin>", "the", "<unknown>", "<end>"]


def test_words_are_written_as_inside_sentences() -> None:
    sentences = [["He", "met", "Tom", "."], ["He", "and", "Tom", "?", "He", "."], ["Who", "met", "he"]]
    vocabulary = Vocabulary.build(sentences)
    written = dict(zip(vocabulary.words, vocabulary.written, strict=True))
    assert (written["tom"], written["he"], written["met"]) == ("Tom", "he", "met")


def test_a_vocabulary_is_kept_as_text() -> None:
    vocabulary = Vocabulary(("我", "tom"), ("我", "Tom"))
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary
    for wrong in ("", "[]", '{"words": []}', '{"words": ["a"], "written": []}'):
        with pytest.raises(DataError, match="vocabulary: expected"):
            Vocabulary.from_json(wrong)


def test_a_batch_is_padded_and_shifted() -> None:
    batch = make_batch([([5, 6, 7], [8]), ([9], [10, 11])])
    assert batch.source.tolist() == [[5, 6, 7], [9, 0, 0]]
    assert batch.lengths.tolist() == [3, 1]
    assert batch.target.tolist() == [[BEGIN, 8, 0], [BEGIN, 10, 11]]
    assert batch.following.tolist() == [[8, END, 0], [10, 11, END]]


def test_batches_have_sentences_of_equal_length_and_miss_none() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 20, (1003, 2))
    buckets = Buckets(lengths, 10, seed=3)
    epochs = [np.stack([buckets.at(100 * epoch + k) for k in range(100)]) for epoch in range(3)]
    for batches in epochs:
        assert len(np.unique(batches)) == 1000
        spread = np.ptp(lengths[batches, 0], axis=1)
        assert spread.max() <= 1
        first = lengths[batches[:, 0], 0].astype(float)
        assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.3  # Long ones do not come last.
    assert not np.array_equal(np.unique(epochs[0]), np.unique(epochs[1]))  # Others are left out.
    groups = [{frozenset(row) for row in batches.tolist()} for batches in epochs]
    assert len(groups[0] & groups[1]) < 30
    again = Buckets(lengths, 10, seed=3)
    assert np.array_equal(again.at(205), epochs[2][5])
    assert not np.array_equal(Buckets(lengths, 10, seed=4).at(205), epochs[2][5])
    with pytest.raises(DataError, match="batch: expected at most the 1003 pairs there are, got 1004"):
        Buckets(lengths, 1004, 0)
