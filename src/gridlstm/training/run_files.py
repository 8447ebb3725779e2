"""Parsers of the JSON files of a run, which may have been edited or damaged."""

from typing import Any

from gridlstm.files import read_json
from gridlstm.training.json_checks import check_count, check_numbers, check_object

__all__ = ["FORMAT", "parse_config", "parse_metrics", "parse_sessions", "parse_summary"]

FORMAT = "gridlstm run 1"
"""The ``format`` of ``config.json``."""


def parse_config(text: str) -> dict[str, Any]:
    """Parses ``config.json``: an experiment and its options.

    Raises:
        ValueError: if it is anything else.
    """
    config = check_object(read_json(text), "config")
    if config.get("format") != FORMAT:
        raise ValueError(f"expected a {FORMAT!r}, got something else")
    for name in ("options", "data"):
        check_object(config.get(name, {}), name)
    if not isinstance(config.get("experiment"), str) or "options" not in config:
        raise ValueError("expected an experiment and its options")
    return config


def parse_sessions(text: str) -> list[dict[str, Any]]:
    """Parses ``sessions.json``: a list of objects.

    Raises:
        ValueError: if it is anything else.
    """
    sessions = read_json(text)
    if not isinstance(sessions, list):
        raise ValueError("expected a list of sessions")
    return [check_object(session, "session") for session in sessions]


def parse_metrics(text: str) -> list[dict[str, Any]]:
    """Parses ``metrics.jsonl``. What follows the last line break is unfinished and ignored.

    Raises:
        ValueError: if it is anything else.
    """
    rows = [check_numbers(read_json(line), "row") for line in text.split("\n")[:-1]]
    for row in rows:
        for name in ("step", "samples"):
            check_count(row.get(name), name)
    return rows


def parse_summary(text: str) -> dict[str, Any]:
    """Parses ``summary.json``: an object with the reason why the run ended.

    Raises:
        ValueError: if it is anything else.
    """
    summary = check_object(read_json(text), "summary")
    if not isinstance(summary.get("reason"), str):
        raise ValueError("expected a reason, got something else")
    return summary
