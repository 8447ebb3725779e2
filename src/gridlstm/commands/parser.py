"""Parses the command line into options, or raises an error with a helpful line."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import tyro
from tyro import _errors as events  # The only access to parse errors that are not rendered as a box.
from tyro.conf import OmitArgPrefixes

from gridlstm.command import Command
from gridlstm.commands.config_file import read_config
from gridlstm.commands.options import Preset, RunOptions, Train
from gridlstm.commands.table import COMMANDS
from gridlstm.experiments.record import Experiment
from gridlstm.experiments.registry import EXPERIMENTS, from_flat
from gridlstm.sweeps.options import Sweep, SweepOptions
from gridlstm.sweeps.source import read_plan

__all__ = ["Parsed", "parse"]

HELP = ("-h", "--help")
VALUES = {"INT": "an integer", "FLOAT": "a number", "PATH": "a path", "STR": "a string"}
"""Tyro's names of types, in words."""
ABOUTS = {
    "gridlstm train": "Train a network; --resume continues a run that was stopped or killed.",
    "gridlstm plot": "Draw a figure",
    "gridlstm bench": "Run a benchmark",
}
"""What a command does, where the docstring of its options does not say so."""


class Parsed(NamedTuple):
    """A command line.

    Attributes:
        name: the command, as ``"plot curve"``.
        run: the function to call, as ``"package.module:function"``.
        options: its argument.
    """

    name: str
    run: str
    options: Any


def parse(arguments: Sequence[str]) -> Parsed:
    """The command and its options.

    Raises:
        SystemExit: 0 after help.
        ValueError: if there is no such command or option, or a value is wrong.
    """
    name = _choose("a command", arguments[:1], COMMANDS, "gridlstm")
    entry, rest = COMMANDS[name], arguments[1:]
    if name == "train":
        abouts = {kind: record.about for kind, record in EXPERIMENTS.items()}
        kind = _choose("an experiment after train", rest[:1], abouts, "gridlstm train")
        return _parse_train(EXPERIMENTS[kind], rest[1:])
    if name == "sweep":
        return _parse_sweep(rest)
    if isinstance(entry, Mapping):
        kind = _choose(f"a kind after {name}", rest[:1], entry, f"gridlstm {name}")
        name, entry, rest = f"{name} {kind}", entry[kind], rest[1:]
    return Parsed(name, entry.run, _parse_options(name, entry.options, rest))


def _choose(what: str, words: Sequence[str], known: Mapping[str, Any], program: str) -> str:
    """The first word, which must be one of those known. Prints help if it asks for it."""
    word = next(iter(words), None)
    if word is not None and word in known:
        return word
    if word in HELP:
        width = max(map(len, known))
        lines = [
            f"  {name:{width}}  {_about(f'{program} {name}', entry)}" for name, entry in known.items()
        ]
        usage = f"usage: {program} {{{','.join(known)}}} [-h] [OPTIONS]"
        sys.stdout.write("\n".join([usage, "", *lines, ""]))
        raise SystemExit(0)
    hint = "" if word is None else _hint(get_close_matches(word, list(known), 1))
    got = "nothing" if word is None else repr(word)
    raise ValueError(f"expected {what}: one of {', '.join(known)}; got {got}{hint}")


def _about(name: str, entry: str | Command | Mapping[str, Command]) -> str:
    """What a command does, in one line."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Mapping):
        return f"{ABOUTS[name]}: {', '.join(entry)}."
    return ABOUTS.get(name) or (entry.options.__doc__ or "").splitlines()[0]


def _parse_options(
    name: str,
    kind: Any,
    arguments: Sequence[str],
    default: Any = tyro.MISSING_NONPROP,
    about: str | None = None,
) -> Any:
    """Parses the fields of a dataclass, and of dataclasses inside it."""

    def explain(event: events.ParseErrorEvent) -> None:
        raise ValueError(_explain(event, kind, arguments))

    with events.on_parse_error(explain):
        return tyro.cli(
            kind,
            prog=f"gridlstm {name}",
            description=about,
            args=arguments,
            default=default,
            config=(OmitArgPrefixes,),
        )


def _parse_train(experiment: Experiment[Any], arguments: Sequence[str]) -> Parsed:
    """Defaults are those of ``--preset``, or with ``--resume`` of the run, changed by ``--config``."""
    path, named, out = (_value(arguments, name) for name in ("--config", "--preset", "--out"))
    config = None if path is None else read_config(Path(path), experiment)
    resume = "--resume" in arguments
    if config is not None:
        if config.complete and named is not None:
            raise ValueError(f"preset: expected none, because {path} has the options")
        named, out = named or config.preset, out or config.run.get("out")
        resume = resume or config.run.get("resume", False)
    usual, default = _preset(experiment, named)
    if named is None and resume:
        default = _options_of_run(experiment, out) or default
    chosen = Train(default, RunOptions(preset=usual))
    if config is not None:
        chosen = config.apply(chosen)
    return _parse_experiment("train", experiment, Train, arguments, chosen)


def _parse_sweep(arguments: Sequence[str]) -> Parsed:
    """After the name of an experiment, a file or the directory of a sweep, which has the defaults."""
    source = Path(next(iter(arguments), ""))
    if arguments and arguments[0] not in EXPERIMENTS and (source.suffix == ".toml" or source.is_dir()):
        if _value(arguments, "--preset") is not None:
            raise ValueError(f"preset: expected none, because {source} has the options")
        plan = read_plan(source)
        experiment, default = plan.experiment, plan.options
        how = SweepOptions(source=source, test_samples=plan.test_samples)
    else:
        abouts = {kind: record.about for kind, record in EXPERIMENTS.items()}
        what = "an experiment, a TOML file or the directory of a sweep after sweep"
        experiment = EXPERIMENTS[_choose(what, arguments[:1], abouts, "gridlstm sweep")]
        usual, default = _preset(experiment, _value(arguments, "--preset"))
        how = SweepOptions(preset=usual)
    return _parse_experiment("sweep", experiment, Sweep, arguments[1:], Sweep(default, how))


def _preset(experiment: Experiment[Any], named: str | None) -> tuple[Any, Any]:
    """The preset that is named, or else the usual one, and its options."""
    preset: Any = named if named in get_args(Preset) else None
    usual = preset or ("small" if "small" in experiment.presets else RunOptions.preset)
    return usual, experiment.presets.get(usual, experiment.presets[RunOptions.preset])


def _parse_experiment(
    name: str, experiment: Experiment[Any], kind: Any, arguments: Sequence[str], default: Any
) -> Parsed:
    """Options of an experiment, beside those of a command that all experiments have."""
    command = COMMANDS[name]
    assert isinstance(command, Command), f"{name} is not a group"
    options = _parse_options(
        f"{name} {experiment.name}",
        kind[experiment.options],
        arguments,
        default,
        experiment.options.__doc__,
    )
    return Parsed(name, command.run, options)


def _options_of_run(experiment: Experiment[Any], out: str | Path | None) -> Any:
    """The options of an existing run; ``None`` if they cannot be read, which the command reports."""
    if out is None:
        return None
    try:
        config = read_config(Path(out) / "config.json", experiment)
        return from_flat(experiment, config.options)
    except (OSError, ValueError, TypeError):
        return None


def _value(arguments: Sequence[str], name: str) -> str | None:
    """The last value of an option, before options are parsed."""
    value = None
    for place, argument in enumerate(arguments):
        if argument == name:
            value = next(iter(arguments[place + 1 :]), None)
        elif argument.startswith(f"{name}="):
            value = argument.removeprefix(f"{name}=")
    return value


def _explain(event: events.ParseErrorEvent, kind: Any, arguments: Sequence[str]) -> str:
    """What is wrong with the arguments, in one line."""
    if isinstance(event, events.UnrecognizedArgs):
        names = [token for token in event.tokens if token.startswith("-")]
        if not names:
            return f"unexpected argument {', '.join(event.tokens)}"
        flags = list(_flags(kind))
        close = [flag for name in names for flag in get_close_matches(name.partition("=")[0], flags, 1)]
        return f"unknown option {', '.join(names)}{_hint(close)}"
    if isinstance(event, events.InvalidChoice):
        name, hint = _name(event.argument), _hint(get_close_matches(event.value, event.choices, 1))
        return f"{name}: expected one of {', '.join(event.choices)}; got {event.value!r}{hint}"
    if isinstance(event, events.BadValue):
        return f"{_name(event.argument)}: expected a value, got none"
    if isinstance(event, events.MissingArgs):
        argument = event.missing_arguments[0].arg
        text = argument.field.helptext
        about = ((text() if callable(text) else text) or "a value").partition(".")[0]
        return f"{_name(argument)}: expected {about[0].lower()}{about[1:]}, got none"
    if isinstance(event, events.InstantiationFailure):
        if event.argument is None:  # Raised by ``__post_init__`` of the options, and names the option.
            return event.message
        name = _name(event.argument)
        value = _value(arguments, name)
        return f"{name}: expected {_kind(event.argument)}, got {value!r}"
    return f"{' '.join(arguments)}: expected other options"


def _name(argument: Any) -> str:
    """The name of an option or a positional argument, as in the help."""
    lowered = argument.lowered
    return str(lowered.metavar if argument.is_positional() else lowered.name_or_flags[-1])


def _kind(argument: Any) -> str:
    """The type of an option, in words."""
    words = str(argument.lowered.metavar).replace("{None}|", "").strip("[]")
    optional = " or None" if "{None}" in str(argument.lowered.metavar) else ""
    return f"{VALUES.get(words.split()[0], words)}{optional}"


def _flags(kind: Any) -> Iterator[str]:
    """The names of the options of a dataclass, and of those inside it."""
    origin = getattr(kind, "__origin__", kind)
    inner = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
    hints = get_type_hints(origin)
    for field in fields(origin):
        nested = inner.get(hints[field.name], hints[field.name])
        if is_dataclass(nested):
            yield from _flags(nested)
        else:
            yield f"--{field.name.replace('_', '-')}"


def _hint(words: Iterable[str]) -> str:
    """A suggestion, if there is one."""
    meant = " or ".join(dict.fromkeys(words))
    return f"; did you mean {meant}?" if meant else ""
