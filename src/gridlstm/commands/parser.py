"""Arguments of the command line to options, and one helpful line where that is not possible."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Union, get_args

import tyro
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from gridlstm.bench.options import Bench
from gridlstm.commands import options
from gridlstm.commands.options import Preset, Run, Train
from gridlstm.experiments.options import EXPERIMENTS, Experiment, from_flat

__all__ = ["parse"]

HELP = ("-h", "--help")
COMMANDS = {
    "train": Train,
    "eval": options.Eval,
    "generate": options.Generate,
    "score": options.Score,
    "translate": options.Translate,
    "classify": options.Classify,
    "plot": options.Plot,
    "list": options.List,
    "collect": options.Collect,
    "bench": Bench,
}
"""What can be asked of each command."""
KINDS = {"INT": "an integer", "FLOAT": "a number", "PATH": "a path", "PATH PATH": "two paths"}
"""What the parser calls a value."""


def parse(arguments: Sequence[str]) -> tuple[str, Any]:
    """The command and its options.

    Raises:
        SystemExit: 0 after help.
        ValueError: if there is no such command or option, or a value is wrong.
    """
    _check_word("a command", arguments[:1], COMMANDS)
    if arguments[0] == "train":
        _check_word("an experiment after train", arguments[1:2], EXPERIMENTS)
    wrong = StringIO()
    try:
        with redirect_stderr(wrong), _wide(unless=bool(set(HELP) & set(arguments))):
            found = tyro.extras.subcommand_cli_from_dict(
                {**COMMANDS, "train": _train(arguments)},
                prog="gridlstm",
                description="Grid Long Short-Term Memory: train, evaluate, measure.",
                args=arguments,
                config=(OmitArgPrefixes, OmitSubcommandPrefixes),
            )
    except SystemExit as stopped:
        if stopped.code:
            raise ValueError(_one_line(wrong.getvalue())) from None
        raise
    return arguments[0], found


def _check_word(what: str, given: Sequence[str], known: Iterable[str]) -> None:
    """Checks a word that stands for one of several."""
    word = next(iter(given), None)
    if word in (*HELP, *known):
        return
    hint = "" if word is None else _meant(get_close_matches(word, list(known), 1))
    got = "nothing" if word is None else repr(word)
    raise ValueError(f"expected {what}: one of {', '.join(known)}; got {got}{hint}")


@contextmanager
def _wide(*, unless: bool) -> Iterator[None]:
    """Lets the parser write without breaking lines: an error is told in one, unlike help."""
    before = os.environ.get("COLUMNS")
    os.environ.update({} if unless else {"COLUMNS": "9999"})
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("COLUMNS", None)
        else:
            os.environ["COLUMNS"] = before


def _meant(words: Iterable[str]) -> str:
    """A hint, if there is a word that may have been meant."""
    found = " or ".join(dict.fromkeys(words))
    return f"; did you mean {found}?" if found else ""


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
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
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
    """The message in one of tyro's boxes, in words of ours, with options that may have been meant.

    A box has a title and sections with lines between them; where the terminal has no characters for a
    frame, the title is a section of its own.
    """
    lines = [line.strip("│| ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    sections = re.split(r"\n[─-]{3,}\n", "\n".join(lines))
    message, *rest = sections if "╭" in box else sections[1:]
    hints = next((section for section in rest if section.startswith("Perhaps you meant")), "")
    meant = re.findall(r"^--[\w-]+", hints, re.MULTILINE)
    return _reworded(" ".join(message.split())) + _meant(meant)


def _reworded(message: str) -> str:
    """A message without the parser's own terms; as it is, if it is none of those that are known."""
    if found := re.match(r"Error parsing [^:]+: (\w+: .*)", message):  # It is one of ours.
        return found[1]
    if found := re.match(
        r"Error parsing (\S+): (invalid literal for int|could not).*?: ('.*')", message
    ):
        kind = "an integer" if "int" in found[2] else "a number"
        return f"{found[1]}: expected {kind}, got {found[3]}"
    if found := re.match(
        r"Error parsing (\S+): no type matching (.*?) could .*? from \[(.*?)\]\.", message
    ):
        kind = found[2].replace("{None}|", "").strip("{}")
        return f"{found[1]}: expected {KINDS.get(kind, kind)} or None, got {found[3]}"
    if found := re.match(r"Error parsing (\S+): Could not find .*?: \[(.*)\]", message):
        return f"{found[1]}: expected other values, got {found[2]}"
    if found := re.match(r"Missing value for argument \W*?(--[\w-]+)", message):
        return f"{found[1]}: expected a value, got none"
    if found := re.match(
        r"invalid choice '(.*)' for argument '(\S+)'\. Expected one of \((.*)\)", message
    ):
        choices = re.findall(r"'([^']*)'", found[3])
        hint = _meant(get_close_matches(found[1], choices, 1))
        return f"{found[2]}: expected one of {', '.join(choices)}; got {found[1]!r}{hint}"
    if found := re.match(r"Missing from \w+ \w+: (\S+) (.*?)\. ", message):
        return f"{found[1]}: expected {found[2][0].lower()}{found[2][1:]}, got none"
    if found := re.match(r"Unrecognized [\w ]*?options: (.*)", message):
        words = found[1].split(", ")
        names = [word for word in words if word.startswith("-")]
        return (
            f"unknown option {', '.join(names)}" if names else f"unexpected argument {', '.join(words)}"
        )
    return message
