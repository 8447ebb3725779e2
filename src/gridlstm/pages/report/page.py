"""Makes the HTML file of a report. No PyTorch here.

Names and values from the files of runs are not trusted. The template escapes them; besides, the policy
of the page lets only its own scripts run and nothing be loaded.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from gridlstm.pages.html import embed_data, fill, inline_files
from gridlstm.pages.report.curves import curves
from gridlstm.pages.report.parts import Part
from gridlstm.pages.report.runs import ReportedRun
from gridlstm.pages.report.tables import (
    differing,
    environments,
    format_value,
    results,
    runs_table,
    shared,
)

__all__ = ["Section", "make_page"]

PACKAGE, FOLDER = "gridlstm.pages.report", "assets"
CONTENT = "<!-- content -->"
"""Where the page has a place for the sections."""
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
FORMATS = {".svg": "image/svg+xml", ".png": "image/png"}
"""Formats of figures, the preferred one first."""


class Section(NamedTuple):
    """A part of a report, and what has been read of its runs."""

    part: Part
    runs: Sequence[ReportedRun]


def make_page(sections: Sequence[Section], refresh: float | None = None) -> str:
    """A page about runs that works from a disk and offline.

    Args:
        sections: at least one.
        refresh: seconds after which the page loads itself anew. Default: it does not.
    """
    assets = Path(str(files(PACKAGE))) / FOLDER
    shell = inline_files(assets, "page.html")
    made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    titles = [section.part.title for section in sections]
    title = ", ".join(titles) if len(titles) <= 3 else f"{len(titles)} sets of runs"
    licence = (assets / "uplot" / "LICENSE").read_text()
    places = {"title": title, "made": made, "licence": licence, "policy": _policy(shell)}
    shell = fill(shell, places)
    data = {"refresh": refresh, "parts": [curves(s.part.experiment, s.runs) for s in sections]}
    # What comes from files of runs is put in last: nothing looks for places or tags in it.
    before, _, after = embed_data(shell, "report", data).partition(CONTENT)
    template = Environment(
        loader=PackageLoader(PACKAGE, FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("sections.html")
    content = template.render(title=title, sections=[*map(_described, sections)], live=refresh)
    # Half of a surrogate pair, which JSON can hold, cannot be written.
    return f"{before}{content}{after}".encode(errors="replace").decode()


def _described(section: Section) -> dict[str, Any]:
    """What the template shows of a part."""
    part, runs = section
    experiment = part.experiment
    return {
        "title": part.title,
        "about": part.about,
        "experiment": experiment.name,
        "runs": runs_table(experiment, runs),
        "problems": [(run.name, run.problem) for run in runs if run.problem],
        "legend": [(run.name, _detail(part, run, runs)) for run in runs],
        "measured": next((run.measures for run in runs if run.measures), []),
        "curves": curves(experiment, runs),
        "results": results(experiment, runs),
        "figure": _figure(part.figure),
        "caption": part.caption,
        "samples": [(run.name, "\n".join(run.demonstration)) for run in runs if run.demonstration],
        "differing": differing(runs),
        "options": shared(experiment, runs),
        "environments": environments(runs),
    }


def _detail(part: Part, run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    """What the network is, for a legend: the name of a cell of a sweep says it already."""
    if part.sweep is not None or not run.collected:
        return ""
    options = run.options
    network = f"{format_value(options.get('network'))}, {format_value(options.get('layers'))} layers"
    others = [name for name in differing(runs) if name not in ("network", "layers")]
    words = [f"{name.replace('_', ' ')} {format_value(options.get(name))}" for name in others]
    return ", ".join([network, *words])


def _figure(path: Path | None) -> str | None:
    """A figure as the address of an image, in which scripts do not run; ``None`` if there is none."""
    if path is None:
        return None
    for suffix, kind in FORMATS.items():
        file = path.with_name(f"{path.name}{suffix}")
        if file.is_file():
            return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
    return None


def _policy(shell: str) -> str:
    """Lets the scripts of the page run, and no others; nothing is loaded."""
    digests = [hashlib.sha256(script.encode()).digest() for script in SCRIPT.findall(shell)]
    scripts = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:"
