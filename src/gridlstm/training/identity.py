"""Which run is which: what tells one from another, and with which options it can be continued."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["continued", "origin_of"]

FREE = ("minutes", "checkpoint_minutes", "samples")
"""Options that a run may be resumed with other values of: they say only when to stop or to save."""


def origin_of(config: Mapping[str, Any]) -> str:
    """What tells a run from others: a hash of the options that cannot change."""
    kept = {name: value for name, value in config["options"].items() if name not in FREE}
    described = json.dumps([config["experiment"], kept], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()


def continued(
    old: Mapping[str, Any], new: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a run that is resumed: those that it has, with new values where they are free.

    Options that are younger than the run stay out of it, because its origin is a hash of the others.

    Args:
        old: the config of the run.
        new: what is asked for now.
        defaults: the values of options that the run is older than.

    Raises:
        ValueError: if it cannot be resumed like that.
    """
    if old["experiment"] != new["experiment"]:
        raise ValueError(f"expected a run of {new['experiment']}, got one of {old['experiment']}")
    now = new["options"]
    before = {**json.loads(json.dumps(dict(defaults))), **old["options"]}
    free = [name for name in FREE if name != "samples" or now.get("schedule") == "constant"]
    other = [
        f"{name} was {before.get(name)}, now {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if name not in free and before.get(name) != now.get(name)
    ]
    if other:
        raise ValueError(f"cannot be resumed with other options: {'; '.join(other)}")
    data = [name for name, sha in new.get("data", {}).items() if old.get("data", {}).get(name) != sha]
    if data:
        raise ValueError(f"cannot be resumed with other data: {', '.join(data)}")
    return {**old["options"], **{name: now[name] for name in FREE if name in now}}
