"""The command ``gridlstm``. PyTorch is imported only by a command that runs."""

import json
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Union, get_args

import tyro
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from gridlstm.bench.options import Bench
from gridlstm.commands.options import (
    Classify,
    Collect,
    Eval,
    Generate,
    List,
    Plot,
    Preset,
    Run,
    Score,
    Train,
    Translate,
)
from gridlstm.experiments.options import EXPERIMENTS, Experiment, from_flat

__all__ = ["main"]


def main() -> None:
    """Runs the command that the arguments name."""
    options = _parse(sys.argv[1:])
    if isinstance(options, Bench):
        from gridlstm.bench.command import run as bench

        bench(options)
    elif isinstance(options, Train):
        from gridlstm.commands.train import run as train

        train(options)
    else:
        from gridlstm.commands import serve

        serve(options)


def _parse(arguments: Sequence[str]) -> Any:
    """What is asked for.

    Raises:
        SystemExit: 0 after help, 2 after a line about what is wrong.
    """
    commands = {
        "train": _train(arguments),
        "eval": Eval,
        "generate": Generate,
        "score": Score,
        "translate": Translate,
        "classify": Classify,
        "plot": Plot,
        "list": List,
        "collect": Collect,
        "bench": Bench,
    }
    wrong = StringIO()
    try:
        with redirect_stderr(wrong):
            return tyro.extras.subcommand_cli_from_dict(
                commands,
                prog="gridlstm",
                description="Grid Long Short-Term Memory: train, evaluate, measure.",
                args=arguments,
                config=(OmitArgPrefixes, OmitSubcommandPrefixes),
            )
    except SystemExit as stopped:
        if stopped.code:
            sys.stderr.write(f"gridlstm: {_one_line(wrong.getvalue())}\n")
        raise


def _train(arguments: Sequence[str]) -> Any:
    """``train`` with a subcommand for each experiment, whose defaults depend on ``--preset``.

    With ``--resume`` instead, they are the options that the run was started with.
    """
    preset: Any = _value(arguments, "--preset")
    preset = preset if preset in get_args(Preset) else None
    resumed = _resumed(arguments)
    kinds = []
    for name, presets in EXPERIMENTS.items():
        usual = preset or ("small" if "small" in presets else Run.preset)
        default = presets.get(usual, presets[Run.preset])
        if resumed is not None and resumed.name == name:
            default = resumed
        kind: Any = type(default)
        chosen = Train(default, Run(preset=usual))
        about = (kind.__doc__ or "").splitlines()[0]
        kinds.append(Annotated[Train[kind], subcommand(name, default=chosen, description=about)])

    def train(asked: Union[tuple(kinds)]) -> object:  # type: ignore[valid-type]  # noqa: UP007
        """Train a network; a run that was stopped or killed goes on with --resume."""
        return asked

    return train


def _resumed(arguments: Sequence[str]) -> Experiment | None:
    out = _value(arguments, "--out")
    if out is None or "--resume" not in arguments or _value(arguments, "--preset") is not None:
        return None
    try:
        config = json.loads((Path(out) / "config.json").read_text())
        return from_flat(config["experiment"], config["options"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # The command itself says what is wrong with it.


def _value(arguments: Sequence[str], name: str) -> str | None:
    """What is given for an option, the last time it is, before the options are parsed."""
    found = None
    for place, argument in enumerate(arguments):
        if argument == name:
            found = next(iter(arguments[place + 1 :]), None)
        elif argument.startswith(f"{name}="):
            found = argument.removeprefix(f"{name}=")
    return found


def _one_line(box: str) -> str:
    """The message in one of tyro's boxes, and the options that may have been meant.

    A box has a title and sections with lines between them; where the terminal has no characters for a
    frame, the title is a section of its own.
    """
    lines = [line.strip("│| ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    sections = re.split(r"\n[─-]{3,}\n", "\n".join(lines))
    message, *rest = sections if "╭" in box else sections[1:]
    message = re.sub(r"^Error parsing [\w.-]+: (?=\w+: )", "", " ".join(message.split()))
    hints = next((section for section in rest if section.startswith("Perhaps you meant")), "")
    meant = dict.fromkeys(re.findall(r"^--[\w-]+", hints, re.MULTILINE))
    return f"{message}; perhaps you meant {' or '.join(meant)}" if meant else message
