"""Heat maps of how a model relates the words of two sentences."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gridlstm.experiments.translation.options import AlignmentOptions
from gridlstm.experiments.translation.text_translator import Language, TextTranslator, load_translator
from gridlstm.experiments.translation.vocabulary import BEGIN
from gridlstm.figures.find_font import find_font
from gridlstm.figures.save import write_figure
from gridlstm.models.attention import AttentionTranslator
from gridlstm.training.rundir import RunDir

__all__ = ["draw_alignment", "draw_sentences", "plot"]


def plot(options: AlignmentOptions) -> None:
    """Draws how the network of a run relates two sentences.

    Raises:
        RunError: if it is a run of another experiment.
        ValueError: if a sentence is missing or empty.
    """
    translator = load_translator(RunDir.open(options.run))
    write_figure(draw_sentences(translator, options.source, options.target), options)


def draw_sentences(translator: TextTranslator, source: str | None, target: str | None) -> Figure:
    """A figure of how a translator relates two sentences.

    Args:
        translator: the translator.
        source: the source sentence.
        target: its translation. Default: the translation by the translator.

    Raises:
        ValueError: if a sentence is missing or empty.
    """
    source_words = _words("source", source, translator.source)
    numbers = translator.source.vocabulary.encode(source_words)
    if target is None:
        ((_, target),) = translator.translate([numbers])
    target_words = _words("target", target, translator.target)
    read = torch.tensor([[BEGIN, *translator.target.vocabulary.encode(target_words)]])
    maps = translator.model.align(torch.tensor([numbers]), read)[:, 0]
    titles = [f"layer {number}" for number in range(1, len(maps) + 1)]
    if isinstance(translator.model, AttentionTranslator):
        titles = ["attention"]
    return draw_alignment(maps.numpy(), titles, source_words, [*target_words, "(end)"])


def _words(name: str, sentence: str | None, language: Language) -> list[str]:
    words = [] if sentence is None else language.tokeniser.split(sentence)
    if not words:
        raise ValueError(f"--{name}: expected a sentence, got {sentence!r}")
    return words


def draw_alignment(
    maps: NDArray[np.float32], titles: Sequence[str], source: Sequence[str], target: Sequence[str]
) -> Figure:
    """A panel for each map: source words from left to right, target words from top to bottom.

    Args:
        maps: the result of :meth:`gridlstm.models.translator.Translator.align` for one pair of
            sentences, ``[maps, target, source]``.
        titles: the title of each map.
        source: the words of the source sentence.
        target: the predicted words, including the end.
    """
    font, (source, target) = find_font(source, target)
    width = 1.6 + 0.34 * len(source)
    figure = Figure(figsize=(width * len(maps), 1.4 + 0.26 * len(target)), layout="constrained")
    panels = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for axes, title, values in zip(panels, titles, maps, strict=True):
        image = axes.imshow(values, aspect="auto", cmap="Blues", vmin=0)
        axes.set_xticks(range(len(source)), source, fontproperties=font, fontsize=9)
        axes.set_yticks(range(len(target)), target, fontproperties=font, fontsize=9)
        if max(map(len, source)) > 2:
            axes.tick_params(axis="x", rotation=60)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("source", fontsize=8)
        figure.colorbar(image, ax=axes)
    panels[0].set_ylabel("predicted", fontsize=8)
    return figure
