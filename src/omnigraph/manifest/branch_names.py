"""Branch names: one normal form, decided before anything else looks at a name.

Owns what a name may be. Never looks at which branches exist.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from omnigraph.errors import BadRequest

SCHEMA_APPLY_LOCK = "__schema_apply_lock__"
MAX_BYTES = 200

_PUNCTUATION = frozenset("._-/")


def normalise_branch(name: str) -> str:
    """The one spelling of a branch name; a name that cannot be one is refused."""
    name = unicodedata.normalize("NFC", name.strip())
    if not name:
        raise BadRequest("a branch name cannot be empty")
    if name.lstrip("/") == SCHEMA_APPLY_LOCK:
        raise BadRequest(f"branch name '{name}' is reserved for the engine")
    complaint = _complaint(name)
    if complaint is not None:
        raise BadRequest(f"'{_shown(name)}' is not a branch name: {complaint}")
    return name


def _complaint(name: str) -> str | None:
    if not all(_is_allowed(character) for character in name):
        return "use letters and digits of any script, and . _ - /"
    length = len(name.encode())
    if length > MAX_BYTES:
        return f"it has {length} bytes, and {MAX_BYTES} is the most"
    if name.startswith("/") or name.endswith("/") or "//" in name:
        return "`/` stands between two parts"
    if "." in name.split("/"):
        return "`.` is not a part"
    if ".." in name:
        return "`..` is not allowed"
    if name.endswith(".lock"):
        return "it cannot end in `.lock`"
    return None


def _is_allowed(character: str) -> bool:
    """Whether it is a letter with its marks, a digit, or one of the few signs."""
    return character in _PUNCTUATION or unicodedata.category(character)[0] in "LMN"


def _shown(name: str) -> str:
    return name if len(name) <= 64 else f"{name[:60]}…"


def path_conflict(name: str, others: Collection[str]) -> str | None:
    """An existing branch that is a path above or below the name, if there is one."""
    parts = name.split("/")
    for length in range(1, len(parts)):
        above = "/".join(parts[:length])
        if above in others:
            return above
    below = f"{name}/"
    return next((other for other in others if other.startswith(below)), None)
