"""Branch names: one normal form, decided before anything else looks at a name.

Owns what a name may be. Never looks at which branches exist.
"""

from __future__ import annotations

import re

from omnigraph.errors import BadRequest
from omnigraph.manifest.entries import MAIN

SCHEMA_APPLY_LOCK = "__schema_apply_lock__"

_ALLOWED = re.compile(r"[A-Za-z0-9._/-]+")


def normalise_branch(name: str) -> str:
    """The one spelling of a branch name; a name that cannot be one is refused."""
    name = name.strip()
    if not name:
        raise BadRequest("a branch name cannot be empty")
    if name.lstrip("/") == SCHEMA_APPLY_LOCK:
        raise BadRequest(f"branch name '{name}' is reserved for the engine")
    complaint = _complaint(name)
    if complaint is not None:
        raise BadRequest(f"'{name}' is not a branch name: {complaint}")
    return name


def _complaint(name: str) -> str | None:
    if not _ALLOWED.fullmatch(name):
        return "use letters, digits and . _ - /"
    if name.startswith("/") or name.endswith("/") or "//" in name:
        return "`/` stands between two parts"
    if "." in name.split("/"):
        return "`.` is not a part"
    if ".." in name:
        return "`..` is not allowed"
    if name.endswith(".lock"):
        return "it cannot end in `.lock`"
    return None


def native_name(branch: str) -> str | None:
    """What storage calls a branch: main has no name of its own there."""
    return None if branch == MAIN else branch


def path_conflict(name: str, others: list[str]) -> str | None:
    """An existing branch that is a path above or below the name, if there is one."""
    for other in others:
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            return other
    return None
