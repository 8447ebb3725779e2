"""What identifies a run, and which of its options may change when it is resumed."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["fingerprint", "resumed_options"]

CHANGEABLE = ("minutes", "checkpoint_minutes", "samples")
"""Options that may change when a run is resumed: they only say when to stop or to save."""


def fingerprint(config: Mapping[str, Any]) -> str:
    """A hash of the experiment's name and of all options that cannot change."""
    fixed = {name: value for name, value in config["options"].items() if name not in CHANGEABLE}
    described = json.dumps([config["experiment"], fixed], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()


def resumed_options(
    old: Mapping[str, Any], new: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a resumed run: its own, with new values for those that may change.

    Options that did not exist when the run was started are not added: its fingerprint must not change.

    Args:
        old: the config of the run.
        new: the config asked for now.
        defaults: values of options that did not exist when the run was started.

    Raises:
        ValueError: if the run cannot be resumed with the new config.
    """
    if old["experiment"] != new["experiment"]:
        raise ValueError(f"expected a run of {new['experiment']}, got one of {old['experiment']}")
    now = new["options"]
    before = {**json.loads(json.dumps(dict(defaults))), **old["options"]}
    # Schedules other than "constant" depend on the number of samples.
    constant = now.get("schedule") == "constant"
    changeable = [name for name in CHANGEABLE if name != "samples" or constant]
    differences = [
        f"{name} was {before.get(name)}, now {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if name not in changeable and before.get(name) != now.get(name)
    ]
    if differences:
        raise ValueError(f"cannot be resumed with other options: {'; '.join(differences)}")
    data = [name for name, sha in new.get("data", {}).items() if old.get("data", {}).get(name) != sha]
    if data:
        raise ValueError(f"cannot be resumed with other data: {', '.join(data)}")
    return {**old["options"], **{name: now[name] for name in CHANGEABLE if name in now}}
