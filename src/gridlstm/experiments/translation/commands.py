"""The command ``gridlstm translate``."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import IO

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from gridlstm.experiments.trained import open_run
from gridlstm.experiments.translation.options import TranslateOptions
from gridlstm.experiments.translation.text_translator import Language, load_translator, make_ensemble

__all__ = ["translate_lines"]

LINES_AT_ONCE = 256
"""The number of lines that are translated together, sorted by length."""
LINE_BYTES = 2**20
"""The largest number of bytes of a line."""


def translate_lines(options: TranslateOptions) -> None:
    """Translates line by line, in order, and reports progress on standard error.

    Raises:
        ValueError: if standard input is closed, or if a line is too long or not UTF-8, after the lines
            before it have been translated.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    if sys.stdin is None:
        raise ValueError("standard input: expected one sentence per line, but it is closed")
    runs = [open_run(path, "translation") for path in options.runs or (None,)]
    translator = make_ensemble([load_translator(run) for run in runs])
    lines, out, console = sys.stdin.buffer, sys.stdout.buffer, Console(stderr=True)
    typed = sys.stdin.isatty()
    if typed:
        languages = f"{translator.source.code} to {translator.target.code}"
        console.print(f"Type sentences ({languages}), one per line; Ctrl-D ends.", highlight=False)
    sentences = _sentences(lines, translator.source, options.longest)
    started, done = time.perf_counter(), 0
    columns = (SpinnerColumn("line"), TextColumn("{task.completed:,} sentences, {task.fields[pace]}"))
    # No spinner if sentences are typed or read on the terminal.
    silent = typed or sys.stdout.isatty() or not console.is_terminal
    with Progress(*columns, console=console, disable=silent, transient=True) as bar:
        task = bar.add_task("", total=None, pace="")
        for chunk in _chunks(sentences, 1 if typed else LINES_AT_ONCE):
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


def _sentences(lines: IO[bytes], language: Language, longest: int) -> Iterator[list[int]]:
    """Reads lines as numbers of words."""
    number = 0
    while line := lines.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise ValueError(f"line {number}: expected at most {LINE_BYTES:,} bytes, got more")
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


def _chunks(sentences: Iterable[list[int]], count: int) -> Iterator[list[list[int]]]:
    """Sentences in chunks. Before an error is raised, those before it are yielded."""
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
