"""A model of translation together with the two languages: sentences in, sentences out."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gridlstm.data.locate import DataError
from gridlstm.experiments.trained import options_of, stored_weights
from gridlstm.experiments.translation import TRANSLATION
from gridlstm.experiments.translation.options import TranslationOptions
from gridlstm.experiments.translation.tokens import Chinese, Tokeniser, make_tokeniser
from gridlstm.experiments.translation.vocabulary import BEGIN, END, PADDING, UNKNOWN, Vocabulary
from gridlstm.fields import check_types
from gridlstm.models.attention import AttentionTranslator
from gridlstm.models.beam_search import Rules, search_all
from gridlstm.models.reencoder import Reencoder
from gridlstm.models.translator import Ensemble, Translator
from gridlstm.training.rundir import RunDir

__all__ = [
    "Language",
    "TextTranslator",
    "load_translator",
    "make_ensemble",
    "make_model",
    "read_languages",
]


@dataclass(frozen=True)
class Language:
    """A language as a model knows it: how sentences are cut, and its words.

    Args:
        code: which one, as ``"en"``.
        chinese: how Chinese is cut.
        vocabulary: its words.
    """

    code: str
    chinese: Chinese
    vocabulary: Vocabulary

    @property
    def tokeniser(self) -> Tokeniser:
        """What cuts its sentences.

        Raises:
            DataError: if a package is missing.
        """
        return make_tokeniser(self.code, self.chinese)

    def encode(self, sentence: str) -> list[int]:
        """The numbers of the words of a sentence."""
        return self.vocabulary.encode(self.tokeniser.split(sentence))

    def decode(self, numbers: Iterable[int]) -> str:
        """The sentence of words with these numbers."""
        return self.tokeniser.join(self.vocabulary.decode(numbers))


class TextTranslator(nn.Module):
    """A translator of sentences.

    Args:
        source: the language to translate from.
        target: the language to translate to.
        model: what translates numbers of words.

    Variables:
        languages: both languages as UTF-8 text, ``[bytes]``: kept with the weights, so that they can be
            used without the text that they were trained on.
    """

    languages: Tensor

    def __init__(self, source: Language, target: Language, model: Translator) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.model = model
        self.register_buffer("languages", _to_bytes(source, target))

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Scores of words, as those of a :class:`Translator`."""
        scores: Tensor = self.model(source, target, lengths)
        return scores

    def translate(
        self, sentences: Sequence[Sequence[int]], beam: int = 20
    ) -> Iterator[tuple[int, str]]:
        """Translations of sentences, as numbers of words, with their places, as they are found.

        They never have a word that stands for unknown ones.
        """
        rules = Rules(BEGIN, END, banned=(PADDING, BEGIN, UNKNOWN), beam=beam)
        for place, found in search_all(self.model, sentences, rules):
            yield place, self.target.decode(found.words)


def make_model(options: TranslationOptions, source: Language, target: Language) -> TextTranslator:
    """A new model of the kind that the options name, for these languages."""
    sizes = (len(source.vocabulary), len(target.vocabulary), options.hidden, options.layers)
    model: Translator
    if options.network == "reencoder":
        model = Reencoder(
            *sizes,
            side_dropout=options.side_dropout,
            dropout=options.dropout,
            forget_bias=options.forget_bias,
        )
    else:
        model = AttentionTranslator(
            *sizes,
            depth_gates=options.network == "depth-gated",
            dropout=options.dropout,
            forget_bias=options.forget_bias,
        )
    return TextTranslator(source, target, model)


def load_translator(run: RunDir) -> TextTranslator:
    """The translator of a run, without the text that it was trained on.

    Raises:
        RunError: if the run is not one of translation, or has no weights yet.
        WeightsError: if they cannot be read.
        DataError: if they have no languages.
    """
    options, weights = options_of(run, TRANSLATION), stored_weights(run)
    languages = read_languages(weights.bytes("languages"))
    return weights.load_into(lambda: make_model(options, *languages))


def make_ensemble(translators: Sequence[TextTranslator]) -> TextTranslator:
    """Translators as one, with averaged probabilities (section 4.4).

    Raises:
        ValueError: if they do not have the same languages, tokenised the same way, and the same words.
    """
    first = translators[0]
    for number, translator in enumerate(translators[1:], 2):
        if not torch.equal(first.languages, translator.languages):
            raise ValueError(f"run {number}: expected the languages and words of the first, got others")
    if len(translators) == 1:
        return first
    return TextTranslator(first.source, first.target, Ensemble([t.model for t in translators])).eval()


def read_languages(languages: bytes) -> tuple[Language, Language]:
    """The languages that are kept with weights.

    Raises:
        DataError: if there are none.
    """
    try:
        found = json.loads(languages.decode())
        source, target = (
            Language(given["code"], given["chinese"], Vocabulary.from_json(given["vocabulary"]))
            for given in (found["source"], found["target"])
        )
        for language in (source, target):
            check_types(language)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"languages: expected two with their words ({error})") from error
    return source, target


def _to_bytes(source: Language, target: Language) -> Tensor:
    text = json.dumps(
        {
            name: {
                "code": language.code,
                "chinese": language.chinese,
                "vocabulary": language.vocabulary.to_json(),
            }
            for name, language in (("source", source), ("target", target))
        },
        ensure_ascii=False,
    )
    return torch.tensor(list(text.encode()), dtype=torch.uint8)
