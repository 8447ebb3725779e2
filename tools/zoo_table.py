"""The table of the networks that come with the package, from their files and the NOTICE of the data."""

import re
import shlex
from pathlib import Path

from safetensors import safe_open

from gridlstm.experiments.registry import flat
from gridlstm.experiments.results import Table
from gridlstm.experiments.trained import open_run, record_and_options
from gridlstm.training.rundir import RunDir

NOTICE = Path(__file__).parent.parent / "src" / "gridlstm" / "data" / "embedded" / "NOTICE"
FIGURES = {
    "characters": "{bits:.2f} bits per character, {characters:,} test characters",
    "wikipedia": "{bits:.2f} bits per character, {characters:,} test characters",
    "translation": "perplexity {perplexity:.2f}, BLEU {bleu 1:.1f} (one reference) and {bleu all:.1f} "
    "(all), {sentences:,} test sentences",
    "images": "{error:.2%} error, {samples:,} test images",
    "memorization": "{accuracy:.2%} of symbols and {whole:.1%} of sequences right, "
    "{samples:,} test sequences",
}
"""What ``evaluation.json`` says, by network."""


def shipped() -> dict[str, RunDir]:
    """The runs that come with the package, by name."""
    return {name: open_run(None, name) for name in FIGURES}


def training_command(run: RunDir) -> str:
    """The command that trains such a network: all options that differ from those of a preset.

    The preset is the one with the fewest differences.
    """
    experiment, options = record_and_options(run)
    differences = {
        preset: {k: v for k, v in flat(options).items() if v != flat(defaults)[k]}
        for preset, defaults in experiment.presets.items()
    }
    preset, changed = min(differences.items(), key=lambda item: len(item[1]))
    words = ["gridlstm", "train", experiment.name, "--preset", preset]
    for name, value in changed.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", *map(str, value if isinstance(value, tuple) else [value])]
    return shlex.join(words)


def stored_dtype(run: RunDir) -> str:
    """The dtype in which the weights are stored; that of an alphabet does not count."""
    with safe_open(str(run.model), "pt") as weights:
        dtypes = {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118
    (dtype,) = dtypes - {"U8"}
    return {"F16": "float16", "F32": "float32"}[dtype]


def licence(data: str) -> str:
    """What NOTICE says about the licence of a data set."""
    sections = re.findall(r"^(\S.*)\n((?:\n|  .*\n)+)", NOTICE.read_text(), re.MULTILINE)
    (text,) = (body for title, body in sections if data in title)
    return " ".join(text.partition("Licence:")[2].split())


def zoo() -> str:
    """Size, data, licence and test result of each network."""
    titles = ["", "network", "parameters", "file", "trained for", "data", "test result"]
    rows, licences = [], []
    for name, run in shipped().items():
        experiment, options = record_and_options(run)
        summary, evaluation = run.summary(), run.read_result("evaluation.json")
        assert summary is not None, name
        assert evaluation is not None, name
        rows.append(
            [
                f'`gridlstm.load("{name}")`',
                f"{options.network}, {options.layers} x {options.hidden}",
                f"{summary['parameters'] / 1e6:.2f} M",
                f"{run.model.stat().st_size / 1e6:.2g} MB, {stored_dtype(run)}",
                f"{summary['samples'] / 1000:.0f} K samples, {summary['seconds'] / 60:.0f} minutes",
                f"{options.size} {experiment.unit}".strip(),
                FIGURES[name].format(**evaluation),
            ]
        )
        if isinstance(options.size, str):  # Others generate their data.
            licences.append(f"- `{name}` ({options.size}): {licence(options.size)}")
    return "\n\n".join([Table(titles, rows).markdown(), "Licence of the data:", "\n".join(licences)])


def zoo_commands() -> str:
    """The commands that train the networks."""
    return "\n".join(["```bash", *map(training_command, shipped().values()), "```"])
