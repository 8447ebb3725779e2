"""A translation model with its two languages, which translates sentences as text."""

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
from gridlstm.export.interface import Interface, interface_of
from gridlstm.export.scan import ExportError
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
    """A language of a model: its tokeniser and its vocabulary.

    Args:
        code: the code of the language, as ``"en"``.
        chinese: how Chinese is split.
        vocabulary: the words of the language.
    """

    code: str
    chinese: Chinese
    vocabulary: Vocabulary

    @property
    def tokeniser(self) -> Tokeniser:
        """The tokeniser of the language.

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
        model: the model, which translates numbers of words.

    Variables:
        languages: both languages as UTF-8 text, ``[bytes]``: stored with the weights, so that a
            translator can be used without the text that it was trained on.
    """

    languages: Tensor

    def __init__(self, source: Language, target: Language, model: Translator) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.model = model
        self.register_buffer("languages", _to_bytes(source, target))

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Scores of words, as of a :class:`Translator`."""
        scores: Tensor = self.model(source, target, lengths)
        return scores

    def translate(
        self, sentences: Sequence[Sequence[int]], beam: int = 20
    ) -> Iterator[tuple[int, str]]:
        """Translates sentences, given as numbers of words; yields their indices and translations.

        They come in the order in which they are found, and never have the unknown word.
        """
        rules = Rules(BEGIN, END, banned=(PADDING, BEGIN, UNKNOWN), beam=beam)
        for index, candidate in search_all(self.model, sentences, rules):
            yield index, self.target.decode(candidate.words)

    def translate_text(self, sentences: Sequence[str], beam: int = 20) -> list[str]:
        """Translates sentences, given as text; returns their translations in the same order.

        Raises:
            TypeError: if ``sentences`` is a single string, or the beam is not an integer.
            ValueError: if the beam is below 1.
            DataError: if a package that splits words is missing.
        """
        if isinstance(sentences, str):
            raise TypeError(f"sentences: expected a list of strings, got {sentences!r}")
        numbers = [self.source.encode(sentence) for sentence in sentences]
        translations = dict(self.translate(numbers, beam))
        return [translations[index] for index in range(len(numbers))]


@interface_of.register
def _(
    translator: TextTranslator, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """Raises an error: the network alone would not translate."""
    raise ExportError(
        "TextTranslator cannot be exported: its beam search is not part of the graph of a network"
    )


def make_model(options: TranslationOptions, source: Language, target: Language) -> TextTranslator:
    """Makes a new model of the kind named in the options, for these languages."""
    sizes = (len(source.vocabulary), len(target.vocabulary), options.hidden, options.layers)
    model: Translator
    if options.network == "reencoder":
        model = Reencoder(
            *sizes,
            embedding_size=options.word_size,
            encoder=options.encoder,
            entry=options.entry,
            side_dropout=options.side_dropout,
            dropout=options.dropout,
            forget_bias=options.forget_bias,
        )
    else:
        model = AttentionTranslator(
            *sizes,
            depth_gates=options.network == "depth-gated",
            embedding_size=options.word_size,
            dropout=options.dropout,
            forget_bias=options.forget_bias,
        )
    return TextTranslator(source, target, model)


def load_translator(run: RunDir) -> TextTranslator:
    """Loads the translator of a run; the text that it was trained on is not needed.

    Raises:
        RunError: if it is a run of another experiment, or has no weights yet.
        WeightsError: if the weights cannot be read.
        DataError: if no languages are stored with them.
    """
    options, weights = options_of(run, TRANSLATION), stored_weights(run)
    languages = read_languages(weights.bytes("languages"))
    return weights.load_into(lambda: make_model(options, *languages))


def make_ensemble(translators: Sequence[TextTranslator]) -> TextTranslator:
    """Combines translators by averaging their probabilities (section 4.4).

    Raises:
        ValueError: if they differ in languages, tokenisers or vocabularies.
    """
    first = translators[0]
    for number, translator in enumerate(translators[1:], 2):
        if not torch.equal(first.languages, translator.languages):
            raise ValueError(f"run {number}: expected the languages and words of the first, got others")
    if len(translators) == 1:
        return first
    return TextTranslator(first.source, first.target, Ensemble([t.model for t in translators])).eval()


def read_languages(languages: bytes) -> tuple[Language, Language]:
    """Parses the languages that are stored with weights.

    Raises:
        DataError: if they are damaged.
    """
    try:
        parsed = json.loads(languages.decode())
        source, target = (
            Language(fields["code"], fields["chinese"], Vocabulary.from_json(fields["vocabulary"]))
            for fields in (parsed["source"], parsed["target"])
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
