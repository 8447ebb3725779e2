"""The command ``gridlstm translate``, and what others need of runs of translation."""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from torch import nn

from gridlstm.commands.load import Trained, expect, open_run, stored
from gridlstm.commands.options import Eval, Plot, Translate
from gridlstm.data.vocabulary import BEGIN
from gridlstm.experiments.options import Translation
from gridlstm.experiments.translation import TranslationProblem
from gridlstm.experiments.translator import (
    Language,
    TextTranslator,
    join_up,
    make_model,
    read_languages,
)
from gridlstm.figures.alignment import draw_alignment
from gridlstm.models.attention import AttentionTranslator
from gridlstm.training.rundir import RunDir, RunError

__all__ = ["adapt", "alignment", "load_translator", "run_translate"]

TOGETHER = 256
"""Lines that are read before they are translated; they are sorted by length among themselves."""
BYTES = 2**20
"""A line with more than this is not read any further."""


def run_translate(options: Translate) -> None:
    """Translates line by line, in order, and tells on standard error how far it is.

    Raises:
        ValueError: if a line is too long or no text, with its number. Those before it are translated;
            or if standard input is closed.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    if sys.stdin is None:
        raise ValueError("standard input: expected a sentence a line, but it is closed")
    runs = [open_run(path, "translation") for path in options.runs or (None,)]
    translator = join_up([load_translator(run) for run in runs])
    lines, out, console = sys.stdin.buffer, sys.stdout.buffer, Console(stderr=True)
    typed = sys.stdin.isatty()
    if typed:
        languages = f"{translator.source.code} to {translator.target.code}"
        console.print(f"Type sentences ({languages}), one per line; Ctrl-D ends.", highlight=False)
    sentences = _sentences(lines, translator.source, options.longest)
    started, done = time.perf_counter(), 0
    columns = (SpinnerColumn("line"), TextColumn("{task.completed:,} sentences, {task.fields[pace]}"))
    # Nothing moves where somebody types or reads.
    silent = typed or sys.stdout.isatty() or not console.is_terminal
    with Progress(*columns, console=console, disable=silent, transient=True) as bar:
        task = bar.add_task("", total=None, pace="")
        for chunk in _together(sentences, 1 if typed else TOGETHER):
            written = [""] * len(chunk)
            for place, sentence in translator.translate(chunk, options.beam):
                written[place] = sentence
                done += 1
                pace = f"{(time.perf_counter() - started) / done:.3g} s each"
                bar.update(task, completed=done, pace=pace)
            out.write("".join(f"{line}\n" for line in written).encode())
            out.flush()
    if done and not typed:
        each = (time.perf_counter() - started) / done
        count = "1 sentence" if done == 1 else f"{done:,} sentences"
        console.print(f"{count}, {each:.3g} s each", highlight=False)


def load_translator(run: RunDir) -> TextTranslator:
    """The translator of a run, without the text that it was trained on.

    Raises:
        RunError: if the run is not one of translation, or has no weights yet.
        WeightsError: if they cannot be read.
        DataError: if they have no languages.
    """
    experiment, weights = expect(run, Translation), stored(run)
    languages = read_languages(weights.bytes("languages"))
    return weights.put(lambda: make_model(experiment, *languages))


def adapt(trained: Trained, options: Eval) -> nn.Module:
    """The network to be tested in place of that of a run: an ensemble, or the same with another beam.

    Raises:
        RunError: if a run is not one of translation.
        ValueError: if the runs do not have the same languages and words.
    """
    problem, network = trained.problem, trained.network
    if not isinstance(problem, TranslationProblem) or not isinstance(network, TextTranslator):
        raise RunError(
            f"--ensemble, --beam: expected a run of translation, got one of {trained.experiment.name}"
        )
    if options.beam is not None:
        problem.experiment = replace(problem.experiment, beam=options.beam)
    return join_up([network, *(load_translator(RunDir.open(path)) for path in options.ensemble)])


def alignment(run: RunDir, options: Plot) -> Figure:
    """A figure of how the model of a run relates two sentences.

    Raises:
        RunError: if the run is not one of translation.
        ValueError: if a sentence is missing or empty.
    """
    translator = load_translator(run)
    given = {"source": options.source, "target": options.target}
    source = _words("source", given["source"], translator.source)
    numbers = translator.source.vocabulary.encode(source)
    if given["target"] is None:
        ((_, given["target"]),) = translator.translate([numbers])
    target = _words("target", given["target"], translator.target)
    read = torch.tensor([[BEGIN, *translator.target.vocabulary.encode(target)]])
    maps = translator.model.align(torch.tensor([numbers]), read)[:, 0]
    titles = [f"layer {number}" for number in range(1, len(maps) + 1)]
    if isinstance(translator.model, AttentionTranslator):
        titles = ["attention"]
    return draw_alignment(maps.numpy(), titles, source, [*target, "(end)"])


def _words(name: str, sentence: str | None, language: Language) -> list[str]:
    words = [] if sentence is None else language.tokeniser.split(sentence)
    if not words:
        raise ValueError(f"--{name}: expected a sentence, got {sentence!r}")
    return words


def _sentences(lines: IO[bytes], language: Language, longest: int) -> Iterator[list[int]]:
    """Lines as numbers of words."""
    number = 0
    while line := lines.readline(BYTES + 1):
        number += 1
        if len(line) > BYTES:
            raise ValueError(f"line {number}: expected at most {BYTES:,} bytes, got more")
        try:
            words = language.encode(line.decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number}: expected text in UTF-8, got {error.reason}") from None
        if len(words) > longest:
            raise ValueError(
                f"line {number}: expected at most {longest} words, got {len(words)}; "
                f"--longest allows more"
            )
        yield words


def _together(sentences: Iterable[list[int]], count: int) -> Iterator[list[list[int]]]:
    """Some at a time; before an error, those that came before it."""
    chunk: list[list[int]] = []
    try:
        for sentence in sentences:
            chunk.append(sentence)
            if len(chunk) == count:
                yield chunk
                chunk = []
    except ValueError:
        yield chunk
        raise
    yield chunk
