"""The commands ``gridlstm generate`` and ``gridlstm score``."""

import os
import sys
import time
from itertools import islice

import numpy as np
from rich.console import Console

from gridlstm.experiments.characters import CHARACTERS
from gridlstm.experiments.characters.data import encode, read_file
from gridlstm.experiments.characters.options import GenerateOptions, ScoreOptions
from gridlstm.experiments.characters.problem import make_model, measure
from gridlstm.experiments.trained import find_run, open_run, options_of, stored_weights
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import generate
from gridlstm.pipes import print_json
from gridlstm.training.rundir import RunDir

__all__ = ["generate_text", "load_model", "score_file"]


def generate_text(options: GenerateOptions) -> None:
    """Writes the prompt and the generated text, and on a terminal the speed."""
    model = load_model(open_run(options.run, "characters"))
    alphabet = bytes(model.alphabet.tolist())
    prompt_bytes = os.fsencode(options.prompt)  # As typed, whatever the encoding.
    prompt, unknown = encode(prompt_bytes, alphabet)
    console = Console(stderr=True)
    if unknown:
        console.print(f"gridlstm generate: skipped {unknown} bytes of the prompt that are unknown")
    symbols = generate(
        model,
        prompt,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        int8=options.int8,
    )
    out = sys.stdout.buffer
    out.write(prompt_bytes)
    started, written = time.perf_counter(), 0
    try:
        for symbol in islice(symbols, options.length or None):
            out.write(alphabet[symbol : symbol + 1])
            written += 1
            if written % 8 == 0:  # Often enough to look smooth.
                out.flush()
        out.write(b"\n")
        out.flush()
    except KeyboardInterrupt:
        out.write(b"\n")
        out.flush()
        raise
    if console.is_terminal:
        speed = written / (time.perf_counter() - started)
        console.print(f"{written:,} characters, {speed:,.0f} per second", highlight=False)


def score_file(options: ScoreOptions) -> None:
    """Prints the bits per character of a file."""
    model = load_model(find_run(options.run))
    text = read_file(options.file)
    alphabet = bytes(model.alphabet.tolist())
    known = np.isin(text, np.frombuffer(alphabet, np.uint8))
    unknown = int(len(text) - known.sum())
    text = text[known] if unknown else text
    if len(text) < 2:
        raise ValueError(f"{options.file}: expected at least 2 known characters, got {len(text)}")
    measures = measure(model, text, alphabet, options.streams)
    result = {"file": str(options.file), **measures, "unseen": unknown}
    console = Console()
    if console.is_terminal:
        console.print(
            f"{measures['bits']:.4f} bits per character over {measures['characters']:,}, "
            f"{unknown:,} skipped",
            highlight=False,
        )
    else:
        print_json(result)


def load_model(run: RunDir) -> CharacterModel:
    """Loads the model of a run; the text that it was trained on is not needed.

    Raises:
        RunError: if it is a run of another experiment, or has no weights yet.
        WeightsError: if the weights cannot be read.
    """
    options, weights = options_of(run, CHARACTERS), stored_weights(run)
    alphabet = weights.bytes("alphabet")
    return weights.load_into(lambda: make_model(options, alphabet))
