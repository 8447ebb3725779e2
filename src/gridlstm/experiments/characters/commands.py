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
from gridlstm.experiments.trained import open_run, options_of, stored_weights
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.generate import generate
from gridlstm.pipes import print_json
from gridlstm.training.rundir import RunDir

__all__ = ["generate_text", "load_model", "score_file"]


def generate_text(options: GenerateOptions) -> None:
    """Writes the prompt and what follows, as it comes, and on a terminal how fast it was."""
    model = load_model(open_run(options.run, "characters"))
    alphabet = bytes(model.alphabet.tolist())
    given = os.fsencode(options.prompt)  # The bytes that were typed, whatever they are.
    prompt, unseen = encode(given, alphabet)
    console = Console(stderr=True)
    if unseen:
        console.print(
            f"gridlstm generate: left out {unseen} bytes of the prompt, unknown to the network"
        )
    out = sys.stdout.buffer
    out.write(given)
    symbols = generate(
        model,
        prompt,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
    )
    started, written = time.perf_counter(), 0
    try:
        for symbol in islice(symbols, options.length or None):
            out.write(alphabet[symbol : symbol + 1])
            written += 1
            if written % 8 == 0:  # Smooth to the eye, and cheap.
                out.flush()
        out.write(b"\n")
        out.flush()
    except KeyboardInterrupt:
        out.write(b"\n")
        out.flush()
        raise
    if console.is_terminal:
        speed = written / (time.perf_counter() - started)
        console.print(f"{written:,} characters, {speed:,.0f} a second", highlight=False)


def score_file(options: ScoreOptions) -> None:
    """Tells the bits per character of a file."""
    model = load_model(RunDir.open(options.run))
    text = read_file(options.file)
    alphabet = bytes(model.alphabet.tolist())
    known = np.isin(text, np.frombuffer(alphabet, np.uint8))
    unseen = int(len(text) - known.sum())
    kept = text[known] if unseen else text
    if len(kept) < 2:
        raise ValueError(f"{options.file}: expected at least 2 known characters, got {len(kept)}")
    found = measure(model, kept, alphabet, options.streams)
    result = {"file": str(options.file), **found, "unseen": unseen}
    console = Console()
    if console.is_terminal:
        console.print(
            f"{found['bits']:.4f} bits per character over {found['characters']:,}, {unseen:,} left out",
            highlight=False,
        )
    else:
        print_json(result)


def load_model(run: RunDir) -> CharacterModel:
    """The model of a run, without the text that it was trained on.

    Raises:
        RunError: if the run is not one of characters, or has no weights yet.
        WeightsError: if they cannot be read.
    """
    options, weights = options_of(run, CHARACTERS), stored_weights(run)
    alphabet = weights.bytes("alphabet")
    return weights.load_into(lambda: make_model(options, alphabet))
